import Foundation
import LoadTools
import Testing

/// A `weir run` process on a free port, with its data in a temporary folder.
final class WeirProcess: Sendable {
    /// Holds the data; remains after a restart.
    let folder: TestFolder
    let port: UInt16
    private let program: ProgramProcess

    /// The memory that the process has in use, in bytes, as Linux counts it.
    func residentBytes() throws -> Int { try program.residentBytes() }

    var log: [String] { program.log }

    func hasLogged(_ text: String) async -> Bool { await program.hasLogged(text) }

    /// The port of health and metrics; `nil` where it is disabled.
    var operationsPort: UInt16? { program.known(.operations) }

    /// Starts a process and returns when it is ready for requests.
    ///
    /// - Parameters:
    ///   - port: where it takes requests; 0 for a free one.
    ///   - meanwhile: runs with the operations port as soon as the process answers there, before it is ready.
    static func start(
        schema: String, in folder: TestFolder, settings: [String: String] = [:], environment: [String: String] = [:],
        port: UInt16 = 0, meanwhile: ((UInt16) async throws -> Void)? = nil
    ) async throws -> WeirProcess {
        var arguments = [
            "run", "--schema", schema, "--data", folder.path + "/data", "--address", "127.0.0.1:\(port)",
            "--log-format", "json",
        ]
        // The disk of the tests may be small.
        let defaults = ["changelog.reserve-bytes": "0"].merging(RateFlags.settings) { $1 }
        for (key, value) in defaults.merging(settings, uniquingKeysWith: { $1 }) { arguments += ["--" + key, value] }
        let program = try ProgramProcess(arguments, in: folder, environment: environment)
        if let meanwhile, let operations = await program.port(of: .operations) { try await meanwhile(operations) }
        guard let port = await program.port(of: .gateway) else {
            throw StartFailure(
                description: "weir did not start:\n" + program.log.joined(separator: "\n"))
        }
        return WeirProcess(folder: folder, port: port, program: program)
    }

    private init(folder: TestFolder, port: UInt16, program: ProgramProcess) {
        self.folder = folder
        self.port = port
        self.program = program
    }

    func send(_ signal: Int32) { program.send(signal) }

    /// Sends SIGTERM and waits for the exit code.
    func stop() async -> Int32 { await program.stop() }

    /// Sends SIGKILL and waits for the end.
    func kill() async -> Int32 { await program.kill() }

    /// Waits until the process exits; its exit code, or the signal that ended it.
    func untilEnd() async -> Int32 { await program.untilEnd() }
}

/// `weir verify` on the files of a stopped server.
enum Verification {
    /// Expects no difference between the log and what was derived from it.
    static func expectEqual(_ folder: TestFolder) async throws {
        let run = try await CommandRun.run("verify", "--data", folder.path + "/data", in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }
}
