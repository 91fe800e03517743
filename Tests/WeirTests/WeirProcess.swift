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

    /// The memory that the process has in use, in bytes, as Linux counts it.
    func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        let kilobytes = try #require(line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first)
        return try #require(Int(kilobytes)) * 1024
    }

    /// What the process has logged.
    var log: [String] { lines.all }

    /// Waits until the process has logged a line with this text; `false` when it ended without.
    func hasLogged(_ text: String) async -> Bool { await lines.contains(text) }

    /// The port of its operations on 127.0.0.1, `nil` where there is none.
    var operationsPort: UInt16? { lines.known(.operations) }

    /// Starts a process and returns when it is ready for requests.
    ///
    /// - Parameter meanwhile: done before, with the port of its operations, as soon as the process answers there.
    static func start(
        schema: String, in folder: TestFolder, settings: [String: String] = [:], environment: [String: String] = [:],
        meanwhile: ((UInt16) async throws -> Void)? = nil
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
        if let meanwhile, let operations = await lines.port(of: .operations) { try await meanwhile(operations) }
        guard let port = await lines.port(of: .gateway) else {
            throw StartFailure(description: "weir did not start:\n" + lines.all.joined(separator: "\n"))
        }
        let end = Task { await ended.first { _ in true } ?? -1 }
        return WeirProcess(folder: folder, port: port, process: process, ended: end, lines: lines)
    }

    // A test that fails on the way leaves no process behind.
    deinit { if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) } }

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

    /// The environment of the tests without what would be a setting: a program takes nothing from its surroundings.
    ///
    /// But for the operations port, which is anywhere: processes that run beside each other must not meet at the usual one.
    static var environment: [String: String] {
        var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("WEIR_") }
        variables["WEIR_OPERATIONS_ADDRESS"] = "127.0.0.1:0"
        return variables
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
    /// What a process says that it listens for.
    enum Listener: String, CaseIterable {
        /// By the key of the line.
        case gateway = "address"
        case operations = "url"
    }

    private struct State {
        var rest = Data()
        var lines: [String] = []
        var hasEnded = false
        var ports: [Listener: UInt16] = [:]
        var waiting: [(listener: Listener, continuation: CheckedContinuation<UInt16?, Never>)] = []
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

        /// Those who wait for nothing any more.
        mutating func takeServed() -> [(listener: Listener, continuation: CheckedContinuation<UInt16?, Never>)] {
            let isServed = { [hasEnded, ports] (listener: Listener) in hasEnded || ports[listener] != nil }
            defer { waiting.removeAll { isServed($0.listener) } }
            return waiting.filter { isServed($0.listener) }
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
                for listener in Listener.allCases where state.ports[listener] == nil {
                    state.ports[listener] = Self.port(in: line, listener)
                }
            }
        }
    }

    func end() { update { $0.hasEnded = true } }

    /// The port, where it is known.
    func known(_ listener: Listener) -> UInt16? { state.withLock { $0.ports[listener] } }

    /// The port that the process says it listens at; `nil` when it ended without.
    func port(of listener: Listener) async -> UInt16? {
        await withCheckedContinuation { continuation in
            update { $0.waiting.append((listener, continuation)) }
        }
    }

    /// Whether there is a line with a text, or comes before the end.
    func contains(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            update { $0.readers.append((text, continuation)) }
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let (answered, served, ports) = state.withLock { state in
            change(&state)
            return (state.answered(), state.takeServed(), state.ports)
        }
        for (reader, isThere) in answered { reader.resume(returning: isThere) }
        for (listener, continuation) in served { continuation.resume(returning: ports[listener]) }
    }

    private static func port(in line: String, _ listener: Listener) -> UInt16? {
        guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            let place = object[listener.rawValue] as? String, let colon = place.lastIndex(of: ":")
        else { return nil }
        return UInt16(place[place.index(after: colon)...].prefix { $0 != "/" })
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
