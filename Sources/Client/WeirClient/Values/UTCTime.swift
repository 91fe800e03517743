/// A moment as seconds since 1970, in the years 1 to 9999, and its text in UTC.
struct UTCTime: Equatable {
    let seconds: Int64
    let microseconds: Int64

    /// The years that the contract has.
    private static let range: Range<Int64> = -62_135_596_800..<253_402_300_800
    private static let secondsOfDay: Int64 = 86_400

    /// - Returns: `nil` outside of the contract's years.
    init?(seconds: Int64, microseconds: Int64 = 0) {
        guard Self.range.contains(seconds) else { return nil }
        self.seconds = seconds
        self.microseconds = microseconds
    }

    /// The moment of a number with a fraction, to the microsecond.
    init?(seconds time: Double) {
        guard time.isFinite, time.magnitude < Double(Self.range.upperBound) else { return nil }
        let whole = time.rounded(.down)
        let fraction = Int64(((time - whole) * 1_000_000).rounded())
        self.init(
            seconds: Int64(whole) + (fraction == 1_000_000 ? 1 : 0),
            microseconds: fraction == 1_000_000 ? 0 : fraction)
    }

    /// The moment of the contract's canonical text, `2026-01-02T03:04:05.678000Z`.
    init?(canonical text: [UInt8]) {
        guard text.count == 27 else { return nil }
        func number(_ range: Range<Int>) -> Int64? { Int64(String(decoding: text[range], as: UTF8.self)) }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            let microseconds = number(20..<26), (1...12).contains(month)
        else { return nil }
        let days = Self.days(year, month, day)
        self.init(
            seconds: days * Self.secondsOfDay + hour * 3600 + minute * 60 + second, microseconds: microseconds)
    }

    /// The contract's canonical text.
    var text: [UInt8] {
        let second = (seconds % Self.secondsOfDay + Self.secondsOfDay) % Self.secondsOfDay
        let (year, month, day) = Self.date((seconds - second) / Self.secondsOfDay)
        func digits(_ number: Int64, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return Array(
            ("\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))T\(digits(second / 3600, 2)):"
                + "\(digits(second / 60 % 60, 2)):\(digits(second % 60, 2)).\(digits(microseconds, 6))Z").utf8)
    }

    // Dates of the Gregorian calendar count from 0000-03-01, in eras of 400 years: where a year begins in March, a leap day
    // is its last. 1970-01-01 is day 719,468.

    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month > 2 ? year : year - 1
        let (era, yearOfEra) = (year / 400, year % 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let days = days + 719_468
        let (era, dayOfEra) = (days / 146_097, days % 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * dayOfYear + 2) / 153
        let month = march < 10 ? march + 3 : march - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * march + 2) / 5 + 1)
    }
}
