/// A value that a protobuf message gives.
package protocol WireDecodable {
    /// Reads the value from the fields of its message, to the message's end.
    init(from reader: inout WireReader) throws(WireError)
}

extension WireDecodable {
    /// Reads the value from a whole record.
    package init(decoding bytes: [UInt8], limits: WireLimits = .standard) throws(WireError) {
        self = try bytes.span.withUnsafeBytes { buffer throws(WireError) in
            try Self(decoding: buffer, limits: limits)
        }
    }

    /// Reads the value from a whole record that the caller lends for the time of the call.
    package init(decoding bytes: UnsafeRawBufferPointer, limits: WireLimits = .standard) throws(WireError) {
        var reader = try WireReader(bytes, limits: limits)
        self = try Self(from: &reader)
    }
}

/// A value that its protobuf message can be made from without anything else.
package protocol WireEncodable {
    /// Writes the fields of its message, by rising number.
    func write(to writer: inout WireWriter)
}

extension WireEncodable {
    /// The whole record; equal values give equal bytes.
    package func encode() -> [UInt8] { WireWriter.encode { write(to: &$0) } }
}

/// The versions of the contract's messages.
package enum WireFormat {
    /// What the messages of all topics state as `format`, and the newest that this code reads.
    package static let current = 1

    /// The number of the field that states it.
    static let field = 1
}

extension WireReader {
    /// Checks the format of a topic's message before anything else is read, since all else may mean something else in a newer
    /// one; the reader stays where it is.
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
            // Weir writes it first: a second one is met when the message is read.
            break
        }
        guard format > 0 else { throw missing(WireFormat.field) }
    }

    /// Reads a repetition of the format, which must be the current one, too.
    mutating func format(_ field: Field) throws(WireError) {
        let format = try varint(field)
        guard format <= UInt64(WireFormat.current) else { throw failure(.unsupportedFormat(format), field) }
        guard format > 0 else { throw failure(.missing, field) }
    }
}
