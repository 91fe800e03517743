import Foundation
import ServerShell
import Testing

/// A weir process that runs until it is stopped or exits.
final class ProgramProcess: Sendable {
    private let process: Process
    /// The exit code, or the signal that ended the process; available to cancelled tasks, too.
    private let ended: Task<Int32, Never>
    private let lines: ProgramLines

    /// Starts a process in a folder, without the settings in the tests' environment.
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

    // A test that fails leaves no process behind.
    deinit { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// The memory that the process has in use, in bytes, as Linux counts it.
    func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        let kilobytes = try #require(line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first)
        return try #require(Int(kilobytes)) * 1024
    }

    /// All log lines so far.
    var log: [String] { lines.all }

    /// Waits for a log line that contains a text, after the first `count` lines; `false` if the process exits without one.
    func hasLogged(_ text: String, after count: Int = 0) async -> Bool { await lines.contains(text, after: count) }

    /// The port that the process has logged; `nil` before that.
    func known(_ listener: ProgramLines.Listener) -> UInt16? { lines.known(listener) }

    /// Waits for the process to log its port; `nil` if it exits without.
    func port(of listener: ProgramLines.Listener) async -> UInt16? { await lines.port(of: listener) }

    /// Sends SIGTERM and waits for the exit code.
    func stop() async -> Int32 {
        send(SIGTERM)
        return await ended.value
    }

    /// Sends SIGKILL and waits for the end.
    @discardableResult
    func kill() async -> Int32 {
        send(SIGKILL)
        return await ended.value
    }

    func send(_ signal: Int32) { Foundation.kill(process.processIdentifier, signal) }

    /// Waits until the process exits; its exit code, or the signal that ended it.
    func untilEnd() async -> Int32 { await ended.value }
}
