import SyncModel
import Testing

@Suite struct MomentFormTests {
    static let moments: [Form] =
        [
            Form(.timestamp, .string("2026-01-02T03:04:05.000000Z"), #""2026-01-02T03:04:05.000000Z""#),
            Form(.timestamp, .string("0001-01-01T00:00:00.000000Z"), #""0001-01-01T00:00:00.000000Z""#),
            Form(.timestamp, .string("9999-12-31T23:59:59.999999Z"), #""9999-12-31T23:59:59.999999Z""#),
            Form(.timestamp, .string("1969-12-31T23:59:59.999999Z"), #""1969-12-31T23:59:59.999999Z""#),
        ] + altered.map { Form(.timestamp, .string($0), "\"\($1)\"", isAltered: true) }

    private static let altered = [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02t03:04:05.000000Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.000000z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02 03:04:05.000000Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.000000+00:00", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.100000Z"),
        ("2026-01-02T03:04:05.00001Z", "2026-01-02T03:04:05.000010Z"),
        // Offsets across days, months, years and leap days.
        ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000Z"),
        ("2025-12-31T23:30:00-00:31", "2026-01-01T00:01:00.000000Z"),
        ("2024-03-01T00:00:00+00:01", "2024-02-29T23:59:00.000000Z"),
        ("2023-03-01T00:00:00+00:01", "2023-02-28T23:59:00.000000Z"),
        ("2000-02-29T23:59:59.5-23:59", "2000-03-01T23:58:59.500000Z"),
        ("1970-01-01T00:00:00.25+23:59", "1969-12-31T00:01:00.250000Z"),
        // The ends of the range, reached by offsets.
        ("0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T22:59:59.999999-01:00", "9999-12-31T23:59:59.999999Z"),
    ]

    @Test(arguments: moments) func spellsTimestampsInUTC(form: Form) throws { try form.check() }

    @Test(arguments: [
        "", "2026-01-02", "2026-01-02T03:04Z", "2026-01-02T03:04:05", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.0000000Z", "2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:60Z",
        "2026-12-31T23:59:60Z", "2026-01-02T24:00:00Z", "2026-01-02T03:60:00Z", "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+01:60",
        "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05+01", "2026-01-02T03:04:05ZZ", "2026-01-02T03:04:05 Z",
        " 2026-01-02T03:04:05Z", "2026-1-2T03:04:05Z", "2026-01-02T3:04:05Z", "2026-01-02T03:04:05,5Z",
        "20260102T030405Z", "-2026-01-02T03:04:05Z", "2026-01-02X03:04:05Z", "2026-01-02T03:04:05\u{2212}01:00",
    ])
    func refusesInvalidTimestamps(text: String) {
        #expect(Spelling.string(text).isInvalid(Column(name: "due", type: .timestamp)))
    }

    @Test func readsMicrosecondsSince1970() throws {
        let epoch = try #require(Self.moment(Array("1970-01-01T00:00:00Z".utf8)))
        #expect(epoch.microseconds == 0 && !epoch.isCanonical)
        let before = try #require(Self.moment(Array("1969-12-31T23:59:59.999999Z".utf8)))
        #expect(before.microseconds == -1 && before.isCanonical)
        let later = try #require(Self.moment(Array("2026-01-02T03:04:05.000006Z".utf8)))
        #expect(later.microseconds == 1_767_323_045_000_006)
    }

    /// Every day of the range has its own number, one above that of the day before.
    @Test func numbersEveryDayFromYear1To9999() throws {
        var expected = Array("0001-01-01".utf8)
        var microseconds: Int64 = -62_135_596_800_000_000
        let day: Int64 = 86_400_000_000
        var year = 1
        while year <= 9999 {
            let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
            for (month, days) in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].enumerated() {
                // Each month's first and last day show whether one is missing.
                for dayOfMonth in [1, days] {
                    expected = Self.date(year, month + 1, dayOfMonth)
                    var spelled: [UInt8] = []
                    CanonicalTimestamp.append(microseconds + day * Int64(dayOfMonth - 1), to: &spelled)
                    guard spelled.starts(with: expected) else {
                        let text = String(decoding: spelled, as: UTF8.self)
                        Issue.record("\(text) for \(year)-\(month + 1)-\(dayOfMonth)")
                        return
                    }
                    let read = try #require(Self.moment(spelled))
                    guard read.microseconds == microseconds + day * Int64(dayOfMonth - 1) else {
                        Issue.record("\(year)-\(month + 1)-\(dayOfMonth) reads as \(read.microseconds)")
                        return
                    }
                }
                microseconds += day * Int64(days)
            }
            year += 1
        }
        #expect(microseconds == 253_402_300_800_000_000)
    }

    private static func moment(_ text: [UInt8]) -> CanonicalTimestamp? { CanonicalTimestamp(text.span) }

    private static func date(_ year: Int, _ month: Int, _ day: Int) -> [UInt8] {
        func padded(_ number: Int, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: digits - text.count) + text
        }
        return Array("\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T".utf8)
    }

    @Test(arguments: ["0001-01-01", "9999-12-31", "2024-02-29", "2000-02-29", "2026-11-30"])
    func acceptsDates(text: String) throws {
        try Form(.date, .string(text), "\"\(text)\"").check()
    }

    @Test(arguments: [
        "", "2026-02-29", "1900-02-29", "2026-06-31", "2026-13-01", "2026-00-10", "2026-10-00", "0000-01-01",
        "10000-01-01", "2026-1-1", "2026/01/01", "20260101", "2026-01-01T00:00:00Z", "2026-01-01 ", " 2026-01-01",
        "2026-01-011", "+2026-01-01",
    ])
    func refusesInvalidDates(text: String) {
        #expect(Spelling.string(text).isInvalid(Column(name: "birthday", type: .date)))
    }
}
