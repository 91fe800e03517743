/// Why bytes were refused as JSON, and where.
package struct JSONError: Error, Hashable, Sendable {
    /// What is wrong.
    package enum Reason: Hashable, Sendable {
        /// Nothing but white space.
        case empty
        /// The document begins with a byte order mark.
        case byteOrderMark
        /// A byte that the grammar does not allow there.
        case unexpectedByte
        /// The document ends inside a value.
        case unexpectedEnd
        /// Something follows the document's value.
        case trailingContent
        /// A number outside the grammar: `01`, `1.`, `1e`, `1x`.
        case invalidNumber
        /// A word other than `true`, `false` and `null`.
        case invalidLiteral
        /// A backslash with something else than `"\/bfnrt` or `u` and four hexadecimal digits behind it.
        case invalidEscape
        /// Half of a surrogate pair.
        case loneSurrogate
        /// A control character (below 0x20) inside a string, unescaped.
        case controlCharacter
        /// Bytes that are not UTF-8: overlong, truncated, surrogates, above U+10FFFF.
        case invalidUTF8
        /// More arrays and objects inside each other than the limit.
        case tooDeep
        /// More bytes than ``JSONParser/maximumCount``.
        case tooLarge
        /// A name that its object holds already, where that is refused.
        case repeatedName
        /// U+0000 in a string or name, where that is refused.
        case containsNUL
        /// There is no memory for the document.
        case outOfMemory
        /// Valid by the grammar, and refused by simdjson all the same.
        case unsupported
    }

    /// What is wrong.
    package let reason: Reason

    /// Offset in bytes, from 0, of the first byte that is wrong; the number of bytes when the document ends too early.
    package let position: Int

    /// Puts an error together.
    package init(_ reason: Reason, at position: Int) {
        self.reason = reason
        self.position = position
    }

    /// What is wrong, in a few words for people; without the position.
    package var message: String {
        switch reason {
        case .empty: "no value"
        case .byteOrderMark: "begins with a byte order mark"
        case .unexpectedByte: "unexpected byte"
        case .unexpectedEnd: "ends inside a value"
        case .trailingContent: "content after the value"
        case .invalidNumber: "invalid number"
        case .invalidLiteral: "invalid literal"
        case .invalidEscape: "invalid escape"
        case .loneSurrogate: "half of a surrogate pair"
        case .controlCharacter: "unescaped control character in a string"
        case .invalidUTF8: "invalid UTF-8"
        case .tooDeep: "nested too deeply"
        case .tooLarge: "too large"
        case .repeatedName: "repeated name in an object"
        case .containsNUL: "U+0000 in a string"
        case .outOfMemory: "out of memory"
        case .unsupported: "not supported by the parser"
        }
    }
}

extension JSONError: CustomStringConvertible {
    /// Message and position.
    package var description: String { "\(message) at byte \(position)" }
}
