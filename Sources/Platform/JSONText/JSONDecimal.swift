/// The exact decimal value of a JSON number, never rounded: `digits × 10^exponent`, with the digits in
/// ``JSONDecimal/digitRange``.
package struct JSONDecimal: ~Escapable {
    package let text: Span<UInt8>

    /// Also true for `-0`.
    package let isNegative: Bool

    /// From the first to the last nonzero digit, possibly with a point in between; empty for 0.
    package let digitRange: Range<Int>

    package let digitCount: Int

    /// The power of ten of the last digit, limited to ±10^15; 0 for 0.
    package let exponent: Int

    /// - Parameter text: a valid JSON number.
    @_lifetime(copy text)
    package init(_ text: Span<UInt8>) {
        self.text = text
        isNegative = text.count > 0 && text[0] == UInt8(ascii: "-")
        var mantissaEnd = text.count
        var point: Int?
        for index in text.indices {
            if text[index] == UInt8(ascii: ".") { point = index }
            if text[index] | 0x20 == UInt8(ascii: "e") {
                mantissaEnd = index
                break
            }
        }
        var start = isNegative ? 1 : 0
        while start < mantissaEnd && !(text[start].isDigit && text[start] != UInt8(ascii: "0")) { start += 1 }
        var end = mantissaEnd
        while end > start && !(text[end - 1].isDigit && text[end - 1] != UInt8(ascii: "0")) { end -= 1 }
        digitRange = start..<end
        if start == end {
            digitCount = 0
            exponent = 0
            return
        }
        let pointIndex = point ?? mantissaEnd
        let hasPoint = start < pointIndex && pointIndex < end
        digitCount = end - start - (hasPoint ? 1 : 0)
        // Digits between the last digit and the point; negative after the point.
        let places = end <= pointIndex ? pointIndex - end : pointIndex - end + 1
        exponent = places + Self.writtenExponent(text, from: mantissaEnd)
    }

    /// The exponent in the text, limited to ±10^15, which the digits of no document can offset.
    private static func writtenExponent(_ text: Span<UInt8>, from start: Int) -> Int {
        var index = start + 1
        guard index < text.count else { return 0 }
        let isNegative = text[index] == UInt8(ascii: "-")
        if !text[index].isDigit { index += 1 }
        var exponent = 0
        while index < text.count {
            exponent = min(exponent * 10 + Int(text[index] &- UInt8(ascii: "0")), 1_000_000_000_000_000)
            index += 1
        }
        return isNegative ? -exponent : exponent
    }

    /// The value if it is an integer whose magnitude fits 64 bits.
    package var wholeNumber: (isNegative: Bool, magnitude: UInt64)? {
        // 2^64 has 20 digits.
        guard exponent >= 0, digitCount + exponent <= 20 else { return nil }
        var magnitude: UInt64 = 0
        for index in digitRange where text[index] != UInt8(ascii: ".") {
            guard Self.append(UInt64(text[index] &- UInt8(ascii: "0")), to: &magnitude) else { return nil }
        }
        for _ in 0..<exponent {
            guard Self.append(0, to: &magnitude) else { return nil }
        }
        return (isNegative && magnitude > 0, magnitude)
    }

    private static func append(_ digit: UInt64, to magnitude: inout UInt64) -> Bool {
        let (shifted, isTooLarge) = magnitude.multipliedReportingOverflow(by: 10)
        let (sum, isTooLargeToo) = shifted.addingReportingOverflow(digit)
        magnitude = sum
        return !isTooLarge && !isTooLargeToo
    }
}

extension UInt8 {
    /// ASCII digits only.
    @inlinable package var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }
}
