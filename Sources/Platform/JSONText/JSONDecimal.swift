/// The exact value of a number in JSON's spelling: digits and the place of the point, never rounded.
///
/// The value is `digits × 10^exponent`, where the digits are those of the text between ``JSONDecimal/digitRange``'s
/// bounds without the point.
package struct JSONDecimal: ~Escapable {
    /// The number's text.
    package let text: Span<UInt8>

    /// Whether the text begins with a minus; true for `-0`, too.
    package let isNegative: Bool

    /// From the first digit that is not 0 to behind the last one that is not; empty when the number is 0.
    ///
    /// A point may stand in between.
    package let digitRange: Range<Int>

    /// How many digits `digitRange` holds.
    package let digitCount: Int

    /// The power of ten of the last digit in `digitRange`, at most ±10^15; 0 when the number is 0.
    package let exponent: Int

    /// Takes a text apart that follows JSON's grammar for numbers.
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
        let pointPlace = point ?? mantissaEnd
        let holdsPoint = start < pointPlace && pointPlace < end
        digitCount = end - start - (holdsPoint ? 1 : 0)
        // Places between the last digit and the point; behind the point they count down.
        let places = end <= pointPlace ? pointPlace - end : pointPlace - end + 1
        exponent = places + Self.writtenExponent(text, from: mantissaEnd)
    }

    /// The exponent that stands in the text; beyond ±10^15 it is taken for that, which no text of digits can undo.
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

    /// The value when it is whole and its magnitude fits 64 bits.
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
