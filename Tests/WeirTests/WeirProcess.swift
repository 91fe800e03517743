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
    /// How the process ended, known to whoever asks, cancelled or not.
    private let ended: Task<Int32, Never>
    private let lines: Lines

    /// The system's number of the process.
    var identifier: Int32 { process.processIdentifier }

    /// What the process has logged.
    var log: [String] { lines.all }

    /// Waits until the process has logged a line with this text; `false` when it ended without.
    func hasLogged(_ text: String) async -> Bool { await lines.contains(text) }

    /// Starts a process and returns when it is ready for requests.
    static func start(
        schema: String, in folder: TestFolder, settings: [String: String] = [:], environment: [String: String] = [:]
    ) async throws -> WeirProcess {
        let process = Process()
        process.executableURL = try Self.executable()
        var arguments = [
            "run", "--schema", schema, "--data", folder.path + "/data", "--address", "127.0.0.1:0", "--log-format",
            "json",
        ]
        // The tests' disk may be small.
        let small = ["changelog.reserve-bytes": "0"]
        for (key, value) in small.merging(settings, uniquingKeysWith: { $1 }) { arguments += ["--" + key, value] }
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.environment = Self.environment.merging(environment) { $1 }
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
        let end = Task { await ended.first { _ in true } ?? -1 }
        return WeirProcess(folder: folder, port: port, process: process, ended: end, lines: lines)
    }

    /// Why a process did not start.
    struct StartFailure: Error, CustomStringConvertible {
        let description: String
    }

    private init(folder: TestFolder, port: UInt16, process: Process, ended: Task<Int32, Never>, lines: Lines) {
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
        return await ended.value
    }

    /// Waits until the process has ended by itself; its exit code, or the signal that ended it.
    func untilEnd() async -> Int32 { await ended.value }

    // A test that failed leaves no server behind.
    deinit { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

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
        var readers: [(text: String, continuation: CheckedContinuation<Bool, Never>)] = []

        /// Takes out the readers whose line has come, or will not come any more.
        mutating func answered() -> [(CheckedContinuation<Bool, Never>, Bool)] {
            var answered: [(CheckedContinuation<Bool, Never>, Bool)] = []
            readers.removeAll { reader in
                let isThere = lines.contains { $0.contains(reader.text) }
                guard isThere || hasEnded else { return false }
                answered.append((reader.continuation, isThere))
                return true
            }
            return answered
        }
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

    /// Whether there is a line with a text, or comes before the end.
    func contains(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            update { $0.readers.append((text, continuation)) }
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let answered = state.withLock { state in
            change(&state)
            return state.answered()
        }
        for (reader, isThere) in answered { reader.resume(returning: isThere) }
        let (waiting, port) = state.withLock { state -> (CheckedContinuation<UInt16?, Never>?, UInt16?) in
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
