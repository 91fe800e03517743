/// A moment as RFC 3339 spells it: any offset, up to six decimals, years 0001 to 9999 in UTC.
package struct CanonicalTimestamp: Sendable, Hashable {
    /// Microseconds since 1970 in UTC.
    package let microseconds: Int64
    /// Whether it was spelled as its canonical form: `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
    package let isCanonical: Bool

    /// Reads a moment; `nil` when the text is none, or lies outside the years 0001 to 9999.
    package init?(_ text: Span<UInt8>) {
        var scanner = DigitScanner(text)
        guard let date = CalendarDate(scanning: &scanner), let separator = scanner.next(),
            separator == UInt8(ascii: "T") || separator == UInt8(ascii: "t") || separator == UInt8(ascii: " "),
            let hour = scanner.number(digits: 2, below: 24), scanner.skip(":"),
            let minute = scanner.number(digits: 2, below: 60), scanner.skip(":"),
            let second = scanner.number(digits: 2, below: 60), let fraction = Self.fraction(&scanner),
            let offset = Self.offset(&scanner), scanner.isAtEnd
        else { return nil }
        let seconds = Int64(date.daysSince1970) * 86_400 + Int64(hour * 3600 + minute * 60 + second - offset * 60)
        guard Self.seconds.contains(seconds) else { return nil }
        microseconds = seconds * 1_000_000 + Int64(fraction)
        isCanonical = text.count == 27 && separator == UInt8(ascii: "T") && text[26] == UInt8(ascii: "Z")
    }

    /// Appends the canonical form of a moment, without quotes.
    package static func append(_ microseconds: Int64, to bytes: inout [UInt8]) {
        let (days, inDay) = microseconds.flooredQuotientAndRemainder(dividingBy: 86_400_000_000)
        CalendarDate(daysSince1970: Int(days)).append(to: &bytes)
        let seconds = Int(inDay / 1_000_000)
        bytes.append(UInt8(ascii: "T"))
        bytes.append(number: seconds / 3600, digits: 2)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(number: seconds / 60 % 60, digits: 2)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(number: seconds % 60, digits: 2)
        bytes.append(UInt8(ascii: "."))
        bytes.append(number: Int(inDay % 1_000_000), digits: 6)
        bytes.append(UInt8(ascii: "Z"))
    }

    /// 0001-01-01T00:00:00Z up to the end of 9999.
    private static let seconds = Int64(-62_135_596_800)..<Int64(253_402_300_800)

    /// Microseconds of a fraction of one to six digits; 0 where there is none.
    private static func fraction(_ scanner: inout DigitScanner) -> Int? {
        guard scanner.skip(".") else { return 0 }
        var value = 0
        var digits = 0
        while let digit = scanner.digit() {
            digits += 1
            guard digits <= 6 else { return nil }
            value = value * 10 + digit
        }
        guard digits > 0 else { return nil }
        for _ in digits..<6 { value *= 10 }
        return value
    }

    /// Minutes to subtract.
    private static func offset(_ scanner: inout DigitScanner) -> Int? {
        guard let sign = scanner.next() else { return nil }
        switch sign {
        case UInt8(ascii: "Z"), UInt8(ascii: "z"): return 0
        case UInt8(ascii: "+"), UInt8(ascii: "-"):
            guard let hours = scanner.number(digits: 2, below: 24), scanner.skip(":"),
                let minutes = scanner.number(digits: 2, below: 60)
            else { return nil }
            return (sign == UInt8(ascii: "-") ? -1 : 1) * (hours * 60 + minutes)
        default: return nil
        }
    }
}
