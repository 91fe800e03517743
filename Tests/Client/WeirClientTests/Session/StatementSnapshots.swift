import Foundation
import Synchronization

/// What a file is like before each statement of its connections: what a process leaves that is killed there.
///
/// The operating system keeps what a killed process has written, so a copy of the database and its -wal is the same as what the next
/// process finds. States that follow each other without a difference are taken once.
final class StatementSnapshots: Sendable {
    private struct State {
        var files: [String: Data] = [:]
        /// A file's suffix and its bytes.
        var snapshots: [[String: Data]] = []
    }

    private let path: String
    /// Is called with each snapshot, on the connection's thread.
    private let taken: @Sendable () -> Void
    private let state = Mutex(State())

    /// Begins with the connections to this file that are opened from now on.
    init(path: String, taken: @escaping @Sendable () -> Void) {
        self.path = path
        self.taken = taken
        StatementTrace.begin(path) { [self] in take() }
    }

    /// Ends recording.
    func stop() { StatementTrace.end(path) }

    var count: Int { state.withLock { $0.snapshots.count } }

    /// Writes the files of a snapshot.
    func write(_ number: Int, to path: String) throws {
        for (suffix, bytes) in state.withLock({ $0.snapshots[number] }) {
            try bytes.write(to: URL(fileURLWithPath: path + suffix))
        }
    }

    private func take() {
        let isNew = state.withLock { state in
            var files: [String: Data] = [:]
            for suffix in ["", "-wal"] { files[suffix] = FileManager.default.contents(atPath: path + suffix) }
            if files == state.files { return false }
            state.files = files
            state.snapshots.append(files)
            return true
        }
        if isNew { taken() }
    }
}
