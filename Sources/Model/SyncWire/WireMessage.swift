package protocol WireDecodable {
    /// Reads all fields of the message.
    init(from reader: inout WireReader) throws(WireError)
}

extension WireDecodable {
    package init(decoding bytes: [UInt8], limits: WireLimits = .standard) throws(WireError) {
        self = try bytes.span.withUnsafeBytes { buffer throws(WireError) in
            try Self(decoding: buffer, limits: limits)
        }
    }

    /// Reads a whole record, borrowed for the call.
    package init(decoding bytes: UnsafeRawBufferPointer, limits: WireLimits = .standard) throws(WireError) {
        var reader = try WireReader(bytes, limits: limits)
        self = try Self(from: &reader)
    }
}

package protocol WireEncodable {
    /// Writes the fields by ascending number.
    func write(to writer: inout WireWriter)
}

extension WireEncodable {
    /// Equal values have equal bytes.
    package func encode() -> [UInt8] { WireWriter.encode { write(to: &$0) } }
}

package enum WireFormat {
    /// The `format` of the messages of all topics, and the newest that this code reads.
    package static let current = 1

    /// The field number of `format`.
    static let field = 1
}

extension WireReader {
    /// Validates the format of a topic's message before any other field, since other fields may have another meaning in
    /// a newer format.
    ///
    /// Does not advance the reader.
    func requireFormat() throws(WireError) {
        var scan = self
        var format: UInt64 = 0
        while let field = try scan.next() {
            guard field.number == WireFormat.field else {
                try scan.skip(field)
                continue
            }
            format = try scan.varint(field)
            guard format <= UInt64(WireFormat.current) else { throw scan.failure(.unsupportedFormat(format), field) }
            // Weir writes it first; ``format(_:)`` checks further ones.
            break
        }
        guard format > 0 else { throw missing(WireFormat.field) }
    }

    /// Validates a repeated format.
    mutating func format(_ field: Field) throws(WireError) {
        let format = try varint(field)
        guard format <= UInt64(WireFormat.current) else { throw failure(.unsupportedFormat(format), field) }
        guard format > 0 else { throw failure(.missing, field) }
    }
}
