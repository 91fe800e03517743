import Glibc
import Synchronization

/// A process of this same program, which ends with whoever started it.
final class WeirProcess: Sendable {
    let process: pid_t
    /// What it says, read to its end so that it never waits for its reader.
    let lines: LogLines
    private let hasEnded = Mutex(false)
    private let interruption: Interruption

    /// Starts a process; its log is read by whoever calls.
    ///
    /// - Parameter arguments: the program's name and what follows.
    init(_ arguments: [String], interruption: Interruption) throws {
        let (process, errors) = try interruption.start { () throws(BenchmarkFailure) in
            try ChildProcess.start(arguments, at: "/proc/self/exe", reading: STDERR_FILENO)
        }
        self.process = process
        self.interruption = interruption
        lines = LogLines(errors)
    }

    deinit {
        // Not stopped: something threw, and nobody is to be left behind.
        if !hasEnded.withLock({ $0 }) {
            interruption.forget(process)
            kill(process, SIGKILL)
            _ = ChildProcess.wait(for: process)
        }
    }

    /// Asks the process to stop, and waits until it has.
    func stop() async throws {
        try await end { kill($0, SIGTERM) }
    }

    /// Runs a command to its end.
    static func run(_ arguments: [String], interruption: Interruption) async throws {
        let command = try WeirProcess(arguments, interruption: interruption)
        command.lines.readOn()
        try await command.end { _ in }
    }

    private func end(_ ask: (pid_t) -> Void) async throws {
        interruption.forget(process)
        ask(process)
        let process = process
        let status = try await LoadThreads.run { ChildProcess.wait(for: process) }
        hasEnded.withLock { $0 = true }
        guard status == 0 else {
            throw BenchmarkFailure("a process of Weir failed:\n" + lines.newest.joined(separator: "\n"))
        }
    }
}
