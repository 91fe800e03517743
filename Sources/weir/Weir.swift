import Commands
import Configuration
import Glibc
import Observability
import ServiceLifecycle

/// The program `weir`: commands, and the only place that puts the parts together.
@main
enum Weir {
    /// What the commands do.
    enum Action: Sendable, Hashable {
        case run
        case configuration
        case configurationReference
        case checkSchema
        case verify
        case replay
        case role(ClusterRole)
        case createTopics
        case checkTopics
        case migrate
    }

    static var command: Command<Action> {
        Command("weir", "An offline-first sync backend.", subcommands: [run] + roles + cluster + tools)
    }

    private static var run: Command<Action> {
        Command(
            "run", "Run the whole pipeline in this process, on embedded SQLite.", .run,
            options: Settings.schema.options,
            discussion: """
                Needs nothing but a schema file; data goes to the folder weir-data. With storage cluster the log is in Kafka
                and the tables are in Postgres; the topics must exist.
                """)
    }

    private static var roles: [Command<Action>] {
        ClusterRole.allCases.map { role in
            Command(
                role.rawValue, role.summary, .role(role), options: role.options,
                discussion: "One of any number of processes on one Kafka and one Postgres: see docs/operations.md.")
        }
    }

    private static var cluster: [Command<Action>] {
        [
            Command(
                "topics", "Make and check the topics in Kafka.",
                subcommands: [
                    Command(
                        "create", "Make the topics that are missing.", .createTopics,
                        options: [TopicsCommand.replication, TopicsCommand.minimumInSync]
                            + Settings.options(of: [], and: ["partitions"]) + TopicsCommand.options,
                        discussion: TopicsCommand.createDiscussion),
                    Command(
                        "check", "Say what is wrong with the topics.", .checkTopics,
                        options: TopicsCommand.options, discussion: TopicsCommand.checkDiscussion),
                ]),
            Command(
                "migrate", "Publish a schema version and make the tables in Postgres.", .migrate,
                options: [MigrateCommand.dryRun] + MigrateCommand.options, discussion: MigrateCommand.discussion),
        ]
    }

    private static var tools: [Command<Action>] {
        [
            Command(
                "verify", "Recompute from the log what the pipeline made, and compare.", .verify,
                options: Verify.options + OfflineSettings.options, discussion: Verify.discussion),
            Command(
                "replay", "Make the tables anew from the log.", .replay,
                options: ReplayCommand.options + OfflineSettings.options,
                discussion: ReplayCommand.discussion),
            Command(
                "schema", "Work with schema files.",
                subcommands: [
                    Command(
                        "check", "Check a schema file.", .checkSchema,
                        arguments: [.one("FILE", "The schema file.")])
                ]),
            Command(
                "config", "Print the settings in force and where each comes from.", .configuration,
                arguments: [
                    .optional("ROLE", "Of which command: gateway, ingest, ordering, fanout; without it, of run.")
                ],
                options: Settings.schema.options, discussion: "Takes the same flags; secrets are masked."),
            Command(
                "config-reference", "Print the reference of all settings, in Markdown.", .configurationReference),
        ]
    }

    static func main() async {
        exit(await command.run(carryOut).rawValue)
    }

    private static func carryOut(_ invocation: CommandInvocation<Action>) async -> ExitCode {
        switch invocation.action {
        case .configurationReference:
            Output.write(Settings.schema.markdown())
            return .success
        case .checkSchema: return SchemaCheck.run(path: invocation.arguments[0])
        case .configuration, .run, .verify, .replay, .role, .createTopics, .checkTopics, .migrate:
            do {
                return try await ConfiguredCommands.run(invocation)
            } catch {
                Output.complain("\(error)")
                return .usage
            }
        }
    }
}
