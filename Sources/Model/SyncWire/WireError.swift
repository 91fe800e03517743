/// Why bytes are no message of the contract, and where.
package struct WireError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    package enum Code: Sendable, Hashable {
        /// The message is of a format that this code does not know: it was written by a newer Weir, and is not malformed.
        case unsupportedFormat(UInt64)
        /// The bytes end within a field, or a length points behind the end of the message around it.
        case truncated
        /// A varint of more than 64 bits.
        case varintOverflow
        /// A field number of 0 or above 2^29-1, or a wire type that does not exist.
        case invalidTag
        /// Groups are no part of the contract.
        case group
        /// A known field with another wire type than the contract's.
        case wrongWireType
        /// The message is larger than the limit.
        case messageTooLarge
        /// More fields than the limit.
        case tooManyFields
        /// Messages within messages beyond the limit.
        case tooDeep
        /// A text or bytes longer than the contract allows.
        case tooLong
        /// Text that is not UTF-8.
        case invalidUTF8
        /// No id: empty, longer than 255 bytes, with NUL, or `*` for a device.
        case invalidID
        /// A number outside the field's range.
        case outOfRange
        /// An enum value that the contract does not list.
        case unknownValue
        /// Row values that are not well formed.
        case invalidValues
        /// Bytes or text of another form than the contract states: a hash, a name.
        case invalidForm
        /// A required field is missing.
        case missing
        /// A singular message is given twice, or two of which only one may be.
        case repeated
        /// A schema's hash is not that of its tables.
        case hashMismatch
    }

    /// What is wrong.
    package let code: Code
    /// The numbers of the fields that lead to the place, outermost first; empty at the outermost level itself.
    package internal(set) var path: [Int]
    /// The position in the whole record at which reading stopped, in bytes.
    package let offset: Int

    /// States an error.
    package init(_ code: Code, path: [Int] = [], offset: Int) {
        self.code = code
        self.path = path
        self.offset = offset
    }

    /// Whether a newer Weir wrote the message: a worker then waits for an update instead of refusing it.
    package var isNewerFormat: Bool {
        if case .unsupportedFormat = code { true } else { false }
    }

    /// The code, the fields and the position.
    package var description: String {
        let place = path.isEmpty ? "the message" : "field " + path.map(String.init).joined(separator: ".")
        return "\(code) in \(place) at byte \(offset)"
    }
}
