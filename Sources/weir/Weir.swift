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
            SkipCommand.command, DeviceCommand.command, SchemaCommand.command, TokenCommand.command,
            ConfigCommand.command, ConfigCommand.reference,
        ])

    static func main() async {
        let code = await command.run(failure: .usage) { try await $0.action.run($0) }
        exit(code.rawValue)
    }
}

typealias Invocation = CommandInvocation<Weir.Action>

extension UsageError {
    /// An error that refers to the help of a command.
    init(_ message: String, of command: String) {
        self.init("\(message)\nSee \"weir \(command) --help\".")
    }
}
