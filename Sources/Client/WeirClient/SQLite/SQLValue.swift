/// A value as SQLite stores it.
///
/// Two values are equal if their types and bytes are: text is compared as UTF-8 and not as Unicode, and 1 is not 1.0.
public enum SQLValue: Hashable, Sendable {
    /// NULL.
    case null
    /// INTEGER.
    case integer(Int64)
    /// REAL.
    case real(Double)
    /// UTF-8 as the app wrote it, which SQLite does not check.
    case text([UInt8])
    /// BLOB.
    case blob([UInt8])

    /// A text.
    public static func text(_ string: String) -> SQLValue { .text(Array(string.utf8)) }
}

extension SQLValue {
    /// The text, if it is one.
    public var string: String? {
        guard case .text(let bytes) = self else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension SQLValue: CustomStringConvertible {
    /// As an SQL literal.
    public var description: String {
        switch self {
        case .null: "NULL"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let bytes): "'" + String(decoding: bytes, as: UTF8.self).replacing("'", with: "''") + "'"
        case .blob(let bytes): "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
        }
    }
}
