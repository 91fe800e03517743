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

    /// What the process has logged.
    var log: [String] { lines.all }

    /// The port of its operations on 127.0.0.1, `nil` where there is none.
    var operationsPort: UInt16? { lines.known(.operations) }

    /// Starts a process and returns when it is ready for requests.
    ///
    /// - Parameter meanwhile: done before, with the port of its operations, as soon as the process answers there.
    static func start(
        schema: String, in folder: TestFolder, settings: [String: String] = [:],
        meanwhile: ((UInt16) async throws -> Void)? = nil
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
        if let meanwhile, let operations = await lines.port(of: .operations) { try await meanwhile(operations) }
        guard let port = await lines.port(of: .gateway) else {
            throw StartFailure(description: "weir did not start:\n" + lines.all.joined(separator: "\n"))
        }
        return WeirProcess(folder: folder, port: port, process: process, ended: ended, lines: lines)
    }

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

    private func update(_ change: (inout State) -> Void) {
        let (served, ports) = state.withLock { state in
            change(&state)
            return (state.takeServed(), state.ports)
        }
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
