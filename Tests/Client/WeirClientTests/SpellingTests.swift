import Testing
import WeirClient

/// How values of the server are written into the app's columns.
@Suite struct SpellingTests {
    typealias Canonical = ValueSpelling.Canonical

    /// What the app wrote, what the server makes of it, and the same again in the app's spelling.
    @Test(arguments: [
        (ColumnType.text, SQLValue.text("ä"), Canonical.string(Array("ä".utf8))),
        (.text, .integer(42), .string(Array("42".utf8))),
        (.text, .blob(Array(0..<16)), .string(Array("00010203-0405-0607-0809-0a0b0c0d0e0f".utf8))),
        (.integer, .integer(-7), .integer(-7)),
        (.integer, .integer(.max), .string(Array("9223372036854775807".utf8))),
        (.real, .real(0.1), .real(0.1)), (.real, .real(2), .integer(2)),
        (.boolean, .integer(1), .boolean(true)), (.boolean, .integer(0), .boolean(false)),
        (.decimal, .text("12.50"), .string(Array("12.50".utf8))), (.decimal, .real(12.5), .string(Array("12.50".utf8))),
        (.decimal, .integer(12), .string(Array("12.00".utf8))),
        (.uuid, .blob(Array(0..<16)), .string(Array("00010203-0405-0607-0809-0a0b0c0d0e0f".utf8))),
        (
            .uuid, .text("00010203-0405-0607-0809-0A0B0C0D0E0F"),
            .string(Array("00010203-0405-0607-0809-0a0b0c0d0e0f".utf8))
        ),
        (
            .uuid, .text("00010203-0405-0607-0809-0a0b0c0d0e0f"),
            .string(Array("00010203-0405-0607-0809-0a0b0c0d0e0f".utf8))
        ),
        (.timestamp, .text("2026-01-02 03:04:05.678"), .string(Array("2026-01-02T03:04:05.678000Z".utf8))),
        (.timestamp, .text("2026-01-02 03:04:05"), .string(Array("2026-01-02T03:04:05.000000Z".utf8))),
        (.timestamp, .text("2026-01-02T03:04:05.600Z"), .string(Array("2026-01-02T03:04:05.600000Z".utf8))),
        (.timestamp, .text("2026-01-02T03:04:05Z"), .string(Array("2026-01-02T03:04:05.000000Z".utf8))),
        (.timestamp, .integer(1_772_323_199), .string(Array("2026-02-28T23:59:59.000000Z".utf8))),
        (.timestamp, .real(951_782_400.25), .string(Array("2000-02-29T00:00:00.250000Z".utf8))),
        (.timestamp, .real(-0.5), .string(Array("1969-12-31T23:59:59.500000Z".utf8))),
        (.timestamp, .integer(-62_135_596_800), .string(Array("0001-01-01T00:00:00.000000Z".utf8))),
        (.date, .text("2026-01-02"), .string(Array("2026-01-02".utf8))),
        (.date, .text("2026-01-02 00:00:00.000"), .string(Array("2026-01-02".utf8))),
        (.bytes, .blob([0, 255, 16]), .string(Array("AP8Q".utf8))), (.bytes, .text("abc"), .string(Array("YWJj".utf8))),
        (.json, .text("[1]"), .document(Array("[1]".utf8))),
        (.json, .blob(Array("[1]".utf8)), .document(Array("[1]".utf8))),
    ]) func aValueComesBackAsTheAppSpellsIt(type: ColumnType, value: SQLValue, canonical: Canonical) throws {
        let spelling = try #require(ValueSpelling(of: value, type: type))
        #expect(spelling.value(of: canonical) == value)
        #expect(spelling.value(of: .null) == .null)
    }

    /// What the app has written by mistake is no example for other rows.
    @Test(arguments: [
        (ColumnType.date, SQLValue.text("2026-05-01 10:30")), (.date, .text("2026-05-01 00:00 in May")),
        (.date, .text("1.5.2026")), (.date, .text("")),
        (.timestamp, .text("Invalid Date")), (.timestamp, .text("2026-05-01")), (.timestamp, .text("2026-05-01 noon")),
        (.timestamp, .text("")), (.uuid, .text("A")), (.uuid, .blob([1])), (.text, .blob([1, 2])),
    ]) func aValueThatIsNoneOfTheTypeHasNoSpelling(type: ColumnType, value: SQLValue) {
        #expect(ValueSpelling(of: value, type: type) == nil)
    }

    @Test(arguments: ["007", "+7", "-0", "7.0", "1e3", "0x7"]) func aTextThatOnlyLooksLikeANumberStaysOne(
        text: String
    ) throws {
        let spelling = try #require(ValueSpelling(of: .integer(42), type: .text))
        #expect(spelling.value(of: .string(Array(text.utf8))) == .text(text))
        #expect(spelling.value(of: .string(Array("-7".utf8))) == .integer(-7))
    }

    @Test(arguments: [
        ("2026-05-01 10:30", "2026-07-01", "2026-07-01"), ("Invalid Date", "2026-07-01", "2026-07-01 00:00:00.000"),
    ]) func rowsAreSpelledLikeTheFirstOnesThatHaveAValueOfTheType(
        wrong: String, day: String, pulled: String
    ) async throws {
        let server = ContractServer(["item": ["day": "date"]])
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, day TEXT)")
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', '\(wrong)')")
        if pulled != day { try device.run("INSERT INTO item VALUES ('b', NULL), ('c', '2026-05-02 00:00:00.000')") }
        server.write("item", "z", ["day": day])
        try await device.weir.sync()
        #expect(try device.rows("SELECT day FROM item WHERE id = 'z'") == [pulled])
    }

    @Test func decimalsOfAnotherDeviceAreKept() throws {
        let spelling = try #require(ValueSpelling(of: .text("2026-01-02 03:04:05.6"), type: .timestamp))
        let value = spelling.value(of: .string(Array("2026-01-02T03:04:05.678910Z".utf8)))
        #expect(value == .text("2026-01-02 03:04:05.67891"))
    }

    @Test(arguments: [
        (Affinity.none, ColumnType.uuid, SQLValue.blob(Array(0..<16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (.text, .uuid, .text("00010203-0405-0607-0809-0a0b0c0d0e0f"), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (.integer, .text, .integer(42), "42"), (.numeric, .decimal, .real(12.5), "12.50"),
        (.text, .decimal, .text("12.50"), "12.50"),
        (.numeric, .timestamp, .text("2026-01-02 03:04:05.000"), "2026-01-02T03:04:05.000000Z"),
        (.text, .timestamp, .text("2026-01-02T03:04:05.000000Z"), "2026-01-02T03:04:05.000000Z"),
        (.integer, .timestamp, .integer(0), "1970-01-01T00:00:00.000000Z"),
        (.real, .timestamp, .real(0.5), "1970-01-01T00:00:00.500000Z"),
        (.text, .bytes, .text("abc"), "YWJj"), (.none, .bytes, .blob(Array("abc".utf8)), "YWJj"),
    ]) func withoutAValueTheDeclarationDecides(
        affinity: Affinity, type: ColumnType, value: SQLValue, canonical: String
    ) {
        #expect(ValueSpelling(affinity: affinity, type: type).value(of: .string(Array(canonical.utf8))) == value)
    }
}
