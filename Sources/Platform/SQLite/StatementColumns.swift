import CWeirSQLite

/// The type of one value in a row; a column holds values of any type unless its table is STRICT.
package enum ColumnType: Sendable {
    case integer, double, text, blob, null
}

// No accessor lets SQLite convert a value in place, so borrowed bytes stay valid until the next step.
extension Statement {
    package func type(at column: Int) -> ColumnType {
        switch sqlite3_column_type(handle, checked(column)) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .double
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    package func isNull(at column: Int) -> Bool {
        type(at: column) == .null
    }

    /// Throws a mismatch for any other type.
    package func integer(at column: Int) throws(SQLiteError) -> Int64 {
        guard sqlite3_column_type(handle, checked(column)) == SQLITE_INTEGER else {
            throw mismatch(column, "an integer")
        }
        return sqlite3_column_int64(handle, Int32(column))
    }

    /// Converts an integer; throws a mismatch for any other type.
    package func double(at column: Int) throws(SQLiteError) -> Double {
        let type = sqlite3_column_type(handle, checked(column))
        guard type == SQLITE_FLOAT || type == SQLITE_INTEGER else { throw mismatch(column, "a number") }
        return sqlite3_column_double(handle, Int32(column))
    }

    /// Throws a mismatch for any other type and for invalid UTF-8.
    package func text(at column: Int) throws(SQLiteError) -> String {
        guard sqlite3_column_type(handle, checked(column)) == SQLITE_TEXT else { throw mismatch(column, "a text") }
        guard let text = String(validating: try borrowedBytes(at: column), as: UTF8.self) else {
            throw mismatch(column, "valid UTF-8")
        }
        return text
    }

    /// A copy of the bytes of a blob or text; throws a mismatch for any other type.
    package func bytes(at column: Int) throws(SQLiteError) -> [UInt8] {
        Array(try borrowedBytes(at: column))
    }

    /// Lends the bytes of a blob or text without a copy; throws a mismatch for any other type.
    @inlinable
    package func withBytes<Result>(at column: Int, _ body: (RawSpan) throws -> Result) throws -> Result {
        try body(try borrowedBytes(at: column).bytes)
    }

    /// SQLite's own memory: valid until the statement steps, is reset or ends.
    @usableFromInline
    func borrowedBytes(at column: Int) throws(SQLiteError) -> UnsafeRawBufferPointer {
        let type = sqlite3_column_type(handle, checked(column))
        guard type == SQLITE_BLOB || type == SQLITE_TEXT else { throw mismatch(column, "a blob or text") }
        let index = Int32(column)
        guard let base = sqlite3_column_blob(handle, index) else {
            // Nil means an empty value, or too little memory to expand a zeroblob.
            if sqlite3_column_bytes(handle, index) == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
            throw connection.failure(SQLITE_NOMEM, .read, sql: sql)
        }
        return UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, index)))
    }

    /// SQLite itself would return NULL for a column that does not exist.
    private func checked(_ column: Int) -> Int32 {
        precondition(hasRow, "columns are read after a step that reached a row")
        precondition(column >= 0 && column < columnCount, "a column counts from 0 and is below columnCount")
        return Int32(column)
    }

    private func mismatch(_ column: Int, _ wanted: String) -> SQLiteError {
        connection.failure(
            SQLITE_MISMATCH, .read, sql: sql, message: "column \(column) holds \(type(at: column)), not \(wanted)")
    }
}
