import CSQLite

/// A compiled SQL statement: bind its parameters, step through its rows, reset it, use it again.
///
/// Parameters count from 1, as `?1` does; columns from 0. Binding is possible before the first `step()` and after
/// `reset()`; a step that ends the statement or fails resets it. A statement in the middle of its rows keeps its
/// read transaction open.
///
/// It frees itself, or goes back to its connection's stock, at the end of its life.
package struct Statement: ~Copyable {
    /// Valid as long as the statement lives; the connection, held below, cannot be closed before that.
    let handle: OpaquePointer
    let connection: Connection
    private let key: StatementKey?
    /// The number of columns of a row, 0 for a statement that gives none.
    package let columnCount: Int
    /// Whether the last `step()` gave a row, whose columns can be read.
    package private(set) var hasRow = false

    /// Takes over a handle of this connection.
    init(handle: OpaquePointer, connection: Connection, key: StatementKey?) {
        self.handle = handle
        self.connection = connection
        self.key = key
        columnCount = Int(sqlite3_column_count(handle))
    }

    deinit {
        connection.retire(handle, key: key)
    }

    /// The text that was compiled.
    package var sql: String { String(cString: sqlite3_sql(handle)) }

    /// The number of parameters, which is the largest index.
    package var parameterCount: Int { Int(sqlite3_bind_parameter_count(handle)) }

    /// Goes on to the next row; false at the end, when the statement is ready for its next use.
    ///
    /// - Throws: `SQLiteError`; the statement is then reset and can be used again.
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
        // Repeats the error of the step, which is thrown here.
        sqlite3_reset(handle)
        connection.noteFailedStep()
        throw error
    }

    /// Runs the statement to its end, passing over any rows; the bindings stay.
    package mutating func run() throws(SQLiteError) {
        while try step() {}
    }

    /// Leaves the current row, so that the statement can be bound and run anew; the bindings stay.
    package mutating func reset() {
        hasRow = false
        // Repeats the error of the last step, which was thrown then.
        sqlite3_reset(handle)
    }

    /// Makes every parameter NULL.
    package mutating func clearBindings() {
        // Cannot fail.
        sqlite3_clear_bindings(handle)
    }

    private var lostTransaction: SQLiteError {
        connection.failure(
            SQLITE_ABORT, .step, sql: sql, message: "an earlier error rolled the transaction back; leave its closure")
    }
}
