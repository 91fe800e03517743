import Foundation

/// Starts processes one at a time: Foundation's `Process.run` was seen to crash when several start at once.
enum ProcessStart {
    private static let turn = NSLock()

    /// Starts a process when its turn has come.
    static func run(_ process: Process) throws {
        turn.lock()
        defer { turn.unlock() }
        try process.run()
    }

    /// Starts a process when its turn has come; its standard error, which ends with the process: no other one gets the pipe.
    static func runWithErrors(_ process: Process) throws -> FileHandle {
        turn.lock()
        defer { turn.unlock() }
        let pipe = Pipe()
        for handle in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
            guard fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw POSIXError(.EBADF) }
        }
        process.standardError = pipe
        try process.run()
        return pipe.fileHandleForReading
    }
}
