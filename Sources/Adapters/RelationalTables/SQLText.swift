import CanonicalValues
import SyncModel

/// Names and literals in SQL.
package enum SQLText {
    package static func name(_ text: String) -> String { quoted(text, with: "\"") }

    /// In Postgres, `\` is an ordinary character (`standard_conforming_strings`).
    package static func literal(_ text: String) -> String { quoted(text, with: "'") }

    /// - Throws: `CanonicalValueError` for NUL, which would end the SQL and which no type admits, and for invalid UTF-8.
    package static func literal(utf8: borrowing Span<UInt8>) throws -> String {
        try utf8.withUnsafeBufferPointer { buffer in
            guard !buffer.contains(0), let text = String(validating: buffer, as: UTF8.self) else {
                throw CanonicalValueError(type: "text")
            }
            return literal(text)
        }
    }

    /// Two digits for each byte.
    package static func hexadecimal(_ bytes: some Sequence<UInt8>, uppercase: Bool = false) -> String {
        let digits = Array((uppercase ? "0123456789ABCDEF" : "0123456789abcdef").utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
    }

    private static func quoted(_ text: String, with quote: Unicode.Scalar) -> String {
        var scalars = String.UnicodeScalarView()
        scalars.append(quote)
        for scalar in text.unicodeScalars {
            if scalar == quote { scalars.append(quote) }
            scalars.append(scalar)
        }
        scalars.append(quote)
        return String(scalars)
    }
}

extension Column {
    /// The default as an SQL literal; `nil` if none or NULL is declared.
    ///
    /// The database uses it for rows that were written before the column existed: they must read as if ordering had set it
    /// (I4).
    ///
    /// - Throws: `CanonicalValueError` if the default is no value of the column's type.
    package func defaultLiteral(
        _ literal: (borrowing ColumnValue) throws -> String?
    ) throws(CanonicalValueError) -> String? {
        guard let json = defaultValue else { return nil }
        var reader = CanonicalValueReader()
        do {
            return try json.withUnsafeBufferPointer { try reader.read($0, as: type, literal) }
        } catch {
            throw CanonicalValueError(type: type.name)
        }
    }
}
