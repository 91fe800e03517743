/// Rows in Postgres's binary format for copies (`COPY … FROM STDIN (FORMAT binary)`), for
/// ``PostgresConnection/copy(_:_:)``.
///
/// The caller appends each row's values as the types of its columns call for; Postgres refuses anything else.
package struct BinaryCopy: Sendable {
    private var bytes = Self.header

    /// A signature, no flags, no extension.
    private static let header: [UInt8] =
        Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0x00] + [UInt8](repeating: 0, count: 8)

    /// No rows.
    package init() {}

    /// Begins a row of so many values.
    package mutating func beginRow(columns: Int) { bytes.append(bigEndian: Int16(columns)) }

    /// Appends a `bigint`, or the microseconds since 2000 of a `timestamptz`.
    package mutating func append(_ value: Int64) {
        bytes.append(bigEndian: 8 as Int32)
        bytes.append(bigEndian: value)
    }

    /// Appends a `boolean`.
    package mutating func append(_ value: Bool) {
        bytes.append(bigEndian: 1 as Int32)
        bytes.append(value ? 1 : 0)
    }

    /// Appends a `double precision`.
    package mutating func append(_ value: Double) {
        bytes.append(bigEndian: 8 as Int32)
        bytes.append(bigEndian: value.bitPattern)
    }

    /// Appends bytes as they are: those of a `text`, or of a value in its type's binary format.
    package mutating func append(bytes value: Span<UInt8>) {
        bytes.append(bigEndian: Int32(value.count))
        value.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }

    /// Appends a `uuid` by its text in lower case.
    ///
    /// - Returns: `false` where the text is none; the rows are of no use then.
    package mutating func append(uuid text: Span<UInt8>) -> Bool {
        bytes.append(bigEndian: 16 as Int32)
        return PostgresUUID.append(text, to: &bytes)
    }

    /// Ends the rows and gives them away; this is empty afterwards.
    package mutating func take() -> [UInt8] {
        bytes.append(bigEndian: -1 as Int16)
        defer { bytes = Self.header }
        return bytes
    }
}
