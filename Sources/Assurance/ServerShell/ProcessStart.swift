import Foundation

/// Starts processes one at a time: Foundation's `Process.run` was seen to crash when several start at once.
package enum ProcessStart {
    private static let lock = NSLock()

    /// Starts a process, after others have started.
    package static func run(_ process: Process) throws {
        lock.lock()
        defer { lock.unlock() }
        try process.run()
    }

    /// Starts a process, after others have started.
    ///
    /// - Parameter withOutput: whether its standard output comes with its standard error.
    /// - Returns: its standard error, which ends with the process, since no other process inherits the pipe.
    package static func runWithErrors(_ process: Process, withOutput: Bool = false) throws -> FileHandle {
        lock.lock()
        defer { lock.unlock() }
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0, fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0, fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0
        else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        let errors = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        let writing = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        process.standardError = writing
        if withOutput { process.standardOutput = writing }
        try process.run()
        try writing.close()
        return errors
    }
}
