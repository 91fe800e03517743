import Foundation
import ServerShell
import Testing

/// A process of the program that goes on until it is told to end, or ends by itself.
final class ProgramProcess: Sendable {
    private let process: Process
    /// How the process ended, known to whoever asks, cancelled or not.
    private let ended: Task<Int32, Never>
    private let lines: ProgramLines

    /// Starts a process in a folder; it takes no settings from the tests' surroundings.
    init(_ arguments: [String], in folder: TestFolder, environment: [String: String] = [:]) throws {
        let process = Process()
        process.executableURL = try TestedProgram.weir.executable()
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.environment = TestedProgram.environment.merging(environment) { $1 }
        process.standardOutput = FileHandle.nullDevice
        let lines = ProgramLines()
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        lines.read(try ProcessStart.runWithErrors(process))
        self.process = process
        self.lines = lines
        self.ended = Task {
            let status = await ended.first { _ in true } ?? -1
            await lines.ended()
            return status
        }
    }

    // A test that fails on the way leaves no process behind.
    deinit { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// The memory that the process has in use, in bytes, as Linux counts it.
    func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        let kilobytes = try #require(line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first)
        return try #require(Int(kilobytes)) * 1024
    }

    /// What the process has logged.
    var log: [String] { lines.all }

    /// Waits until the process has logged a line with this text, behind the first `count` lines; `false` when it ended
    /// without.
    func hasLogged(_ text: String, after count: Int = 0) async -> Bool { await lines.contains(text, after: count) }

    /// The port that the process says it listens at, where it has said so.
    func known(_ listener: ProgramLines.Listener) -> UInt16? { lines.known(listener) }

    /// Waits for the port that the process says it listens at; `nil` when it ended without.
    func port(of listener: ProgramLines.Listener) async -> UInt16? { await lines.port(of: listener) }

    /// Asks the process to stop, as an operator would, and waits until it has; its exit code.
    func stop() async -> Int32 {
        send(SIGTERM)
        return await ended.value
    }

    /// Ends the process at once.
    @discardableResult
    func kill() async -> Int32 {
        send(SIGKILL)
        return await ended.value
    }

    /// Sends a signal.
    func send(_ signal: Int32) { Foundation.kill(process.processIdentifier, signal) }

    /// Waits until the process has ended by itself; its exit code, or the signal that ended it.
    func untilEnd() async -> Int32 { await ended.value }
}
