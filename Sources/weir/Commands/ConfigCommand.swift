import Commands
import Configuration
import EmbeddedPipeline

/// `weir config` and `weir config-reference`.
enum ConfigCommand {
    static let command = Command(
        "config", "Print the settings in force and where each comes from.", Weir.Action(run),
        arguments: [.optional("ROLE", "Of which command: gateway, ingest, ordering, fanout; without it, of run.")],
        options: Settings.schema.options, discussion: "Takes the same flags; secrets are masked.")

    static let reference = Command(
        "config-reference", "Print the reference of all settings, in Markdown.",
        Weir.Action { _ in
            Output.write(Settings.schema.markdown())
            return .success
        })

    private static func run(_ invocation: Invocation) async throws -> ExitCode {
        guard let name = invocation.arguments.first else {
            Output.write(try Settings.load(invocation, RunCommand.RunSettings.init).report())
            return .success
        }
        guard let role = Role(rawValue: name) else {
            let names = Role.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("\"\(name)\" is no role; there are \(names)", of: "config")
        }
        Output.write(try Settings.load(invocation) { RoleCommand.RoleSettings($0, role) }.report())
        return .success
    }
}
