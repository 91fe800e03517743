import CWeirSQLite

/// A compiled SQL statement: bind its parameters, step through its rows, reset and reuse it.
///
/// Parameters count from 1, as `?1` does; columns from 0. Binding is possible before the first `step()` and after
/// `reset()`; a step that ends the statement or fails resets it. Until then its read transaction stays open.
///
/// At the end of its lifetime it is finalized or returns to its connection's cache.
package struct Statement: ~Copyable {
    /// What its connection caches it under.
    enum Key {
        case literal(StatementKey)
        case text(String)
    }

    /// Valid for the statement's lifetime, during which the connection cannot be closed.
    let handle: OpaquePointer
    let connection: Connection
    private let key: Key?
    /// 0 for a statement that returns no rows.
    package let columnCount: Int
    /// Whether the last `step()` reached a row, whose columns can be read.
    package private(set) var hasRow = false

    init(handle: OpaquePointer, connection: Connection, key: Key?) {
        self.handle = handle
        self.connection = connection
        self.key = key
        columnCount = Int(sqlite3_column_count(handle))
    }

    deinit {
        connection.retire(handle, key: key)
    }

    package var sql: String { String(cString: sqlite3_sql(handle)) }

    /// Advances to the next row; false at the end, which resets the statement.
    ///
    /// - Throws: `SQLiteError`; the statement is then reset and can be reused.
    package mutating func step() throws(SQLiteError) -> Bool {
        if connection.hasLostTransaction { throw lostTransaction }
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW {
            hasRow = true
            return true
        }
        hasRow = false
        if code == SQLITE_DONE {
            sqlite3_reset(handle)
            return false
        }
        let error = connection.failure(code, .step, sql: sql)
        // Returns the error of the step, which is thrown below.
        sqlite3_reset(handle)
        connection.checkTransactionAfterFailedStep()
        throw error
    }

    /// Runs the statement to its end and ignores its rows; the bindings stay.
    package mutating func run() throws(SQLiteError) {
        while try step() {}
    }

    /// Makes the statement ready to be bound and run again; the bindings stay.
    package mutating func reset() {
        hasRow = false
        // Returns the error of the last step, which was already thrown.
        sqlite3_reset(handle)
    }

    private var lostTransaction: SQLiteError {
        connection.failure(
            SQLITE_ABORT, .step, sql: sql,
            message: "an earlier error rolled back the transaction; return from its closure")
    }
}
