import JSONText

/// Base64 in the alphabet for URLs, without padding (RFC 4648, section 5; RFC 7515, section 2).
package enum Base64URL {
    package static func encode(_ data: [UInt8]) -> String {
        var bytes: [UInt8] = []
        Base64.encode(data.span, into: &bytes)
        while bytes.last == UInt8(ascii: "=") { bytes.removeLast() }
        for index in bytes.indices {
            switch bytes[index] {
            case UInt8(ascii: "+"): bytes[index] = UInt8(ascii: "-")
            case UInt8(ascii: "/"): bytes[index] = UInt8(ascii: "_")
            default: break
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// - Returns: `nil` if the text is not the canonical encoding: other characters, padding, or bits after the last byte.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var standard: [UInt8] = []
        standard.reserveCapacity(text.count + 3)
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: standard.append(byte)
            }
        }
        while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
        var bytes: [UInt8] = []
        return Base64.decode(standard.span, into: &bytes) ? bytes : nil
    }
}
