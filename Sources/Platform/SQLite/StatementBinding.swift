import CSQLite

extension Statement {
    /// Gives a parameter an integer.
    package mutating func bind(integer value: Int64, at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_int64(handle, Int32(clamping: index), value))
    }

    /// Gives a parameter a floating-point number; NaN becomes NULL, as SQLite has none.
    package mutating func bind(double value: Double, at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_double(handle, Int32(clamping: index), value))
    }

    /// Gives a parameter a text.
    package mutating func bind(text: String, at index: Int) throws(SQLiteError) {
        try bind(text: text.utf8.span.bytes, at: index)
    }

    /// Gives a parameter a text whose UTF-8 SQLite copies; NUL has no special meaning, and validity is the caller's.
    package mutating func bind(text utf8: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        let code = utf8.withUnsafeBytes { bytes in
            Self.withAddress(of: bytes) { address, count in
                csqlite_bind_text_copied(handle, Int32(clamping: index), address, count)
            }
        }
        try check(code)
    }

    /// Gives a parameter a blob, which SQLite copies.
    package mutating func bind(blob: [UInt8], at index: Int) throws(SQLiteError) {
        try bind(blob: blob.span.bytes, at: index)
    }

    /// Gives a parameter a blob, which SQLite copies; an empty one is a blob, not NULL.
    package mutating func bind(blob: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        let code = blob.withUnsafeBytes { bytes in
            Self.withAddress(of: bytes) { address, count in
                csqlite_bind_blob_copied(handle, Int32(clamping: index), address, count)
            }
        }
        try check(code)
    }

    /// Makes a parameter NULL.
    package mutating func bindNull(at index: Int) throws(SQLiteError) {
        try check(sqlite3_bind_null(handle, Int32(clamping: index)))
    }

    /// Runs the statement to its end with one more parameter, a blob that is not copied; afterwards it is NULL.
    ///
    /// For large values: SQLite reads the bytes where they lie, and only during this call.
    package mutating func run(borrowingBlob blob: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        try blob.withUnsafeBytes { bytes throws(SQLiteError) in
            let code = Self.withAddress(of: bytes) { address, count in
                csqlite_bind_blob_borrowed(handle, Int32(clamping: index), address, count)
            }
            try runBorrowing(code, at: index)
        }
    }

    /// Runs the statement to its end with one more parameter, a text that is not copied; afterwards it is NULL.
    package mutating func run(borrowingText utf8: borrowing RawSpan, at index: Int) throws(SQLiteError) {
        try utf8.withUnsafeBytes { bytes throws(SQLiteError) in
            let code = Self.withAddress(of: bytes) { address, count in
                csqlite_bind_text_borrowed(handle, Int32(clamping: index), address, count)
            }
            try runBorrowing(code, at: index)
        }
    }

    /// Runs with the parameter that was just bound to borrowed bytes, and takes them away in any case.
    private mutating func runBorrowing(_ bindingCode: Int32, at index: Int) throws(SQLiteError) {
        try check(bindingCode)
        // A step that ends or fails has reset the statement, so binding cannot fail here.
        defer { sqlite3_bind_null(handle, Int32(clamping: index)) }
        try run()
    }

    /// The address of bytes for binding: never nil, which SQLite would take for NULL.
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
