import CPostgres

/// The rows of a statement, in Postgres's binary format.
///
/// Rows and columns count from 0; indexes out of range trap, values of an unexpected size throw.
package struct PostgresResult: ~Copyable {
    private let pointer: OpaquePointer
    /// The number of rows.
    package let count: Int

    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
        count = Int(PQntuples(pointer))
    }

    deinit { PQclear(pointer) }

    /// The columns.
    package var columns: Range<Int> { 0..<Int(PQnfields(pointer)) }

    package func isNull(_ row: Int, _ column: Int) -> Bool {
        check(row, column)
        return PQgetisnull(pointer, Int32(row), Int32(column)) != 0
    }

    /// A `bigint`, or a `timestamptz` as microseconds since 2000.
    package func bigint(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
        Int64(bitPattern: try word(row, column))
    }

    /// An `integer`, or a `date` as days since 2000.
    package func integer(_ row: Int, _ column: Int) throws(PostgresError) -> Int32 {
        let bytes = try bytes(row, column, count: 4)
        return Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))
    }

    /// A `boolean`.
    package func boolean(_ row: Int, _ column: Int) throws(PostgresError) -> Bool {
        try bytes(row, column, count: 1).load(as: UInt8.self) != 0
    }

    /// A `double precision`.
    package func double(_ row: Int, _ column: Int) throws(PostgresError) -> Double {
        Double(bitPattern: try word(row, column))
    }

    /// - Throws: `PostgresError` for invalid UTF-8, which a database with that encoding never returns.
    package func text(_ row: Int, _ column: Int) throws(PostgresError) -> String {
        let raw = buffer(row, column)
        guard let text = String(validating: raw, as: UTF8.self) else {
            throw PostgresError(message: "Postgres sent a text that is invalid UTF-8")
        }
        return text
    }

    package func bytes(_ row: Int, _ column: Int) -> [UInt8] { Array(buffer(row, column)) }

    package func withBytes<Result, Failure: Error>(
        _ row: Int, _ column: Int, _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(buffer(row, column).span)
    }

    private func buffer(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8> {
        check(row, column)
        let length = Int(PQgetlength(pointer, Int32(row), Int32(column)))
        let start = PQgetvalue(pointer, Int32(row), Int32(column))
        return UnsafeBufferPointer(
            start: start.map { UnsafeRawPointer($0).assumingMemoryBound(to: UInt8.self) }, count: length)
    }

    private func word(_ row: Int, _ column: Int) throws(PostgresError) -> UInt64 {
        UInt64(bigEndian: try bytes(row, column, count: 8).loadUnaligned(as: UInt64.self))
    }

    private func bytes(_ row: Int, _ column: Int, count: Int) throws(PostgresError) -> UnsafeRawBufferPointer {
        let raw = UnsafeRawBufferPointer(buffer(row, column))
        guard raw.count == count else {
            throw PostgresError(message: "Postgres sent a value of \(raw.count) bytes where \(count) were expected")
        }
        return raw
    }

    private func check(_ row: Int, _ column: Int) {
        precondition(
            row >= 0 && row < count && column >= 0 && column < Int(PQnfields(pointer)), "the result has no such value")
    }
}

extension PostgresResult {
    /// The elements of a one-dimensional `text[]` without NULLs.
    ///
    /// - Throws: `PostgresError` for any other value.
    package func texts(_ row: Int, _ column: Int) throws(PostgresError) -> [String] {
        let bytes = bytes(row, column)
        var offset = 0
        func word() throws(PostgresError) -> Int {
            guard offset + 4 <= bytes.count else { throw Self.notATextArray }
            defer { offset += 4 }
            return Int(bytes[offset..<offset + 4].reduce(0 as Int32) { $0 << 8 | Int32($1) })
        }
        let dimensions = try word()
        let hasNull = try word()
        guard try word() == Int(PostgresType.text.rawValue), hasNull == 0, dimensions <= 1 else {
            throw Self.notATextArray
        }
        guard dimensions == 1 else { return [] }
        let count = try word()
        _ = try word()
        var texts: [String] = []
        for _ in 0..<count {
            let length = try word()
            guard length >= 0, offset + length <= bytes.count,
                let text = String(validating: bytes[offset..<offset + length], as: UTF8.self)
            else { throw Self.notATextArray }
            texts.append(text)
            offset += length
        }
        return texts
    }

    private static var notATextArray: PostgresError {
        PostgresError(message: "Postgres sent no one-dimensional array of texts")
    }
}
