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
}
