extension [UInt8] {
    /// Appends a span's bytes.
    package mutating func append(_ span: Span<UInt8>) {
        append(addingCapacity: span.count) { $0.append(copying: span) }
    }

    /// Appends a JSON string in quotes, escaped as little as the grammar allows.
    ///
    /// Escapes are `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t` and `\u00xx` in lower case for the other control characters
    /// below 0x20; everything else stays UTF-8 as it is.
    ///
    /// - Parameter text: The string's bytes, which must be UTF-8.
    package mutating func appendJSONString(_ text: Span<UInt8>) {
        append(addingCapacity: JSONEscape.spelledCount(text)) { $0.appendJSONString(text) }
    }
}

extension OutputSpan<UInt8> {
    /// Copies a span's bytes; traps when there is no room.
    package mutating func append(copying span: Span<UInt8>) {
        span.withUnsafeBufferPointer { append(copying: $0[...]) }
    }

    /// Writes a string in quotes, escaped as little as the grammar allows; traps when there is no room.
    package mutating func appendJSONString(_ text: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        text.withUnsafeBufferPointer { buffer in
            var start = 0
            while true {
                let end = JSONEscape.next(in: buffer, from: start)
                append(copying: buffer[start..<end])
                if end == buffer.count { break }
                appendEscape(buffer[end])
                start = end + 1
            }
        }
        append(UInt8(ascii: "\""))
    }

    private mutating func append(copying slice: Slice<UnsafeBufferPointer<UInt8>>) {
        precondition(slice.count <= freeCapacity, "no room for the bytes")
        withUnsafeMutableBufferPointer { buffer, count in
            // In bounds: checked above.
            _ = buffer.extracting(count...).initialize(fromContentsOf: slice)
            count += slice.count
        }
    }

    private mutating func appendEscape(_ byte: UInt8) {
        append(UInt8(ascii: "\\"))
        if let letter = JSONEscape.letter(byte) {
            append(letter)
            return
        }
        append(UInt8(ascii: "u"))
        append(UInt8(ascii: "0"))
        append(UInt8(ascii: "0"))
        append(UInt8(ascii: "0") + byte >> 4)
        let low = byte & 0xF
        append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
    }
}

/// What a JSON string cannot hold as it is, and how that is spelled.
enum JSONEscape {
    /// The bytes of a string in its minimal spelling, quotes included.
    static func spelledCount(_ text: Span<UInt8>) -> Int {
        text.withUnsafeBufferPointer { buffer in
            var count = buffer.count + 2
            var index = next(in: buffer, from: 0)
            while index < buffer.count {
                count += letter(buffer[index]) == nil ? 5 : 1
                index = next(in: buffer, from: index + 1)
            }
            return count
        }
    }

    /// The letter of an escape of two characters; `nil` for bytes that take `\u00xx`.
    static func letter(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
        case 0x08: UInt8(ascii: "b")
        case 0x09: UInt8(ascii: "t")
        case 0x0A: UInt8(ascii: "n")
        case 0x0C: UInt8(ascii: "f")
        case 0x0D: UInt8(ascii: "r")
        default: nil
        }
    }

    /// The place of the first byte from `start` on that needs an escape; the count when there is none.
    static func next(in buffer: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let raw = UnsafeRawBufferPointer(buffer)
        var index = start
        // In bounds: eight bytes are left.
        while index + 8 <= raw.count {
            if mayNeedEscape(raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { break }
            index += 8
        }
        // The rest of a string is looked at together with bytes before it, where there are enough.
        if index < raw.count && index + 8 > raw.count && raw.count >= 8
            && !mayNeedEscape(raw.loadUnaligned(fromByteOffset: raw.count - 8, as: UInt64.self))
        {
            return raw.count
        }
        while index < raw.count && !needsEscape(raw[index]) { index += 1 }
        return index
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    /// Whether one of eight bytes needs an escape; false alarms cost time only, and none is missed.
    private static func mayNeedEscape(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        let quotes = word ^ (ones &* 0x22)
        let backslashes = word ^ (ones &* 0x5C)
        // Subtracting borrows into a byte's high bit when the byte is smaller, unless the bit was set before.
        let controls = (word &- ones &* 0x20) & ~word
        let found = controls | ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
        return found & highs != 0
    }
}
