/// Where the members of objects are in JSON that Weir has written itself: without white space, names without escapes.
///
/// For rows on their way to a client, of which few values are looked at and the others are copied: it costs a small part of parsing
/// them. Such JSON was valid when it was written, and is not validated again; in any other, ranges may be wrong, but are within
/// the bytes.
package enum JSONRanges {
    /// Calls `body` for each member of an object.
    ///
    /// - Parameters:
    ///   - start: where the object begins.
    ///   - body: gets the range of the name between its quotes, and where the value begins; returns the end of the value, of
    ///     ``end(ofValue:in:)``, or `nil` where there is none.
    /// - Returns: the end of the object; `nil` where there is none.
    @inlinable @inline(__always) package static func forEachMember(
        in json: Span<UInt8>, objectAt start: Int, _ body: (_ name: Range<Int>, _ value: Int) -> Int?
    ) -> Int? {
        guard start < json.count, json[start] == UInt8(ascii: "{") else { return nil }
        var index = start + 1
        if index < json.count, json[index] == UInt8(ascii: "}") { return index + 1 }
        while true {
            guard let nameEnd = end(ofString: index, in: json), nameEnd < json.count,
                json[nameEnd] == UInt8(ascii: ":"), let valueEnd = body(index + 1..<nameEnd - 1, nameEnd + 1),
                valueEnd < json.count
            else { return nil }
            switch json[valueEnd] {
            case UInt8(ascii: ","): index = valueEnd + 1
            case UInt8(ascii: "}"): return valueEnd + 1
            default: return nil
            }
        }
    }

    /// The end of the value that begins at an index.
    @inlinable package static func end(ofValue start: Int, in json: Span<UInt8>) -> Int? {
        guard start < json.count else { return nil }
        switch json[start] {
        case UInt8(ascii: "\""): return end(ofString: start, in: json)
        case UInt8(ascii: "{"), UInt8(ascii: "["): return end(ofContainer: start, in: json)
        default:
            var index = start
            while index < json.count {
                switch json[index] {
                case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"): return index > start ? index : nil
                default: index += 1
                }
            }
            return index
        }
    }

    @usableFromInline static func end(ofContainer start: Int, in json: Span<UInt8>) -> Int? {
        var depth = 0
        var index = start
        while index < json.count {
            switch json[index] {
            case UInt8(ascii: "\""):
                guard let end = end(ofString: index, in: json) else { return nil }
                index = end
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth == 0 { return index + 1 }
            default: break
            }
            index += 1
        }
        return nil
    }

    @inlinable static func end(ofString start: Int, in json: Span<UInt8>) -> Int? {
        guard start < json.count, json[start] == UInt8(ascii: "\"") else { return nil }
        var index = start + 1
        while true {
            // Eight bytes at a time, in bounds by the condition, up to the first quote or backslash.
            while index + 8 <= json.count {
                let word = json.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
                let found = places(of: UInt8(ascii: "\""), in: word) | places(of: UInt8(ascii: "\\"), in: word)
                if found != 0 {
                    index += found.trailingZeroBitCount / 8
                    break
                }
                index += 8
            }
            while index < json.count, json[index] != UInt8(ascii: "\""), json[index] != UInt8(ascii: "\\") {
                index += 1
            }
            guard index < json.count else { return nil }
            if json[index] == UInt8(ascii: "\"") { return index + 1 }
            index += 2
        }
    }

    /// The highest bit of each byte of a word that equals one; those above the first may be wrong.
    @inlinable @inline(__always) static func places(of byte: UInt8, in word: UInt64) -> UInt64 {
        let difference = word ^ (0x0101_0101_0101_0101 &* UInt64(byte))
        return (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080
    }
}
