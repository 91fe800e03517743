import Commands
import Glibc

/// The program `weir`: commands, and the only place that puts the parts of the server together.
@main enum Weir {
    /// What a command does; errors that it throws are printed and mean that it was called or configured wrongly.
    struct Action: Sendable {
        let run: @Sendable (Invocation) async throws -> ExitCode

        init(_ run: @escaping @Sendable (Invocation) async throws -> ExitCode) { self.run = run }
    }

    static let command = Command(
        "weir", "An offline-first sync backend.",
        subcommands: [RunCommand.command] + RoleCommand.commands + [
            TopicsCommand.command, MigrateCommand.command, VerifyCommand.command, ReplayCommand.command,
            SchemaCommand.command, ConfigCommand.command, ConfigCommand.reference,
        ])

    static func main() async {
        let code = await command.run { @Sendable invocation in
            do {
                return try await invocation.action.run(invocation)
            } catch {
                Output.complain("\(error)")
                return .usage
            }
        }
        exit(code.rawValue)
    }
}

typealias Invocation = CommandInvocation<Weir.Action>

/// A call of a command that does not fit its options, whatever the settings.
struct UsageError: Error, CustomStringConvertible {
    let description: String

    init(_ message: String, of command: String) {
        description = "Error: \(message)\nSee \"weir \(command) --help\"."
    }
}
