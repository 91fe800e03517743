/// A value as SQLite stores it.
///
/// Two values are equal if their types and bytes are: text is compared as UTF-8 and not as Unicode, and 1 is not 1.0.
package enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    /// UTF-8 as the app wrote it, which SQLite does not check.
    case text([UInt8])
    case blob([UInt8])

    package static func text(_ string: String) -> SQLValue { .text(Array(string.utf8)) }
}

extension SQLValue: CustomStringConvertible {
    /// As an SQL literal.
    package var description: String {
        switch self {
        case .null: "NULL"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let bytes): "'" + String(decoding: bytes, as: UTF8.self).replacing("'", with: "''") + "'"
        case .blob(let bytes): "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
        }
    }
}
