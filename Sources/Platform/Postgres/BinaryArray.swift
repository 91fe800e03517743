/// A one-dimensional array in Postgres's binary format: one column of many rows as one parameter.
///
/// The caller appends values of the element type; Postgres rejects any other.
package struct BinaryArray: Sendable {
    package let type: PostgresType
    package private(set) var count = 0
    private var hasNull = false
    /// Each element as its length in four bytes and its value.
    private var elements: [UInt8] = []

    package init(_ type: PostgresType) { self.type = type }

    package mutating func appendNull() {
        elements.append(bigEndian: -1 as Int32)
        hasNull = true
        count += 1
    }

    /// A `bigint`, or the microseconds since 2000 of a `timestamptz`.
    package mutating func append(_ value: Int64) {
        elements.append(bigEndian: 8 as Int32)
        elements.append(bigEndian: value)
        count += 1
    }

    /// An `integer`, or the days since 2000 of a `date`.
    package mutating func append(_ value: Int32) {
        elements.append(bigEndian: 4 as Int32)
        elements.append(bigEndian: value)
        count += 1
    }

    package mutating func append(_ value: Bool) {
        elements.append(bigEndian: 1 as Int32)
        elements.append(value ? 1 : 0)
        count += 1
    }

    package mutating func append(_ value: Double) {
        elements.append(bigEndian: 8 as Int32)
        elements.append(bigEndian: value.bitPattern)
        count += 1
    }

    /// The bytes of a `bytea`, `text` or `json`, or of a value in its type's binary format.
    package mutating func append(bytes: Span<UInt8>) {
        elements.append(bigEndian: Int32(bytes.count))
        bytes.withUnsafeBufferPointer { elements.append(contentsOf: $0) }
        count += 1
    }

    /// A `numeric` from decimal digits with an optional `-` and point.
    ///
    /// - Returns: `false` if the text is no such number; the array is then invalid.
    package mutating func append(numeric text: Span<UInt8>) -> Bool {
        let start = beginElement()
        defer { endElement(start) }
        return PostgresNumeric.append(text, to: &elements)
    }

    /// A `uuid` from its text in lower case.
    ///
    /// - Returns: `false` if the text is no UUID; the array is then invalid.
    package mutating func append(uuid text: Span<UInt8>) -> Bool {
        let start = beginElement()
        defer { endElement(start) }
        return PostgresUUID.append(text, to: &elements)
    }

    private mutating func beginElement() -> Int {
        elements.append(bigEndian: 0 as Int32)
        count += 1
        return elements.count
    }

    /// Writes the length in front of the element.
    private mutating func endElement(_ start: Int) {
        var length = UInt32(elements.count - start)
        for place in 1...4 {
            elements[start - place] = UInt8(truncatingIfNeeded: length)
            length >>= 8
        }
    }

    /// A `text`.
    package mutating func append(_ value: String) { append(bytes: value.utf8.span) }

    /// Keeps the memory.
    package mutating func removeAll() {
        elements.removeAll(keepingCapacity: true)
        hasNull = false
        count = 0
    }

    func write(to bytes: inout [UInt8]) {
        bytes.append(bigEndian: Int32(count == 0 ? 0 : 1))
        bytes.append(bigEndian: Int32(hasNull ? 1 : 0))
        bytes.append(bigEndian: type.rawValue)
        guard count > 0 else { return }
        bytes.append(bigEndian: Int32(count))
        bytes.append(bigEndian: 1 as Int32)
        bytes.append(contentsOf: elements)
    }
}

extension [UInt8] {
    mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
