import Glibc
import LoadTools
import Synchronization

/// A process of a cluster, with a log file of its own; it keeps its ports and folder when it is restarted.
final class Member: Sendable {
    enum Role: String, Sendable, CaseIterable {
        case gateway, ingest, ordering, fanout
    }

    private struct State {
        var process: pid_t?
        /// Completes with the status of `waitpid`.
        var ended: Task<Int32, any Error>?
        /// The last process that this program has ended; it may have been started again since.
        var ending: pid_t?
        /// Whether it was killed because it did not stop.
        var wasKilled = false
    }

    let role: Role
    let name: String
    /// The proxies between it and what it depends on.
    let proxies: [(name: String, proxy: FaultyProxy)]
    let logFile: String
    private let program: String
    private let arguments: [String]
    private let operationsPort: UInt16
    private let events: EventLog
    /// Called when the process ends and this program did not end it, with the status.
    private let onEnd: @Sendable (Member, Int32) -> Void
    private let state = Mutex(State())

    init(
        _ role: Role, name: String, program: String, arguments: [String], operationsPort: UInt16, folder: String,
        proxies: [(name: String, proxy: FaultyProxy)], _ events: EventLog,
        onEnd: @escaping @Sendable (Member, Int32) -> Void
    ) {
        self.role = role
        self.name = name
        self.proxies = proxies
        self.program = program
        self.arguments =
            ["weir", role.rawValue] + arguments + ["--operations.address", "127.0.0.1:\(operationsPort)"]
        self.operationsPort = operationsPort
        self.events = events
        self.onEnd = onEnd
        logFile = "\(folder)/\(name).log"
    }

    /// Starts the process after its end.
    func start() throws {
        let process = try ChildProcess.start(arguments, at: program, appendingTo: logFile)
        events.record("\(name) starts as process \(process)")
        let ended = Task { try await LoadThreads.run { ChildProcess.wait(for: process) } }
        state.withLock { state in
            state.process = process
            state.ended = ended
            state.wasKilled = false
        }
        Task { [self] in
            let status = try await ended.value
            let isExpected = state.withLock { state in
                // Its id may be another process's from now on.
                if state.process == process { state.process = nil }
                return state.ending == process
            }
            events.record("\(name), process \(process), has ended: \(Self.text(of: status))")
            if !isExpected { onEnd(self, status) }
        }
    }

    /// Seconds that a process may take to stop before it is killed: more than the sum of the limits of its services.
    private static let stopLimit = 150

    /// Sends a signal that ends the process and waits for the end; `nil` where it does not run.
    ///
    /// - Returns: the status of `waitpid`.
    func end(_ signal: Int32) async throws -> Int32? {
        let ended = state.withLock { state -> Task<Int32, any Error>? in
            guard let process = state.process else { return nil }
            state.ending = process
            kill(process, signal)
            return state.ended
        }
        let limit = Task { [self] in
            try await Task.sleep(for: .seconds(Self.stopLimit))
            events.record("UNCLEAN \(name) did not end within \(Self.stopLimit) s of signal \(signal), and is killed")
            state.withLock { $0.wasKilled = true }
            send(SIGKILL)
        }
        defer { limit.cancel() }
        return try await ended?.value
    }

    /// Whether the process was killed because it did not stop in time.
    var wasKilled: Bool { state.withLock { $0.wasKilled } }

    /// Sends SIGSTOP, SIGCONT or SIGKILL, and does not wait.
    func send(_ signal: Int32) {
        state.withLock { state in
            if signal == SIGKILL { state.ending = state.process }
            if let process = state.process { kill(process, signal) }
        }
    }

    /// Why the process is not ready; `nil` where it is.
    ///
    /// Blocks.
    func unreadiness() -> String? {
        let request = Array("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
        do {
            return try LoadConnection(port: operationsPort, timeLimitSeconds: 5).exchange(request) { status, body in
                status == 200 ? nil : "\(status) \(String(decoding: body, as: UTF8.self))"
            }
        } catch {
            return "\(error)"
        }
    }

    /// What the status of `waitpid` says.
    static func text(of status: Int32) -> String {
        status & 0x7F == 0 ? "exit code \((status >> 8) & 0xFF)" : "signal \(status & 0x7F)"
    }

    /// Whether a process crashed that was sent a signal: another one ended it.
    ///
    /// SIGTERM itself ends a process that has just started.
    static func isCrash(_ status: Int32, after signal: Int32? = nil) -> Bool {
        status & 0x7F != 0 && status & 0x7F != signal
    }

    /// What is wrong with the end of a process that was sent a signal; `nil` for nothing.
    static func objection(to status: Int32, after signal: Int32) -> String? {
        status == 0 || status & 0x7F == signal ? nil : "\(text(of: status)) after signal \(signal)"
    }
}
