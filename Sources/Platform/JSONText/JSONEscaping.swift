extension [UInt8] {
    package init(copying span: Span<UInt8>) {
        self = span.withUnsafeBufferPointer { Array($0) }
    }

    package mutating func append(_ span: Span<UInt8>) {
        append(addingCapacity: span.count) { $0.append(copying: span) }
    }

    /// Appends a JSON string in quotes with minimal escaping.
    ///
    /// Escapes are `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, and `\u00xx` in lower case for other control characters
    /// below 0x20.
    ///
    /// - Parameter text: must be UTF-8.
    package mutating func appendJSONString(_ text: Span<UInt8>) {
        // Most texts need no escape, and are searched once.
        let plain = text.withUnsafeBufferPointer { JSONEscape.next(in: $0, from: 0) }
        append(addingCapacity: JSONEscape.escapedCount(text, plain: plain)) { $0.appendJSONString(text, plain: plain) }
    }
}

extension OutputSpan<UInt8> {
    /// Traps if there is no space.
    package mutating func append(copying span: Span<UInt8>) {
        span.withUnsafeBufferPointer { append(copying: $0[...]) }
    }

    /// Appends a JSON string in quotes with minimal escaping; traps if there is no space.
    package mutating func appendJSONString(_ text: Span<UInt8>) {
        appendJSONString(text, plain: text.withUnsafeBufferPointer { JSONEscape.next(in: $0, from: 0) })
    }

    /// - Parameter plain: the index of the first byte that needs an escape; the count if there is none.
    fileprivate mutating func appendJSONString(_ text: Span<UInt8>, plain: Int) {
        append(UInt8(ascii: "\""))
        text.withUnsafeBufferPointer { buffer in
            var (start, end) = (0, plain)
            while true {
                append(copying: buffer[start..<end])
                if end == buffer.count { break }
                appendEscape(buffer[end])
                start = end + 1
                end = JSONEscape.next(in: buffer, from: start)
            }
        }
        append(UInt8(ascii: "\""))
    }

    private mutating func append(copying slice: Slice<UnsafeBufferPointer<UInt8>>) {
        precondition(slice.count <= freeCapacity, "no space for the bytes")
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

/// Escaping of JSON strings.
package enum JSONEscape {
    /// The bytes of a string with minimal escaping, including quotes.
    ///
    /// - Parameter plain: the index of the first byte that needs an escape; the count if there is none.
    static func escapedCount(_ text: Span<UInt8>, plain: Int) -> Int {
        text.withUnsafeBufferPointer { buffer in
            var count = buffer.count + 2
            var index = plain
            while index < buffer.count {
                count += letter(buffer[index]) == nil ? 5 : 1
                index = next(in: buffer, from: index + 1)
            }
            return count
        }
    }

    /// The letter of a two-character escape; `nil` for bytes that need `\u00xx`.
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

    /// The index of the first byte from `start` on that needs an escape; the count if there is none.
    package static func next(in buffer: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let raw = UnsafeRawBufferPointer(buffer)
        var index = start
        // In bounds: as many bytes are left. Four words at a time take half as long.
        while index + 32 <= raw.count {
            let first = escapes(raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let second = escapes(raw.loadUnaligned(fromByteOffset: index &+ 8, as: UInt64.self))
            let third = escapes(raw.loadUnaligned(fromByteOffset: index &+ 16, as: UInt64.self))
            let fourth = escapes(raw.loadUnaligned(fromByteOffset: index &+ 24, as: UInt64.self))
            if first | second | third | fourth != 0 { break }
            index &+= 32
        }
        while index + 8 <= raw.count {
            if mayNeedEscape(raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { break }
            index += 8
        }
        // Checks the last bytes together with bytes before them, if there are enough.
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

    private static func mayNeedEscape(_ word: UInt64) -> Bool { escapes(word) != 0 }

    /// Not zero if one of eight bytes needs an escape; may have false positives, but no false negatives.
    @inline(__always)
    private static func escapes(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        let quotes = word ^ (ones &* 0x22)
        let backslashes = word ^ (ones &* 0x5C)
        // Subtraction borrows into the high bit of a smaller byte, unless the bit was set before.
        let controls = (word &- ones &* 0x20) & ~word
        let found = controls | ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
        return found & highs
    }
}
