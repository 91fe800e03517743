/// Names and texts in SQL.
enum SQLText {
    /// A name in quotes, whatever it holds.
    static func name(_ text: String) -> String { quoted(text, with: "\"") }

    /// A text in quotes; sessions take `\` for itself (`standard_conforming_strings`).
    static func literal(_ text: String) -> String { quoted(text, with: "'") }

    /// Bytes as a literal.
    static func literal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text = Array("'\\x".utf8)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 0xF)])
        }
        return String(decoding: text, as: UTF8.self) + "'::bytea"
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
