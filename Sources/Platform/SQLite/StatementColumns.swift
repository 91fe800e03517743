import CSQLite

/// The type of one value in a row; SQLite's columns hold any of them unless their table is STRICT.
package enum ColumnType: Sendable {
    /// A 64-bit integer.
    case integer
    /// A floating-point number.
    case double
    /// UTF-8.
    case text
    /// Bytes.
    case blob
    /// No value.
    case null
}

// No accessor lets SQLite convert a value in place, so bytes that are lent stay where they are until the next step.
extension Statement {
    /// The type of a value in the current row.
    package func type(at column: Int) -> ColumnType {
        switch sqlite3_column_type(handle, checked(column)) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .double
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    /// Whether a column of the current row is NULL.
    package func isNull(at column: Int) -> Bool {
        type(at: column) == .null
    }

    /// An integer; any other type is refused as a mismatch.
    package func integer(at column: Int) throws(SQLiteError) -> Int64 {
        guard sqlite3_column_type(handle, checked(column)) == SQLITE_INTEGER else {
            throw mismatch(column, "an integer")
        }
        return sqlite3_column_int64(handle, Int32(column))
    }

    /// A number; an integer is converted, any other type is refused as a mismatch.
    package func double(at column: Int) throws(SQLiteError) -> Double {
        let type = sqlite3_column_type(handle, checked(column))
        guard type == SQLITE_FLOAT || type == SQLITE_INTEGER else { throw mismatch(column, "a number") }
        return sqlite3_column_double(handle, Int32(column))
    }

    /// A text; any other type, and bytes that are not UTF-8, are refused as a mismatch.
    package func text(at column: Int) throws(SQLiteError) -> String {
        guard sqlite3_column_type(handle, checked(column)) == SQLITE_TEXT else { throw mismatch(column, "a text") }
        guard let text = String(validating: try lentBytes(at: column), as: UTF8.self) else {
            throw mismatch(column, "valid UTF-8")
        }
        return text
    }

    /// A copy of the bytes of a blob or text; any other type is refused as a mismatch.
    package func bytes(at column: Int) throws(SQLiteError) -> [UInt8] {
        Array(try lentBytes(at: column))
    }

    /// Lends the bytes of a blob or text to a closure, without a copy; any other type is refused as a mismatch.
    @inlinable
    package func withBytes<Result>(at column: Int, _ body: (RawSpan) throws -> Result) throws -> Result {
        try body(try lentBytes(at: column).bytes)
    }

    /// The bytes of a blob or text where SQLite holds them: valid until the statement steps, is reset or ends.
    @usableFromInline
    func lentBytes(at column: Int) throws(SQLiteError) -> UnsafeRawBufferPointer {
        let type = sqlite3_column_type(handle, checked(column))
        guard type == SQLITE_BLOB || type == SQLITE_TEXT else { throw mismatch(column, "a blob or text") }
        let index = Int32(column)
        guard let base = sqlite3_column_blob(handle, index) else {
            // Nil stands for no bytes, or for no memory to lay out a blob of zeros.
            if sqlite3_column_bytes(handle, index) == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
            throw connection.failure(SQLITE_NOMEM, .read, sql: sql)
        }
        return UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, index)))
    }

    /// Reading beside a row is a programmer's mistake, to which SQLite would answer with NULL.
    private func checked(_ column: Int) -> Int32 {
        precondition(hasRow, "columns are read after a step that gave a row")
        precondition(column >= 0 && column < columnCount, "a column counts from 0 and is below columnCount")
        return Int32(column)
    }

    private func mismatch(_ column: Int, _ wanted: String) -> SQLiteError {
        connection.failure(
            SQLITE_MISMATCH, .read, sql: sql, message: "column \(column) holds \(type(at: column)), not \(wanted)")
    }
}
