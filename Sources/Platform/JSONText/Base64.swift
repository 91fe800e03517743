/// Base64 in the standard alphabet with padding (RFC 4648, section 4).
package enum Base64 {
    /// The characters for `count` bytes.
    package static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    package static func encode(_ data: Span<UInt8>, into bytes: inout [UInt8]) {
        bytes.append(addingCapacity: encodedCount(data.count)) { output in
            var index = 0
            while index + 3 <= data.count {
                let group = UInt32(data[index]) << 16 | UInt32(data[index + 1]) << 8 | UInt32(data[index + 2])
                append(group, characters: 4, to: &output)
                index += 3
            }
            switch data.count - index {
            case 1: append(UInt32(data[index]) << 16, characters: 2, to: &output)
            case 2: append(UInt32(data[index]) << 16 | UInt32(data[index + 1]) << 8, characters: 3, to: &output)
            default: break
            }
        }
    }

    /// - Returns: `false`, with nothing appended, if the text is not the canonical encoding: other characters, missing
    ///   padding, or bits after the last byte (RFC 4648, section 3.5).
    package static func decode(_ text: Span<UInt8>, into bytes: inout [UInt8]) -> Bool {
        guard text.count % 4 == 0 else { return false }
        let start = bytes.count
        var isDecoded = false
        bytes.append(addingCapacity: text.count / 4 * 3) { isDecoded = decode(text, into: &$0) }
        if !isDecoded { bytes.removeSubrange(start...) }
        return isDecoded
    }

    private static func decode(_ text: Span<UInt8>, into output: inout OutputSpan<UInt8>) -> Bool {
        var index = 0
        while index < text.count {
            guard let group = group(text, at: index, isLast: index + 4 == text.count) else { return false }
            output.append(UInt8(truncatingIfNeeded: group.bits >> 16))
            if group.count > 1 { output.append(UInt8(truncatingIfNeeded: group.bits >> 8)) }
            if group.count > 2 { output.append(UInt8(truncatingIfNeeded: group.bits)) }
            index += 4
        }
        return true
    }

    private static let padding = UInt8(ascii: "=")

    /// Writes the first characters of a group, and padding for the others.
    @inline(__always)
    private static func append(_ group: UInt32, characters: Int, to output: inout OutputSpan<UInt8>) {
        for index in 0..<4 {
            output.append(
                index < characters
                    ? character(UInt8(truncatingIfNeeded: group >> (18 - 6 * UInt32(index))) & 63) : padding)
        }
    }

    /// The 24 bits of four characters, and the number of bytes.
    private static func group(_ text: Span<UInt8>, at index: Int, isLast: Bool) -> (bits: UInt32, count: Int)? {
        var characters = 4
        if isLast && text[index + 3] == padding { characters = text[index + 2] == padding ? 2 : 3 }
        var bits: UInt32 = 0
        for offset in 0..<characters {
            guard let value = value(text[index + offset]) else { return nil }
            bits |= UInt32(value) << (18 - 6 * UInt32(offset))
        }
        // The bits of missing bytes must be 0.
        let unused: UInt32 = characters == 4 ? 0 : characters == 3 ? 0xFF : 0xFFFF
        return bits & unused == 0 ? (bits, characters - 1) : nil
    }

    private static func character(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + value - 26
        case 52..<62: UInt8(ascii: "0") + value - 52
        case 62: UInt8(ascii: "+")
        default: UInt8(ascii: "/")
        }
    }

    private static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
