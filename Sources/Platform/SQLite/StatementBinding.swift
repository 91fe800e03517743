import CWeirSQLite

extension Statement {
    package mutating func bind(integer value: Int64, at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_int64(handle, Int32(clamping: index), value))
    }

    /// NaN becomes NULL, since SQLite has no NaN.
    package mutating func bind(double value: Double, at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_double(handle, Int32(clamping: index), value))
    }

    package mutating func bind(text: String, at index: Int) throws(SQLiteError) {
        try bind(text: text.utf8.span.bytes, at: index)
    }

    /// SQLite copies the bytes; the caller guarantees that they are UTF-8, which may contain NUL.
    package mutating func bind(text utf8: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        let code = utf8.withUnsafeBytes { bytes in
            Self.withAddress(of: bytes) { address, count in
                csqlite_bind_text_copied(handle, Int32(clamping: index), address, count)
            }
        }
        try check(code)
    }

    /// SQLite copies the bytes.
    package mutating func bind(blob: [UInt8], at index: Int) throws(SQLiteError) {
        try bind(blob: blob.span.bytes, at: index)
    }

    /// SQLite copies the bytes; an empty span is a blob, not NULL.
    package mutating func bind(blob: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        let code = blob.withUnsafeBytes { bytes in
            Self.withAddress(of: bytes) { address, count in
                csqlite_bind_blob_copied(handle, Int32(clamping: index), address, count)
            }
        }
        try check(code)
    }

    package mutating func bindNull(at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_null(handle, Int32(clamping: index)))
    }

    /// Runs the statement to its end with one more parameter, a blob that is not copied; afterwards it is NULL.
    ///
    /// For large values: SQLite reads the bytes in place, and only during this call.
    package mutating func run(borrowingBlob blob: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        try blob.withUnsafeBytes { bytes throws(SQLiteError) in
            let code = Self.withAddress(of: bytes) { address, count in
                csqlite_bind_blob_borrowed(handle, Int32(clamping: index), address, count)
            }
            try check(code)
            // A step that ends or fails resets the statement, so this binding cannot fail.
            defer { sqlite3_bind_null(handle, Int32(clamping: index)) }
            try run()
        }
    }

    /// The address is never nil, which SQLite would treat as NULL.
    private static func withAddress(
        of bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawPointer, UInt64) -> Int32
    ) -> Int32 {
        if let base = bytes.baseAddress { return body(base, UInt64(bytes.count)) }
        return withUnsafeBytes(of: UInt8(0)) { body($0.baseAddress!, 0) }
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        if code != SQLITE_OK { throw connection.failure(code, .bind, sql: sql) }
    }
}
