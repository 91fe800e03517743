import CWeirSQLite

/// One open database file.
///
/// It is not `Sendable`: it stays with the thread, actor or closure that opened it. Its calls block, so they must not run
/// on the cooperative pool; `DatabaseWriter` and `DatabaseReaderPool` give it a thread.
///
/// The owner calls `close()`; debug builds trap when an open connection is released.
package final class Connection {
    package let path: String
    /// `nil` after `close()`.
    private var database: OpaquePointer?
    private let busyTimeoutMilliseconds: Int32
    /// Compiled statements that are not in use; at most as many as there are literals in the program.
    private var idle: [StatementKey: OpaquePointer] = [:]
    /// Those of texts that the program made; at most ``maximumTexts``.
    private var idleTexts: [String: OpaquePointer] = [:]

    /// A hundred tables that are read and written, each with the columns of two schema versions.
    private static let maximumTexts = 400
    /// Whether SQLite itself rolled back the transaction whose closure still runs.
    var hasLostTransaction = false
    /// Whether a closure of `transaction(_:_:)` runs.
    var isInsideTransaction = false

    /// The path always names a file: SQLite's special names, such as `:memory:`, are taken literally.
    ///
    /// Foreign keys are not enforced, double quotes never delimit a string, and SQL cannot change `sqlite_schema`.
    ///
    /// - Throws: `SQLiteError` with a message that says what to do.
    package init(path: String, access: Access, options: ConnectionOptions = ConnectionOptions()) throws(SQLiteError) {
        self.path = path
        busyTimeoutMilliseconds = Int32(options.busyTimeoutMilliseconds)
        guard Library.isThreadsafe, !path.utf8.contains(0), !path.isEmpty else {
            throw SQLiteError(
                code: .cannotOpen, extendedCode: SQLITE_CANTOPEN,
                message: Library.isThreadsafe
                    ? "the path is empty or contains NUL"
                    : "this SQLite library was built without thread support; install another build",
                action: .open, sql: nil, path: path, systemError: 0)
        }
        // SQLite does not interpret a path that starts with "/" or "./" as a URI or a special name.
        let file = path.utf8.first == UInt8(ascii: "/") ? path : "./" + path
        let forWriting = if case .readWriteCreate = access { true } else { false }
        let mode = forWriting ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
        // One thread at a time uses a connection, so SQLite needs no mutex for it.
        let code = sqlite3_open_v2(file, &database, mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        do throws(SQLiteError) {
            if code != SQLITE_OK { throw failure(code, .open) }
            try setUp(access, options)
        } catch {
            discard()
            var explained = error
            explained.message = OpenFailure.explain(error, forWriting: forWriting)
            explained.action = .open
            throw explained
        }
    }

    deinit {
        assert(database == nil, "the connection to \(path) was not closed")
        discard()
    }

    /// May be repeated.
    ///
    /// - Throws: `SQLiteError` that is busy while a `Statement` of this connection exists; it then stays open.
    package func close() throws(SQLiteError) {
        guard let database else { return }
        finalizeIdleStatements()
        let code = sqlite3_close(database)
        if code != SQLITE_OK { throw failure(code, .close) }
        self.database = nil
    }

    package var isOpen: Bool { database != nil }

    /// The statements of ``statement(caching:)`` that are compiled and not in use.
    package var cachedTexts: Int { idleTexts.count }

    // MARK: Statements

    /// Compiles one statement.
    ///
    /// - Throws: `SQLiteError`; also when the text holds no statement or more than one.
    package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        let bytes = Array(sql.utf8)
        let (first, end) = try compile(bytes, from: 0, flags: 0)
        guard let first else { throw failure(SQLITE_MISUSE, .prepare, sql: sql, message: Self.noStatement) }
        let statement = Statement(handle: first, connection: self, key: nil)
        // White space and comments may follow, which compile to nothing.
        if end < bytes.count {
            let (second, _) = try compile(bytes, from: end, flags: 0)
            if let second {
                sqlite3_finalize(second)
                throw failure(SQLITE_MISUSE, .prepare, sql: sql, message: "the text holds more than one statement")
            }
        }
        return statement
    }

    /// A statement that the connection caches: compiled at its first use, reused afterwards.
    ///
    /// At the end of its lifetime it returns to the cache, reset and without bindings. While it is in use, the same literal
    /// gives a second statement.
    package func statement(_ sql: StaticString) throws(SQLiteError) -> Statement {
        let key = StatementKey(sql)
        if let handle = idle.removeValue(forKey: key) {
            return Statement(handle: handle, connection: self, key: .literal(key))
        }
        return Statement(handle: try compileToKeep(sql.description), connection: self, key: .literal(key))
    }

    /// A statement that the connection caches as ``statement(_:)`` does, for a text that the program makes, of a table of a schema.
    ///
    /// The cache has room for 400 of them; where more are in use, some are compiled again.
    package func statement(caching sql: String) throws(SQLiteError) -> Statement {
        if let handle = idleTexts.removeValue(forKey: sql) {
            return Statement(handle: handle, connection: self, key: .text(sql))
        }
        return Statement(handle: try compileToKeep(sql), connection: self, key: .text(sql))
    }

    private func compileToKeep(_ sql: String) throws(SQLiteError) -> OpaquePointer {
        let bytes = Array(sql.utf8)
        let (handle, end) = try compile(bytes, from: 0, flags: UInt32(SQLITE_PREPARE_PERSISTENT))
        guard let handle else { throw failure(SQLITE_MISUSE, .prepare, sql: sql, message: Self.noStatement) }
        guard end == bytes.count else {
            sqlite3_finalize(handle)
            throw failure(SQLITE_MISUSE, .prepare, sql: sql, message: "text follows the statement")
        }
        return handle
    }

    /// Runs all statements of a text and ignores the rows they return.
    ///
    /// Without a transaction around it, the statements before a failing one keep their effect.
    package func execute(_ sql: String) throws(SQLiteError) {
        let bytes = Array(sql.utf8)
        var start = 0
        while start < bytes.count {
            let (handle, end) = try compile(bytes, from: start, flags: 0)
            start = end
            guard let handle else { continue }
            var statement = Statement(handle: handle, connection: self, key: nil)
            try statement.run()
        }
    }

    /// Caches or finalizes the handle of a statement whose lifetime has ended.
    func retire(_ handle: OpaquePointer, key: Statement.Key?) {
        guard let key else {
            sqlite3_finalize(handle)
            return
        }
        // They return the error of the last step, which was already thrown.
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        switch key {
        case .literal(let key): sqlite3_finalize(idle.updateValue(handle, forKey: key))
        case .text(let sql):
            sqlite3_finalize(idleTexts.updateValue(handle, forKey: sql))
            if idleTexts.count > Self.maximumTexts, let other = idleTexts.keys.first(where: { $0 != sql }) {
                sqlite3_finalize(idleTexts.removeValue(forKey: other))
            }
        }
    }

    private static let noStatement = "the text has no statement"

    private func compile(
        _ sql: [UInt8], from start: Int, flags: UInt32
    ) throws(SQLiteError) -> (handle: OpaquePointer?, end: Int) {
        // SQLite stops at a NUL and would silently ignore the rest.
        if sql.contains(0) {
            throw failure(
                SQLITE_MISUSE, .prepare, sql: String(decoding: sql, as: UTF8.self), message: "the SQL contains NUL")
        }
        var handle: OpaquePointer?
        var end = start
        let database = openDatabase
        let code = sql.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return SQLITE_OK }
            let text = base.assumingMemoryBound(to: CChar.self)
            var tail: UnsafePointer<CChar>?
            // SQLite rejects texts above its own limit of 1 GB as too big.
            let count = Int32(clamping: bytes.count - start)
            let code = sqlite3_prepare_v3(database, text + start, count, flags, &handle, &tail)
            end = tail.map { $0 - text } ?? bytes.count
            return code
        }
        if code != SQLITE_OK {
            throw failure(code, .prepare, sql: String(decoding: sql[start...], as: UTF8.self))
        }
        return (handle, end)
    }

    // MARK: State

    /// The rows that the last INSERT, UPDATE or DELETE changed.
    package var changes: Int { Int(sqlite3_changes64(openDatabase)) }

    /// The application's number in the file's header, 0 in a new file.
    package func userVersion() throws(SQLiteError) -> Int32 {
        Int32(truncatingIfNeeded: try integer("PRAGMA user_version"))
    }

    /// Part of the open transaction, if there is one.
    package func setUserVersion(_ version: Int32) throws(SQLiteError) {
        try execute("PRAGMA user_version = \(version)")
    }

    /// The first column of the one row that a statement returns.
    package func integer(_ sql: StaticString) throws(SQLiteError) -> Int64 {
        var statement = try statement(sql)
        guard try statement.step() else {
            throw failure(SQLITE_ERROR, .read, sql: sql.description, message: "the statement returned no row")
        }
        return try statement.integer(at: 0)
    }

    /// Copies the write-ahead log into the database and truncates it, without waiting for other connections.
    ///
    /// - Returns: false when another connection reads or writes; then as much was copied as it permits.
    package func truncateWriteAheadLog() throws(SQLiteError) -> Bool {
        sqlite3_busy_timeout(openDatabase, 0)
        let code = sqlite3_wal_checkpoint_v2(openDatabase, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        sqlite3_busy_timeout(openDatabase, busyTimeoutMilliseconds)
        if code == SQLITE_OK { return true }
        let failure = failure(code, .checkpoint)
        guard failure.code == .busy else { throw failure }
        return false
    }

    /// How many instructions of SQLite's virtual machine run between two checks for cancellation: some milliseconds.
    private static let instructionsBetweenChecks: Int32 = 100_000

    /// Runs a closure whose statements are interrupted soon after the task is cancelled, such as the check of a whole file.
    ///
    /// A transaction around it is rolled back.
    ///
    /// - Throws: what the closure throws; `CancellationError` instead, once the task is cancelled.
    package func withCancellation<Value>(_ body: () throws -> Value) throws -> Value {
        sqlite3_progress_handler(
            openDatabase, Self.instructionsBetweenChecks, { _ in Task.isCancelled ? 1 : 0 }, nil)
        defer { sqlite3_progress_handler(openDatabase, 0, nil, nil) }
        do {
            return try body()
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }

    var openDatabase: OpaquePointer {
        guard let database else { preconditionFailure("the connection to \(path) is closed") }
        return database
    }

    /// The error that a call of SQLite on this connection just returned.
    func failure(
        _ code: Int32, _ action: SQLiteError.Action, sql: String? = nil, message: String? = nil
    ) -> SQLiteError {
        // Misuse is returned without being recorded in the connection, whose message is then that of an earlier error.
        let isRecorded = database != nil && sqlite3_extended_errcode(database) == code
        let text = message ?? String(cString: isRecorded ? sqlite3_errmsg(database) : sqlite3_errstr(code))
        let primary = ResultCode(rawValue: code)
        let hasSystemError = primary == .cannotOpen || primary == .inputOutput
        return SQLiteError(
            code: primary, extendedCode: code, message: text, action: action, sql: sql, path: path,
            systemError: hasSystemError && database != nil ? sqlite3_system_errno(database) : 0)
    }

    private func finalizeIdleStatements() {
        for handle in idle.values { sqlite3_finalize(handle) }
        for handle in idleTexts.values { sqlite3_finalize(handle) }
        idle.removeAll()
        idleTexts.removeAll()
    }

    /// Releases everything and ignores errors: after a failed open or a missing `close()`.
    private func discard() {
        finalizeIdleStatements()
        sqlite3_close_v2(database)
        database = nil
    }
}

/// Identifies an SQL literal by its address; equal texts at two addresses are compiled twice.
struct StatementKey: Hashable {
    private let address: UnsafeRawPointer
    private let count: Int

    init(_ sql: StaticString) {
        precondition(sql.hasPointerRepresentation, "an SQL literal is longer than one character")
        address = UnsafeRawPointer(sql.utf8Start)
        count = sql.utf8CodeUnitCount
    }
}
