import CSQLite

/// One open database file.
///
/// It belongs to the thread, actor or closure that opened it, which the compiler sees to: it is not `Sendable`. Its
/// calls block, so they have no place on the cooperative pool; `DatabaseWriter` and `DatabaseReaderPool` give it a
/// thread.
///
/// The owner calls `close()`; letting go of an open connection is a programmer's mistake that debug builds trap.
package final class Connection {
    /// The file.
    package let path: String
    /// Set until the connection is closed.
    private var database: OpaquePointer?
    /// Compiled statements that nobody uses at the moment; as many as there are literals in the program.
    private var idle: [StatementKey: OpaquePointer] = [:]
    /// Whether SQLite rolled the transaction of `transaction(_:_:)` back by itself, while its closure still runs.
    var hasLostTransaction = false
    /// Whether a closure of `transaction(_:_:)` runs.
    var isInsideTransaction = false

    /// Opens a file and sets the connection up.
    ///
    /// The path always names a file: SQLite's special names, such as `:memory:`, are taken literally. Foreign keys are
    /// not enforced, double quotes never make a string, and SQL cannot change the schema's own tables.
    ///
    /// - Throws: `SQLiteError` with a message that says what to do.
    package init(path: String, access: Access, options: ConnectionOptions = ConnectionOptions()) throws(SQLiteError) {
        self.path = path
        guard Library.isThreadsafe, !path.utf8.contains(0), !path.isEmpty else {
            throw SQLiteError(
                code: .cannotOpen, extendedCode: SQLITE_CANTOPEN,
                message: Library.isThreadsafe
                    ? "a path has at least one byte, and none of them is NUL"
                    : "this SQLite library was built without support for threads; install another build",
                action: .open, sql: nil, path: path, systemError: 0)
        }
        // A path that starts with "/" or "./" is never taken for a URI or one of SQLite's special names.
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
            throw SQLiteError(
                code: error.code, extendedCode: error.extendedCode,
                message: OpenFailure.explain(error, forWriting: forWriting),
                action: .open, sql: error.sql, path: path, systemError: error.systemError)
        }
    }

    deinit {
        assert(database == nil, "the connection to \(path) was not closed")
        discard()
    }

    /// Closes the connection; closing again is harmless.
    ///
    /// - Throws: `SQLiteError` that is busy while a `Statement` of this connection lives; it then stays open.
    package func close() throws(SQLiteError) {
        guard let database else { return }
        finalizeIdleStatements()
        let code = sqlite3_close(database)
        if code != SQLITE_OK { throw failure(code, .close) }
        self.database = nil
    }

    /// Whether `close()` has not succeeded yet.
    package var isOpen: Bool { database != nil }

    // MARK: Statements

    /// Compiles one statement.
    ///
    /// - Throws: `SQLiteError`; also when the text holds no statement or more than one.
    package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        let bytes = Array(sql.utf8)
        let (first, end) = try compile(bytes, from: 0, flags: 0)
        guard let first else { throw failure(SQLITE_MISUSE, .prepare, sql: sql, message: Self.noStatement) }
        let statement = Statement(handle: first, connection: self, key: nil)
        // What follows may be white space and comments only, which compile to nothing.
        if end < bytes.count {
            let (second, _) = try compile(bytes, from: end, flags: 0)
            if let second {
                sqlite3_finalize(second)
                throw failure(SQLITE_MISUSE, .prepare, sql: sql, message: "the text holds more than one statement")
            }
        }
        return statement
    }

    /// A statement that the connection keeps: compiled at the first use, handed out again afterwards.
    ///
    /// It goes back, reset and without values, at the end of its life. While one is in use, the same literal gives a
    /// second statement.
    package func statement(_ sql: StaticString) throws(SQLiteError) -> Statement {
        let key = StatementKey(sql)
        if let handle = idle.removeValue(forKey: key) {
            return Statement(handle: handle, connection: self, key: key)
        }
        let bytes = Array(sql.description.utf8)
        let (handle, end) = try compile(bytes, from: 0, flags: UInt32(SQLITE_PREPARE_PERSISTENT))
        guard let handle else {
            throw failure(SQLITE_MISUSE, .prepare, sql: sql.description, message: Self.noStatement)
        }
        guard end == bytes.count else {
            sqlite3_finalize(handle)
            throw failure(
                SQLITE_MISUSE, .prepare, sql: sql.description, message: "the text goes on after the statement")
        }
        return Statement(handle: handle, connection: self, key: key)
    }

    /// Runs all statements of a text, one after the other, ignoring the rows they give.
    ///
    /// Without a transaction around it, the statements before a failing one stay done.
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

    /// Takes the handle of a statement that nobody uses any more.
    func retire(_ handle: OpaquePointer, key: StatementKey?) {
        guard let key, idle[key] == nil else {
            sqlite3_finalize(handle)
            return
        }
        // Both only repeat the error of the last step, which was thrown then.
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        idle[key] = handle
    }

    private static let noStatement = "there is no statement in the text"

    private func compile(
        _ sql: [UInt8], from start: Int, flags: UInt32
    ) throws(SQLiteError) -> (handle: OpaquePointer?, end: Int) {
        // SQLite stops at a NUL and would silently leave out what follows.
        if sql.contains(0) {
            throw failure(
                SQLITE_MISUSE, .prepare, sql: String(decoding: sql, as: UTF8.self), message: "the SQL holds a NUL")
        }
        var handle: OpaquePointer?
        var end = start
        let database = openDatabase
        let code = sql.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return SQLITE_OK }
            let text = base.assumingMemoryBound(to: CChar.self)
            var tail: UnsafePointer<CChar>?
            // Longer texts than SQLite's own limit of 1 GB are refused by it as too big.
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

    /// The handle; using a connection after its end is a programmer's mistake.
    var openDatabase: OpaquePointer {
        guard let database else { preconditionFailure("the connection to \(path) is closed") }
        return database
    }

    /// The error that a call of SQLite on this connection just returned.
    func failure(
        _ code: Int32, _ action: SQLiteError.Action, sql: String? = nil, message: String? = nil
    ) -> SQLiteError {
        // Misuse is returned without being noted in the connection, whose message is then that of an older error.
        let isNoted = database != nil && sqlite3_extended_errcode(database) == code
        let words = message ?? String(cString: isNoted ? sqlite3_errmsg(database) : sqlite3_errstr(code))
        let primary = ResultCode(rawValue: code)
        let hasSystemError = primary == .cannotOpen || primary == .inputOutput
        return SQLiteError(
            code: primary, extendedCode: code, message: words, action: action, sql: sql, path: path,
            systemError: hasSystemError && database != nil ? sqlite3_system_errno(database) : 0)
    }

    private func finalizeIdleStatements() {
        for handle in idle.values { sqlite3_finalize(handle) }
        idle.removeAll()
    }

    /// Gives everything back without looking at errors: after a failed open, or a forgotten `close()`.
    private func discard() {
        finalizeIdleStatements()
        sqlite3_close_v2(database)
        database = nil
    }
}

/// The identity of an SQL literal: its place in the program.
///
/// Equal texts at two places count as two, which costs a second compilation and nothing else.
struct StatementKey: Hashable {
    private let address: UnsafeRawPointer
    private let count: Int

    init(_ sql: StaticString) {
        precondition(sql.hasPointerRepresentation, "an SQL literal is longer than one character")
        address = UnsafeRawPointer(sql.utf8Start)
        count = sql.utf8CodeUnitCount
    }
}
