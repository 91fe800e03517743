/// The bytes are not a message of the contract.
package struct WireError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// Written by a newer Weir in a format that this code does not know; not malformed.
        case unsupportedFormat(UInt64)
        /// The bytes end within a field, or a length exceeds the enclosing message.
        case truncated
        case varintOverflow
        /// A field number of 0 or above 2^29-1, or a wire type that does not exist.
        case invalidTag
        /// The contract has no groups.
        case group
        /// A known field with the wrong wire type.
        case wrongWireType
        case messageTooLarge
        case tooManyFields
        /// Nested beyond the limit.
        case tooDeep
        /// Longer than the contract allows.
        case tooLong
        case invalidUTF8
        /// Not a valid id: empty, longer than 255 bytes, with NUL, or `*` for a device.
        case invalidID
        case outOfRange
        case unknownValue
        /// Malformed row values.
        case invalidValues
        /// Bytes or text in the wrong form: a hash, a name.
        case invalidForm
        case missing
        /// A singular message occurs twice, or two members of a oneof occur.
        case repeated
        /// The hash of a schema is not that of its tables.
        case hashMismatch
    }

    package let code: Code
    /// The field numbers that lead to the error, outermost first; empty at the outermost level.
    package internal(set) var path: [Int]
    /// The byte offset in the record at which reading stopped.
    package let offset: Int

    package init(_ code: Code, path: [Int] = [], offset: Int) {
        self.code = code
        self.path = path
        self.offset = offset
    }

    /// Whether a newer Weir wrote the message; a worker then waits for an upgrade instead of rejecting it.
    package var isNewerFormat: Bool {
        if case .unsupportedFormat = code { true } else { false }
    }

    package var description: String {
        let location = path.isEmpty ? "the message" : "field " + path.map(String.init).joined(separator: ".")
        return "\(code) in \(location) at byte \(offset)"
    }
}

/// Limits beyond which a message is rejected.
package struct WireLimits: Sendable, Hashable {
    /// Bytes of a message.
    package let byteCount: Int
    /// Fields of a message, those of nested messages included.
    package let fieldCount: Int
    /// Nesting depth, the outermost message not counted.
    package let depth: Int

    package init(byteCount: Int, fieldCount: Int, depth: Int) {
        self.byteCount = byteCount
        self.fieldCount = fieldCount
        self.depth = depth
    }

    /// Every message of the contract is below these limits.
    ///
    /// Logs accept records of a few megabytes, so 64 MiB only bounds memory. 2 million fields are 150,000 changes with
    /// every field set, and bound the memory of small fields. The contract's own messages are 4 levels deep.
    package static let standard = WireLimits(byteCount: 64 << 20, fieldCount: 2_000_000, depth: 8)
}
