/// A JSON error with its position.
package struct JSONError: Error, Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// No bytes but white space.
        case empty
        case byteOrderMark
        /// A byte that the grammar does not allow there.
        case unexpectedByte
        case unexpectedEnd
        case trailingContent
        /// A number outside the grammar: `01`, `1.`, `1e`, `1x`.
        case invalidNumber
        /// A word other than `true`, `false` and `null`.
        case invalidLiteral
        /// A backslash that is not followed by one of `"\/bfnrt`, or by `u` and four hexadecimal digits.
        case invalidEscape
        /// Half of a surrogate pair.
        case loneSurrogate
        /// A control character (below 0x20) inside a string, unescaped.
        case controlCharacter
        /// Bytes that are not UTF-8: overlong, truncated, surrogates, above U+10FFFF.
        case invalidUTF8
        /// More nested arrays and objects than the limit.
        case tooDeep
        /// More bytes than ``JSONParser/maximumCount``.
        case tooLarge
        /// A name repeated in its object, where that is an error.
        case repeatedName
        /// U+0000 in a string or name, where that is an error.
        case containsNUL
        case outOfMemory
        /// Valid JSON that simdjson rejects.
        case unsupported
    }

    package let reason: Reason

    /// Byte offset of the error; the number of bytes if the document ends too early.
    package let position: Int

    package init(_ reason: Reason, at position: Int) {
        self.reason = reason
        self.position = position
    }

    /// Without the position.
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
    package var description: String { "\(message) at byte \(position)" }
}
