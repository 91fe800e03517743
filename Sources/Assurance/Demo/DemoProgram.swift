import Commands
import Foundation
import SchemaFile
import ServiceLifecycle

/// The program `weir-demo`.
@main enum DemoProgram {
    private static let options = [
        CommandOption("devices", .required("N"), "Devices, each with a database file of its own; 8 by default."),
        CommandOption("seconds", .required("S"), "How long they edit; 60 by default."),
        CommandOption(
            "seed", .required("SEED"), "Decides the edits and when devices are offline; by default a random one."),
        CommandOption(
            "folder", .required("DIR"),
            "Where devices and server have their files, which are kept and continued; a temporary folder by default."),
        CommandOption(
            "schema", .required("FILE"), "The schema of the server that is started; lists of tasks by default."),
        CommandOption("server", .required("URL"), "A server that runs already, in place of one that is started."),
        CommandOption("sync-id", .required("ID"), "The account of the devices; demo by default."),
        CommandOption("token-file", .required("FILE"), "A file with a token of the account, for --server."),
    ]

    static func main() async {
        let command = Command(
            "weir-demo", "Let devices edit at random, on and off line, and compare them at the end.", (),
            options: options,
            discussion: """
                Starts the whole pipeline in this process unless --server names one, and shows devices, stream and latency
                while they edit. Ends with 0 if all devices have the same rows as the server, and with 1 and the differences
                otherwise. With --folder it may be killed at any time and started again.
                """)
        exit(await command.run(failure: .failure, play).rawValue)
    }

    private static func play(_ invocation: CommandInvocation<Void>) async throws -> ExitCode {
        let settings = try DemoSettings(invocation)
        let stop = StopRequest()
        try ProcessSignals().listen { _ in stop.request() }
        return try await DemoRun.play(settings, stop) ? .success : .failure
    }
}

/// The options of a run.
struct DemoSettings: Sendable {
    let devices: Int
    let seconds: Int
    let seed: UInt64
    /// `nil`: a temporary one.
    let folder: String?
    let schema: String
    let server: URL?
    let account: String
    let token: (@Sendable () async throws -> String)?

    init(_ invocation: CommandInvocation<Void>) throws(UsageError) {
        // Each device has a thread, three connections to its file and two to the server.
        devices = try invocation.number("devices", in: 2...100) ?? 8
        seconds = try invocation.number("seconds", in: 1...86_400) ?? 60
        seed = try invocation.number("seed", in: 0...UInt64.max) ?? UInt64.random(in: 0...9_999)
        folder = invocation.option("folder")?.value
        account = invocation.option("sync-id")?.value ?? "demo"
        server = try invocation.option("server")?.value.map { text throws(UsageError) in
            guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host != nil else {
                throw UsageError("--server is a URL as http://127.0.0.1:7777, not \(text)")
            }
            return url
        }
        let tokenFile = invocation.option("token-file")?.value
        if tokenFile != nil, server == nil { throw UsageError("--token-file is for --server URL") }
        token = tokenFile.map { path in
            { @Sendable in
                try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
            }
        }
        let path = invocation.option("schema")?.value
        if path != nil, server != nil {
            throw UsageError("--schema is for the server that is started, not for --server")
        }
        do {
            schema = try path.map { try String(contentsOfFile: $0, encoding: .utf8) } ?? Self.lists
        } catch {
            throw UsageError("the schema file \(path ?? "") cannot be read: \(error)")
        }
    }

    private static let lists = """
        tables:
          person:
            columns:
              name: { type: text, nullable: false }
              birthday: date
          list:
            columns:
              title: { type: text, nullable: false }
              owner: { type: text, references: person }
          task:
            policy: lastWriteWins
            columns:
              list: { type: text, references: list }
              title: { type: text, nullable: false }
              done: { type: boolean, nullable: false, default: false }
              due: timestamp
              estimate: decimal(6,2)
              labels: json
          booking:
            policy: checkBase
            columns:
              task: { type: text, references: task }
              holder: { type: text, nullable: false }
        """
}
