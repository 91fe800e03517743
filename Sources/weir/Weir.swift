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
        case bench
        case simulate
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
                "bench", "Measure this machine and Weir on it.", .bench, options: Bench.options,
                discussion: "Starts servers of its own; docs/operations.md says how to read the figures."),
            Command(
                "simulate", "Play the whole pipeline in memory, with faults that a seed decides.", .simulate,
                options: Simulate.options,
                discussion:
                    "Ends at the first seed with which something does not hold, and prints how to see it again."),
            Command(
                "config-reference", "Print the reference of all settings, in Markdown.", .configurationReference),
        ]
    }

    static func main() async {
        exit(await outcome(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    private static func outcome(_ arguments: [String]) async -> ExitCode {
        switch command.parse(arguments, version: Version.text) {
        case .print(let text):
            Output.write(text)
            return .success
        case .refuse(let text):
            Output.complain(text)
            return .usage
        case .invoke(let invocation): return await carryOut(invocation)
        }
    }

    private static func carryOut(_ invocation: CommandInvocation<Action>) async -> ExitCode {
        switch invocation.action {
        case .configurationReference:
            Output.write(Settings.schema.markdown())
            return .success
        case .simulate: return await Simulate.run(invocation)
        case .checkSchema: return SchemaCheck.run(path: invocation.arguments[0])
        case .bench: return await Bench.run(invocation)
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

/// The version of the program.
enum Version {
    static let text = "0.1.0"
}

/// Standard output and standard error.
enum Output {
    /// Writes a text, with a line break at its end.
    static func write(_ text: String) { put(text, STDOUT_FILENO) }

    /// Writes a complaint.
    static func complain(_ text: String) { put(text, STDERR_FILENO) }

    private static func put(_ text: String, _ descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        if bytes.last != UInt8(ascii: "\n") { bytes.append(UInt8(ascii: "\n")) }
        while !bytes.isEmpty {
            let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            // Nobody reads any more: there is nobody to tell either.
            guard written > 0 || errno == EINTR else { return }
            if written > 0 { bytes = bytes.dropFirst(written) }
        }
    }
}

/// The environment of the process.
enum Environment {
    /// Name and value of every variable; read once, before anything else runs.
    static var variables: [String: String] {
        var variables: [String: String] = [:]
        var place = environ
        while let entry = place.pointee {
            let text = String(cString: entry)
            if let equals = text.firstIndex(of: "=") {
                variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            place += 1
        }
        return variables
    }
}
