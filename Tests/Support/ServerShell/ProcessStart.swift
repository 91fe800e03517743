import Foundation

/// Starts processes one at a time: Foundation's `Process.run` was seen to crash when several start at once.
package enum ProcessStart {
    private static let turn = NSLock()

    /// Starts a process when its turn has come.
    package static func run(_ process: Process) throws {
        turn.lock()
        defer { turn.unlock() }
        try process.run()
    }

    /// Starts a process when its turn has come.
    ///
    /// - Returns: its standard error, which ends with the process: no other process has the pipe.
    package static func runWithErrors(_ process: Process) throws -> FileHandle {
        turn.lock()
        defer { turn.unlock() }
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0, fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0, fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0
        else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        let errors = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        let writing = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        process.standardError = writing
        try process.run()
        try writing.close()
        return errors
    }
}
