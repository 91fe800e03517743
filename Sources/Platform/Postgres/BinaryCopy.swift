/// Rows for `COPY … FROM STDIN (FORMAT binary)`, see ``PostgresConnection/copy(_:_:)``.
///
/// The caller appends each row's values by the types of its columns; Postgres rejects any other.
package struct BinaryCopy: Sendable {
    private var bytes = Self.header

    /// A signature, no flags, no extension.
    private static let header: [UInt8] =
        Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0x00] + [UInt8](repeating: 0, count: 8)

    package init() {}

    package mutating func beginRow(columns: Int) { bytes.append(bigEndian: Int16(columns)) }

    /// A `bigint`, or the microseconds since 2000 of a `timestamptz`.
    package mutating func append(_ value: Int64) {
        bytes.append(bigEndian: 8 as Int32)
        bytes.append(bigEndian: value)
    }

    package mutating func append(_ value: Bool) {
        bytes.append(bigEndian: 1 as Int32)
        bytes.append(value ? 1 : 0)
    }

    package mutating func append(_ value: Double) {
        bytes.append(bigEndian: 8 as Int32)
        bytes.append(bigEndian: value.bitPattern)
    }

    /// The bytes of a `text`, or of a value in its type's binary format.
    package mutating func append(bytes value: Span<UInt8>) {
        bytes.append(bigEndian: Int32(value.count))
        value.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }

    /// A `uuid` from its text in lower case.
    ///
    /// - Returns: `false` if the text is no UUID; the rows are then invalid.
    package mutating func append(uuid text: Span<UInt8>) -> Bool {
        bytes.append(bigEndian: 16 as Int32)
        return PostgresUUID.append(text, to: &bytes)
    }

    /// Returns all rows with the trailer, and becomes empty.
    package mutating func take() -> [UInt8] {
        bytes.append(bigEndian: -1 as Int16)
        defer { bytes = Self.header }
        return bytes
    }
}
