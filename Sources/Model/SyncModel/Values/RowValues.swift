import JSONText

/// The values of a row or a change as canonical JSON, one per column in the table's order.
///
/// They are passed on as bytes and never decoded: each value is the field `0x0A`, a varint length and the JSON, which
/// is protobuf's encoding of `repeated bytes column = 1`. Length 0 means that a change does not write the column; a row
/// has no such value. A row written under an older schema version may have fewer values than its table has columns; the
/// missing ones have their defaults (``lifted(to:)``).
package struct RowValues: Sendable, Hashable {
    package private(set) var bytes: [UInt8]

    package init() { bytes = [] }

    /// Takes encoded values from a record; `nil` when they are malformed.
    package init?(encoded: [UInt8]) {
        bytes = encoded
        var reader = Reader(count: encoded.count)
        let isWellFormed = bytes.withUnsafeBufferPointer { buffer in
            while !reader.isAtEnd {
                guard reader.nextChecked(in: buffer) != nil else { return false }
            }
            return true
        }
        guard isWellFormed else { return nil }
    }

    package mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    /// Appends the value of the next column, canonical JSON of at least one byte.
    package mutating func append(_ json: some Collection<UInt8>) {
        precondition(!json.isEmpty, "a value has at least one byte")
        appendHeader(json.count)
        bytes.append(contentsOf: json)
    }

    /// Appends the value of the next column, canonical JSON of at least one byte.
    package mutating func append(_ json: Span<UInt8>) {
        precondition(!json.isEmpty, "a value has at least one byte")
        appendHeader(json.count)
        bytes.append(json)
    }

    /// Appends adjacent columns of other values.
    mutating func append(fields: Range<Int>, of other: RowValues) {
        other.bytes.withUnsafeBufferPointer { bytes.append(contentsOf: $0[fields]) }
    }

    /// Appends a column that the change does not write.
    package mutating func appendAbsent() { appendHeader(0) }

    /// The number of encoded columns, absent ones included.
    package var count: Int { measure().count }

    /// The size of the JSON of all values.
    package var jsonSize: Int { measure().jsonSize }

    /// The number of encoded columns, absent ones included, and the size of the JSON of all values.
    private func measure() -> (count: Int, jsonSize: Int) {
        bytes.withUnsafeBufferPointer { buffer in
            var reader = Reader(count: buffer.count)
            var (count, size) = (0, 0)
            while !reader.isAtEnd {
                size += reader.next(in: buffer).count
                count += 1
            }
            return (count, size)
        }
    }

    /// The range of each column's JSON in `bytes`, empty for an absent column.
    package var ranges: [Range<Int>] {
        bytes.withUnsafeBufferPointer { buffer in
            var ranges: [Range<Int>] = []
            var reader = Reader(count: buffer.count)
            while !reader.isAtEnd { ranges.append(reader.next(in: buffer)) }
            return ranges
        }
    }

    /// Calls the body with each column's index, its field and its JSON as ranges of the bytes, and the bytes; the JSON is empty for an
    /// absent column.
    func forEachField(
        _ body: (_ column: Int, _ field: Range<Int>, _ json: Range<Int>, _ bytes: UnsafeBufferPointer<UInt8>) -> Void
    ) {
        bytes.withUnsafeBufferPointer { buffer in
            var reader = Reader(count: buffer.count)
            var column = 0
            while !reader.isAtEnd {
                let start = reader.offset
                let json = reader.next(in: buffer)
                body(column, start..<json.upperBound, json, buffer)
                column += 1
            }
        }
    }

    /// Calls the body with each column's index and JSON, which is empty for an absent column.
    package func forEachColumn<Failure: Error>(
        _ body: (_ column: Int, _ json: UnsafeBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        var failure: Failure?
        bytes.withUnsafeBufferPointer { buffer in
            var reader = Reader(count: buffer.count)
            var column = 0
            while !reader.isAtEnd {
                let range = reader.next(in: buffer)
                do throws(Failure) {
                    try body(column, UnsafeBufferPointer(rebasing: buffer[range]))
                } catch {
                    failure = error
                    return
                }
                column += 1
            }
        }
        if let failure { throw failure }
    }

    /// Whether all of the first `count` columns are written.
    package func writesAll(_ count: Int) -> Bool {
        bytes.withUnsafeBufferPointer { buffer in
            var reader = Reader(count: buffer.count)
            var column = 0
            while column < count {
                guard !reader.isAtEnd, !reader.next(in: buffer).isEmpty else { return false }
                column += 1
            }
            return true
        }
    }

    package var writesAny: Bool {
        bytes.withUnsafeBufferPointer { buffer in
            var reader = Reader(count: buffer.count)
            while !reader.isAtEnd {
                if !reader.next(in: buffer).isEmpty { return true }
            }
            return false
        }
    }

    /// Merges column by column: the change's value if it writes one, else the row's.
    package func merged(with change: RowValues) -> RowValues {
        var result = RowValues()
        result.bytes.reserveCapacity(bytes.count + change.bytes.count)
        bytes.withUnsafeBufferPointer { row in
            change.bytes.withUnsafeBufferPointer { other in
                var rowReader = Reader(count: row.count)
                var otherReader = Reader(count: other.count)
                while !rowReader.isAtEnd || !otherReader.isAtEnd {
                    let rowField = rowReader.isAtEnd ? 0..<0 : rowReader.nextField(in: row)
                    let otherStart = otherReader.offset
                    let otherValue = otherReader.isAtEnd ? 0..<0 : otherReader.next(in: other)
                    // A column that both lack stays absent.
                    if otherValue.isEmpty, !rowField.isEmpty {
                        result.bytes.append(contentsOf: row[rowField])
                    } else {
                        result.bytes.append(contentsOf: other[otherStart..<otherReader.offset])
                    }
                }
            }
        }
        return result
    }

    /// The values with the defaults of the columns that the table has in addition.
    package func lifted(to table: Table) -> RowValues {
        let count = count
        guard count < table.columns.count else { return self }
        var result = self
        for column in table.columns[count...] { result.append(column.defaultValue ?? Self.null) }
        return result
    }

    static let null = Array("null".utf8)

    private mutating func appendHeader(_ count: Int) {
        bytes.append(0x0A)
        var rest = UInt64(count)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Iterates over the encoded fields.
    ///
    /// The bytes are well formed: initializers validate or write them.
    private struct Reader {
        private(set) var offset = 0
        let count: Int

        init(count: Int) { self.count = count }

        var isAtEnd: Bool { offset >= count }

        /// The JSON of the next field.
        mutating func next(in buffer: UnsafeBufferPointer<UInt8>) -> Range<Int> {
            guard let range = nextChecked(in: buffer) else { preconditionFailure("row values were checked when made") }
            return range
        }

        /// The next field, header included.
        mutating func nextField(in buffer: UnsafeBufferPointer<UInt8>) -> Range<Int> {
            let start = offset
            return start..<next(in: buffer).upperBound
        }

        mutating func nextChecked(in buffer: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
            guard buffer[offset] == 0x0A else { return nil }
            var position = offset + 1
            var length = 0
            var shift = 0
            while true {
                guard position < count, shift <= 28 else { return nil }
                let byte = buffer[position]
                position += 1
                // Only the shortest encoding of a length is valid, so that equal values are equal bytes (I4).
                guard byte != 0 || shift == 0 else { return nil }
                length |= Int(byte & 0x7F) << shift
                if byte < 0x80 { break }
                shift += 7
            }
            guard length <= count - position else { return nil }
            offset = position + length
            return position..<offset
        }
    }
}
