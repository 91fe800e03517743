/// A time in RFC 3339: any offset, up to six decimals, years 0001 to 9999 in UTC.
package struct CanonicalTimestamp: Sendable, Hashable {
    /// Since 1970, in UTC.
    package let microseconds: Int64
    /// Whether the text was canonical: `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
    package let isCanonical: Bool

    /// `nil` when the text is not a time, or outside the years 0001 to 9999.
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

    /// Appends the canonical form, without quotes.
    package static func append(_ microseconds: Int64, to bytes: inout [UInt8]) {
        let (days, inDay) = microseconds.flooredQuotientAndRemainder(dividingBy: 86_400_000_000)
        let date = CalendarDate(daysSince1970: Int(days))
        let (seconds, fraction) = (Int(inDay / 1_000_000), Int(inDay % 1_000_000))
        bytes.append(addingCapacity: 27) { output in
            date.append(to: &output)
            output.append(UInt8(ascii: "T"))
            output.append(twoDigits: seconds / 3600)
            output.append(UInt8(ascii: ":"))
            output.append(twoDigits: seconds / 60 % 60)
            output.append(UInt8(ascii: ":"))
            output.append(twoDigits: seconds % 60)
            output.append(UInt8(ascii: "."))
            output.append(twoDigits: fraction / 10_000)
            output.append(twoDigits: fraction / 100 % 100)
            output.append(twoDigits: fraction % 100)
            output.append(UInt8(ascii: "Z"))
        }
    }

    /// From 0001-01-01T00:00:00Z to the end of 9999.
    private static let seconds = Int64(-62_135_596_800)..<Int64(253_402_300_800)

    /// Microseconds of a fraction of one to six digits; 0 without a fraction.
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

    /// In minutes, to be subtracted.
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

/// A date of the proleptic Gregorian calendar, years 0001 to 9999.
package struct CalendarDate: Sendable, Hashable {
    let year: Int
    let month: Int
    let day: Int

    /// Reads `YYYY-MM-DD`; `nil` when no such day exists.
    init?(scanning scanner: inout DigitScanner) {
        guard let year = scanner.number(digits: 4, below: 10_000), year >= 1, scanner.skip("-"),
            let month = scanner.number(digits: 2, below: 13), month >= 1, scanner.skip("-"),
            let day = scanner.number(digits: 2, below: 32), day >= 1, day <= Self.days(of: month, in: year)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Reads a text that is exactly a date.
    package init?(_ text: Span<UInt8>) {
        var scanner = DigitScanner(text)
        self.init(scanning: &scanner)
        guard scanner.isAtEnd else { return nil }
    }

    /// Negative numbers give dates before 1970-01-01.
    package init(daysSince1970 days: Int) {
        // Years begin in March here, so that a leap day is the last day of a year.
        let (era, day) = (days + 719_468).flooredQuotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * shifted + 2) / 5 + 1
        month = shifted < 10 ? shifted + 3 : shifted - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days after 1970-01-01.
    package var daysSince1970: Int {
        let year = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = year.flooredQuotientAndRemainder(dividingBy: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Appends `YYYY-MM-DD`.
    package func append(to bytes: inout [UInt8]) { bytes.append(addingCapacity: 10) { append(to: &$0) } }

    fileprivate func append(to output: inout OutputSpan<UInt8>) {
        output.append(twoDigits: year / 100)
        output.append(twoDigits: year % 100)
        output.append(UInt8(ascii: "-"))
        output.append(twoDigits: month)
        output.append(UInt8(ascii: "-"))
        output.append(twoDigits: day)
    }

    private static func days(of month: Int, in year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

extension FixedWidthInteger {
    /// Rounds down, so that the remainder is never negative.
    func flooredQuotientAndRemainder(dividingBy divisor: Self) -> (quotient: Self, remainder: Self) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

extension OutputSpan<UInt8> {
    /// Appends a number below 100.
    fileprivate mutating func append(twoDigits number: Int) {
        append(UInt8(ascii: "0") + UInt8(number / 10))
        append(UInt8(ascii: "0") + UInt8(number % 10))
    }
}

/// Scans a text of digits and separators.
struct DigitScanner: ~Escapable {
    private let text: Span<UInt8>
    private(set) var offset = 0

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) { self.text = text }

    var isAtEnd: Bool { offset == text.count }

    /// The next byte.
    @_lifetime(self: copy self)
    mutating func next() -> UInt8? {
        guard offset < text.count else { return nil }
        defer { offset += 1 }
        return text[offset]
    }

    /// The next byte if it is a digit.
    @_lifetime(self: copy self)
    mutating func digit() -> Int? {
        guard offset < text.count, case let digit = text[offset] &- UInt8(ascii: "0"), digit <= 9 else { return nil }
        offset += 1
        return Int(digit)
    }

    /// A number of exactly `digits` digits.
    @_lifetime(self: copy self)
    mutating func number(digits: Int, below limit: Int) -> Int? {
        var value = 0
        for _ in 0..<digits {
            guard let digit = digit() else { return nil }
            value = value * 10 + digit
        }
        return value < limit ? value : nil
    }

    /// Skips the byte if it is the next one; otherwise returns false.
    @_lifetime(self: copy self)
    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
        guard offset < text.count, text[offset] == UInt8(ascii: byte) else { return false }
        offset += 1
        return true
    }
}
