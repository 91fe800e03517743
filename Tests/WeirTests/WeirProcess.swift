import Foundation
import Synchronization
import Testing

/// A `weir run` of its own: a real process, at a free port, with its data in a temporary folder.
final class WeirProcess: Sendable {
    /// Where the data lies; outlives a restart.
    let folder: TestFolder
    /// The port on 127.0.0.1.
    let port: UInt16
    private let process: Process
    private let ended: AsyncStream<Int32>
    private let lines: Lines

    /// The memory that the process has in use, in bytes, as Linux counts it.
    func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        let kilobytes = try #require(line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first)
        return try #require(Int(kilobytes)) * 1024
    }

    /// What the process has logged.
    var log: [String] { lines.all }

    /// Starts a process and returns when it is ready for requests.
    static func start(
        schema: String, in folder: TestFolder, settings: [String: String] = [:]
    ) async throws -> WeirProcess {
        let process = Process()
        process.executableURL = try Self.executable()
        var arguments = [
            "run", "--schema", schema, "--data", folder.path + "/data", "--address", "127.0.0.1:0", "--log-format",
            "json",
        ]
        for (key, value) in settings { arguments += ["--" + key, value] }
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.environment = environment
        let pipe = Pipe()
        process.standardError = pipe
        process.standardOutput = FileHandle.nullDevice
        let lines = Lines()
        pipe.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            lines.take(data)
        }
        let (ended, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            lines.end()
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        try ProcessStart.run(process)
        guard let port = await lines.port() else {
            throw StartFailure(description: "weir did not start:\n" + lines.all.joined(separator: "\n"))
        }
        return WeirProcess(folder: folder, port: port, process: process, ended: ended, lines: lines)
    }

    // A test that fails on the way leaves no process behind.
    deinit { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

    /// Why a process did not start.
    struct StartFailure: Error, CustomStringConvertible {
        let description: String
    }

    private init(folder: TestFolder, port: UInt16, process: Process, ended: AsyncStream<Int32>, lines: Lines) {
        self.folder = folder
        self.port = port
        self.process = process
        self.ended = ended
        self.lines = lines
    }

    /// Asks the process to stop, as an operator would, and waits until it has; its exit code.
    func stop() async -> Int32 { await end(SIGTERM) }

    /// Ends the process at once.
    func kill() async -> Int32 { await end(SIGKILL) }

    private func end(_ signal: Int32) async -> Int32 {
        Foundation.kill(process.processIdentifier, signal)
        for await status in ended { return status }
        return process.terminationStatus
    }

    /// The environment of the tests without what would be a setting: a program takes nothing from its surroundings.
    static var environment: [String: String] {
        ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("WEIR_") }
    }

    /// The program beside the tests' own.
    static func executable() throws -> URL {
        var folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        for _ in 0..<4 {
            let candidate = folder.appendingPathComponent("weir")
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
            folder.deleteLastPathComponent()
        }
        throw StartFailure(description: "there is no weir beside \(CommandLine.arguments[0])")
    }
}

/// The lines of a process's log, as they come.
private final class Lines: Sendable {
    private struct State {
        var rest = Data()
        var lines: [String] = []
        var hasEnded = false
        var port: UInt16?
        var waiting: CheckedContinuation<UInt16?, Never>?
    }

    private let state = Mutex(State())

    var all: [String] { state.withLock { $0.lines } }

    func take(_ data: Data) {
        update { state in
            state.rest.append(data)
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: state.rest[..<end], as: UTF8.self)
                state.rest.removeSubrange(...end)
                state.lines.append(line)
                if state.port == nil { state.port = Self.port(in: line) }
            }
        }
    }

    func end() { update { $0.hasEnded = true } }

    /// The port that the process says it listens at; `nil` when it ended without.
    func port() async -> UInt16? {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state -> UInt16?? in
                if let port = state.port { return .some(port) }
                if state.hasEnded { return .some(nil) }
                state.waiting = continuation
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let (waiting, port) = state.withLock { state -> (CheckedContinuation<UInt16?, Never>?, UInt16?) in
            change(&state)
            guard state.port != nil || state.hasEnded else { return (nil, nil) }
            return (state.waiting.take(), state.port)
        }
        waiting?.resume(returning: port)
    }

    private static func port(in line: String) -> UInt16? {
        guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            let address = object["address"] as? String, let colon = address.lastIndex(of: ":")
        else { return nil }
        return UInt16(address[address.index(after: colon)...])
    }
}

/// A folder that is removed with its last reference.
final class TestFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "weir-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        do { try FileManager.default.removeItem(atPath: path) } catch { print("not removed: \(path): \(error)") }
    }
}
