import Commands
import Foundation
import WeirClient

/// The program `weir-device`: a device for a person, on a database file.
@main enum DeviceProgram {
    /// What a command does; errors that it throws are printed.
    struct Action: Sendable {
        let run: @Sendable (Invocation) async throws -> ExitCode

        init(_ run: @escaping @Sendable (Invocation) async throws -> ExitCode) { self.run = run }
    }

    static let command = Command(
        "weir-device", "A device that syncs a SQLite file with a Weir server.",
        subcommands: RowCommands.commands + SyncCommands.commands,
        discussion: """
            The first command that names a server creates the file with the server's tables. Afterwards every command but
            sync and watch works without a network; the file remembers server and account. Other programs may write to
            the tables at the same time. Variables of the environment in place of options: SYNC_TOKEN, and for what the
            file does not remember SYNC_SERVER and SYNC_ID.

                weir-device put task t1 title="Buy milk" list=home --server http://127.0.0.1:7777 --sync-id ada
                weir-device sync
            """)

    static func main() async {
        let code = await command.run(failure: .failure) { try await $0.action.run($0) }
        exit(code.rawValue)
    }
}

typealias Invocation = CommandInvocation<DeviceProgram.Action>

/// The options of every command.
struct DeviceOptions: Sendable {
    static let all = [
        CommandOption("file", .required("FILE"), "The database; device.sqlite by default."),
        CommandOption("server", .required("URL"), "The server; needed until the file exists."),
        CommandOption("sync-id", .required("ID"), "The account, at a server that runs without authentication."),
        CommandOption(
            "token", .required("TOKEN"), "A token of the account; other processes can see it, unlike the file's."),
        CommandOption(
            "token-file", .required("FILE"), "A file with a token, which is read again when the server rejects it."),
        CommandOption("device", .required("NAME"), "This device's name at the server, when the file is created."),
        CommandOption("json", .none, "Print JSON, for scripts."),
    ]

    /// How the server knows the account; `nil` where nothing was said.
    enum Account: Sendable {
        case named(String)
        case token(@Sendable () async throws -> String)
    }

    let file: URL
    let server: URL?
    let account: Account?
    /// What variables of the environment say about a file that remembers nothing: one that does is not moved by a shell's variables.
    let otherwise: (server: URL?, account: Account?)
    let device: String?
    let isJSON: Bool

    init(_ invocation: Invocation) throws(UsageError) {
        let environment = Environment.variables
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        func value(_ option: String) -> String? { invocation.option(option)?.value }
        file = URL(fileURLWithPath: value("file") ?? "device.sqlite")
        func url(_ text: String, _ name: String) throws(UsageError) -> URL {
            guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host != nil else {
                throw UsageError("\(name) is a URL as http://127.0.0.1:7777, not \(text)")
            }
            return url
        }
        server = try value("server").map { text throws(UsageError) in try url(text, "--server") }
        let given = ["sync-id", "token", "token-file"].filter { invocation.option($0) != nil }
        if given.count > 1 { throw UsageError("give one of --sync-id, --token and --token-file") }
        if let path = value("token-file") {
            account = .token { try Self.token(in: path) }
        } else if let name = value("sync-id") {
            account = .named(name)
        } else {
            account = (value("token") ?? variable("SYNC_TOKEN")).map { token in .token { token } }
        }
        otherwise = (
            try variable("SYNC_SERVER").map { text throws(UsageError) in try url(text, "SYNC_SERVER") },
            variable("SYNC_ID").map { .named($0) }
        )
        device = value("device")
        isJSON = invocation.option("json") != nil
    }

    private static func token(in path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
