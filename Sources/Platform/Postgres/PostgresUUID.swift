/// The 16 bytes of a UUID and their canonical text in lower case.
package enum PostgresUUID {
    private static let digits = Array("0123456789abcdef".utf8)

    /// - Throws: `PostgresError` unless there are 16 bytes.
    package static func appendText(of bytes: Span<UInt8>, to text: inout [UInt8]) throws(PostgresError) {
        guard bytes.count == 16 else {
            throw PostgresError(message: "Postgres sent a uuid of \(bytes.count) bytes")
        }
        for index in 0..<16 {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digits[Int(bytes[index] >> 4)])
            text.append(digits[Int(bytes[index] & 0xF)])
        }
    }

    /// Appends the bytes of a canonical text; `false` for any other text.
    package static func append(_ text: Span<UInt8>, to bytes: inout [UInt8]) -> Bool {
        guard text.count == 36 else { return false }
        var high: UInt8?
        for index in 0..<36 {
            if [8, 13, 18, 23].contains(index) {
                guard text[index] == UInt8(ascii: "-") else { return false }
                continue
            }
            guard let digit = digit(text[index]) else { return false }
            if let known = high {
                bytes.append(known << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return true
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
