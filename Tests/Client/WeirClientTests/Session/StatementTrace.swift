import CWeirSQLite
import Foundation
import Synchronization

/// Calls a closure before each statement of the connections to a file, on the connection's thread.
enum StatementTrace {
    private static let closures = Mutex<[String: @Sendable (_ connection: OpaquePointer?, _ sql: String) -> Void]>([:])
    private static let isRegistered: Bool = {
        // SQLite calls it for each new connection, with other parameters than its type says.
        let entry: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32 = {
            database, _, _ in
            sqlite3_trace_v2(
                database, UInt32(SQLITE_TRACE_STMT),
                { _, _, statement, text in
                    let sql = text.map { String(cString: $0.assumingMemoryBound(to: CChar.self)) }
                    StatementTrace.willRun(sqlite3_db_handle(statement.map { OpaquePointer($0) }), sql ?? "")
                    return 0
                }, nil)
        }
        return sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self)) == SQLITE_OK
    }()

    /// Begins with the connections to this file that are opened from now on.
    ///
    /// - Parameter part: what a statement must have for the closure to be called.
    static func begin(_ path: String, before part: String = "", _ body: @escaping @Sendable () -> Void) {
        begin(path) { sql in if part.isEmpty || sql.contains(part) { body() } }
    }

    /// Begins with the connections to this file that are opened from now on, and passes the text of each statement.
    static func begin(_ path: String, before body: @escaping @Sendable (_ sql: String) -> Void) {
        precondition(isRegistered)
        closures.withLock { $0[real(path)] = { _, sql in body(sql) } }
    }

    /// Makes the connections to this file that are opened from now on fail at once where another one has the lock.
    static func beginWithoutWaiting(_ path: String) {
        precondition(isRegistered)
        closures.withLock { $0[real(path)] = { connection, _ in sqlite3_busy_timeout(connection, 0) } }
    }

    static func end(_ path: String) { closures.withLock { $0[real(path)] = nil } }

    /// SQLite names a file by its real path.
    private static func real(_ path: String) -> String {
        URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    }

    private static func willRun(_ database: OpaquePointer?, _ sql: String) {
        guard let name = sqlite3_db_filename(database, "main") else { return }
        closures.withLock { $0[String(cString: name)] }?(database, sql)
    }
}

/// How many statements the connections to a file have run that were opened after this.
final class StatementCount: Sendable {
    private let path: String
    private let count = Mutex(0)

    /// - Parameter part: what a statement must have to be counted.
    init(path: String, of part: String = "") {
        self.path = path
        StatementTrace.begin(path, before: part) { [self] in count.withLock { $0 += 1 } }
    }

    /// How many a closure runs.
    func during(_ body: () async throws -> Void) async rethrows -> Int {
        let before = count.withLock { $0 }
        try await body()
        return count.withLock { $0 } - before
    }

    func stop() { StatementTrace.end(path) }
}
