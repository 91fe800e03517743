import CanonicalValues
import SyncModel

/// The default of a column as an SQL literal.
///
/// Only rows that are older than their column ever get it from SQLite, and they must then read as if ordering had filled
/// it in (I4).
enum DefaultLiteral {
    /// The literal; `nil` where none or NULL is declared.
    ///
    /// - Throws: `CanonicalValueError` where the default is no value of the column's type.
    static func sql(of column: Column) throws(CanonicalValueError) -> String? {
        guard let json = column.defaultValue else { return nil }
        var reader = CanonicalValueReader()
        do {
            return try json.withUnsafeBufferPointer { buffer in
                try reader.read(buffer, as: column.type) { value -> String? in
                    switch value {
                    case .null: nil
                    case .integer(let integer): "\(integer)"
                    case .real(let real): "\(real)"
                    case .text(let text): try text.withUnsafeBufferPointer(quoted)
                    case .bytes(let bytes): bytes.withUnsafeBufferPointer(hexadecimal)
                    }
                }
            }
        } catch {
            throw CanonicalValueError(type: column.type.name)
        }
    }

    private static func quoted(_ utf8: UnsafeBufferPointer<UInt8>) throws(CanonicalValueError) -> String {
        // SQL ends at a NUL, which no type admits.
        guard !utf8.contains(0), let text = String(validating: utf8, as: UTF8.self) else {
            throw CanonicalValueError(type: "text")
        }
        let quote = Unicode.Scalar("'")
        var literal = "'".unicodeScalars
        for scalar in text.unicodeScalars {
            if scalar == quote { literal.append(quote) }
            literal.append(scalar)
        }
        literal.append(quote)
        return String(literal)
    }

    private static func hexadecimal(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text = Array("X'".utf8)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 0xF)])
        }
        text.append(UInt8(ascii: "'"))
        return String(decoding: text, as: UTF8.self)
    }
}
