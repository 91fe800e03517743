import Glibc
import LoadTools
import Synchronization

/// The program `weir` that is measured.
struct WeirProgram: Sendable {
    let path: String
    let interruption: Interruption

    func start(_ arguments: [String]) throws -> WeirProcess { try WeirProcess(arguments, of: self) }

    func run(_ arguments: [String]) async throws {
        let command = try start(arguments)
        command.lines.readOn()
        try await command.untilEnd()
    }
}

/// A process of `weir`, which is killed when its last reference goes.
final class WeirProcess: Sendable {
    let process: pid_t
    /// Its log, which the caller must read.
    let lines: LogLines
    private let hasEnded = Mutex(false)
    private let interruption: Interruption

    fileprivate init(_ arguments: [String], of program: WeirProgram) throws {
        let (process, errors) = try program.interruption.start { () throws(LoadFailure) in
            try ChildProcess.start(["weir"] + arguments, at: program.path, reading: STDERR_FILENO)
        }
        self.process = process
        interruption = program.interruption
        lines = LogLines(errors)
    }

    deinit {
        // Not stopped, since something threw.
        if !hasEnded.withLock({ $0 }) {
            interruption.forget(process)
            kill(process, SIGKILL)
            _ = ChildProcess.wait(for: process)
        }
    }

    func stop() async throws {
        try await end { kill($0, SIGTERM) }
    }

    fileprivate func untilEnd() async throws {
        try await end { _ in }
    }

    private func end(_ signal: (pid_t) -> Void) async throws {
        interruption.forget(process)
        signal(process)
        let process = process
        let status = try await LoadThreads.run { ChildProcess.wait(for: process) }
        hasEnded.withLock { $0 = true }
        guard status == 0 else {
            throw LoadFailure("a process of Weir failed:\n" + lines.newest.joined(separator: "\n"))
        }
    }
}
