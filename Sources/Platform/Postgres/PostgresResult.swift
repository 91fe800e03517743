import CPostgres

/// The rows that a statement gave, in Postgres's binary format.
///
/// Rows and columns count from 0; places outside trap, values of another size than asked for throw.
package struct PostgresResult: ~Copyable {
    private let pointer: OpaquePointer
    /// How many rows there are.
    package let count: Int

    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
        count = Int(PQntuples(pointer))
    }

    deinit { PQclear(pointer) }

    /// The columns.
    package var columns: Range<Int> { 0..<Int(PQnfields(pointer)) }

    /// Whether a value is NULL.
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

    /// A `text`, copied.
    ///
    /// - Throws: `PostgresError` where it is no UTF-8, which a database in that encoding never holds.
    package func text(_ row: Int, _ column: Int) throws(PostgresError) -> String {
        let raw = buffer(row, column)
        guard let text = String(validating: raw, as: UTF8.self) else {
            throw PostgresError(message: "Postgres sent a text that is no UTF-8")
        }
        return text
    }

    /// The bytes of a value, copied.
    package func bytes(_ row: Int, _ column: Int) -> [UInt8] { Array(buffer(row, column)) }

    /// Lends the bytes of a value.
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
