/// A date of the Gregorian calendar, also before it was in use: years 0001 to 9999.
package struct CalendarDate: Sendable, Hashable {
    let year: Int
    let month: Int
    let day: Int

    /// Reads `YYYY-MM-DD`; `nil` when there is no such day.
    init?(scanning scanner: inout DigitScanner) {
        guard let year = scanner.number(digits: 4, below: 10_000), year >= 1, scanner.skip("-"),
            let month = scanner.number(digits: 2, below: 13), month >= 1, scanner.skip("-"),
            let day = scanner.number(digits: 2, below: 32), day >= 1, day <= Self.days(of: month, in: year)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Reads a text that is a date and nothing more.
    package init?(_ text: Span<UInt8>) {
        var scanner = DigitScanner(text)
        self.init(scanning: &scanner)
        guard scanner.isAtEnd else { return nil }
    }

    /// The date a number of days after 1970-01-01; before it where the number is negative.
    package init(daysSince1970 days: Int) {
        // Years begin in March here, so that a leap day is a year's last.
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
    package func append(to bytes: inout [UInt8]) {
        bytes.append(number: year, digits: 4)
        bytes.append(UInt8(ascii: "-"))
        bytes.append(number: month, digits: 2)
        bytes.append(UInt8(ascii: "-"))
        bytes.append(number: day, digits: 2)
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
    /// Division that rounds down, so that the remainder is never negative.
    func flooredQuotientAndRemainder(dividingBy divisor: Self) -> (quotient: Self, remainder: Self) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

extension [UInt8] {
    /// Appends a number of at most `digits` digits with zeros before it.
    mutating func append(number: Int, digits: Int) {
        var power = 1
        for _ in 1..<digits { power *= 10 }
        while power > 0 {
            append(UInt8(ascii: "0") + UInt8(number / power % 10))
            power /= 10
        }
    }
}
