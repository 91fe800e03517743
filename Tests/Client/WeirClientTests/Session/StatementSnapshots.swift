import CSQLite
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

    private static let recorders = Mutex<[String: StatementSnapshots]>([:])
    private static let isRegistered: Bool = {
        // SQLite calls it for each new connection, with other parameters than its type says.
        let entry: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32 = {
            database, _, _ in
            sqlite3_trace_v2(
                database, UInt32(SQLITE_TRACE_STMT),
                { _, _, statement, _ in
                    StatementSnapshots.willRun(sqlite3_db_handle(statement.map { OpaquePointer($0) }))
                    return 0
                }, nil)
        }
        return sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self)) == SQLITE_OK
    }()

    private let path: String
    /// Is called with each snapshot, on the connection's thread.
    private let taken: @Sendable () -> Void
    private let state = Mutex(State())

    /// Begins with the connections to this file that are opened from now on.
    init(path: String, taken: @escaping @Sendable () -> Void) {
        self.path = path
        self.taken = taken
        precondition(Self.isRegistered)
        // SQLite names a file by its real path.
        let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        Self.recorders.withLock { $0[real] = self }
    }

    /// Ends recording.
    func stop() { Self.recorders.withLock { $0 = $0.filter { $0.value !== self } } }

    var count: Int { state.withLock { $0.snapshots.count } }

    /// Writes the files of a snapshot.
    func write(_ number: Int, to path: String) throws {
        for (suffix, bytes) in state.withLock({ $0.snapshots[number] }) {
            try bytes.write(to: URL(fileURLWithPath: path + suffix))
        }
    }

    private static func willRun(_ database: OpaquePointer?) {
        guard let name = sqlite3_db_filename(database, "main") else { return }
        recorders.withLock { $0[String(cString: name)] }?.take()
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
