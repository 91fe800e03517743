/// A scalar.
///
/// Plain scalars have the types of the core schema of YAML 1.2, in which `no`, `on` and `12:30` are text; all others
/// are text.
package struct YAMLScalar: Sendable {
    package enum Style: Sendable, Hashable {
        case plain
        case singleQuoted
        case doubleQuoted
        case literal
        case folded
    }

    /// The types of the core schema.
    package enum Tag: Sendable, Hashable {
        case null
        case boolean
        case integer
        case float
        case string
    }

    /// Unescaped, with folded lines joined.
    package let text: String

    package let style: Style

    /// The type by the core schema (YAML 1.2.2, section 10.3.2).
    package var tag: Tag {
        guard style == .plain else { return .string }
        return text.utf8.withContiguousStorageIfAvailable(Self.tag(ofPlain:)) ?? Self.tag(ofPlain: Array(text.utf8))
    }

    /// Whether it is empty or one of `null`, `Null`, `NULL`, `~`.
    package var isNull: Bool { tag == .null }

    package var boolean: Bool? {
        tag == .boolean ? text.utf8.count == 4 : nil
    }

    /// A decimal, `0o` octal or `0x` hexadecimal integer; `nil` for other types and beyond 64 bits.
    package var integer: Int64? {
        guard tag == .integer else { return nil }
        if text.utf8.starts(with: "0x".utf8) { return Int64(text.dropFirst(2), radix: 16) }
        if text.utf8.starts(with: "0o".utf8) { return Int64(text.dropFirst(2), radix: 8) }
        return Int64(text)
    }

    private static let nulls = ["", "~", "null", "Null", "NULL"].map { Array($0.utf8) }
    private static let booleans = ["true", "True", "TRUE", "false", "False", "FALSE"].map { Array($0.utf8) }
    private static let specials = [".nan", ".NaN", ".NAN"].map { Array($0.utf8) }
    private static let infinities = [".inf", ".Inf", ".INF"].map { Array($0.utf8) }

    private static func tag(ofPlain bytes: some Collection<UInt8>) -> Tag {
        // The longest literal is `false`; longer texts can only be numbers.
        if bytes.count <= 5 {
            if nulls.contains(where: { $0.elementsEqual(bytes) }) { return .null }
            if booleans.contains(where: { $0.elementsEqual(bytes) }) { return .boolean }
            if specials.contains(where: { $0.elementsEqual(bytes) }) { return .float }
        }
        if bytes.starts(with: "0x".utf8) {
            return isDigits(bytes.dropFirst(2), where: isHexadecimal) ? .integer : .string
        }
        if bytes.starts(with: "0o".utf8) {
            return isDigits(bytes.dropFirst(2)) { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "7") }
                ? .integer : .string
        }
        let signed = bytes.first == UInt8(ascii: "-") || bytes.first == UInt8(ascii: "+")
        let unsigned = signed ? bytes.dropFirst() : bytes[...]
        if isDigits(unsigned, where: isDecimal) { return .integer }
        if infinities.contains(where: { $0.elementsEqual(unsigned) }) { return .float }
        return isFloat(unsigned) ? .float : .string
    }

    /// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, without the sign.
    private static func isFloat(_ bytes: some Collection<UInt8>) -> Bool {
        var rest = bytes.drop(while: isDecimal)
        var digits = bytes.count - rest.count
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst()
            rest = fraction.drop(while: isDecimal)
            digits += fraction.count - rest.count
        }
        guard digits > 0 else { return false }
        guard let mark = rest.first else { return true }
        guard mark == UInt8(ascii: "e") || mark == UInt8(ascii: "E") else { return false }
        var exponent = rest.dropFirst()
        if exponent.first == UInt8(ascii: "-") || exponent.first == UInt8(ascii: "+") {
            exponent = exponent.dropFirst()
        }
        return isDigits(exponent, where: isDecimal)
    }

    private static func isDigits(_ bytes: some Collection<UInt8>, where isDigit: (UInt8) -> Bool) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isDigit)
    }

    private static func isDecimal(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return isDecimal(byte) || (lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "f"))
    }
}
