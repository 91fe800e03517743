import SyncModel
import Testing

@Suite struct TextFormTests {
    static let texts: [Form] = [
        Form(.text, .string(""), #""""#),
        Form(.text, .string("a\"b\\c/d"), #""a\"b\\c/d""#),
        Form(.text, .string("\u{1}\u{8}\t\n\u{C}\r\u{7F}"), #""\u0001\b\t\n\f\r\#u{7F}""#),
        // Not normalized: one scalar, and a letter with a combining accent.
        Form(.text, .string("é"), #""é""#),
        Form(.text, .string("e\u{301}"), "\"e\u{301}\""),
        Form(.text, .string("😀\u{2028}"), "\"😀\u{2028}\""),
    ]

    @Test(arguments: texts) func keepsTextAsItWasSent(form: Form) throws { try form.check() }

    @Test func refusesNULInText() {
        #expect(Spelling.string("a\0b").isInvalid(Column(name: "name", type: .text)))
        #expect(Spelling.string("\0").isInvalid(Column(name: "name", type: .text)))
    }

    @Test func countsTheLengthOfATextInScalars() throws {
        let column = Column(name: "name", type: .text, maximumLength: 3)
        #expect(try Spelling.string("äöü").canonical(column).json == "\"äöü\"")
        #expect(try Spelling.string("😀😀😀").canonical(column).json == "\"😀😀😀\"")
        // Two characters as a reader sees them, four scalars.
        #expect(Spelling.string("e\u{301}e\u{301}").isInvalid(column))
        #expect(Spelling.string("abcd").isInvalid(column))
    }

    static let uuids: [Form] = [
        Form(.uuid, .string("00112233-4455-6677-8899-aabbccddeeff"), #""00112233-4455-6677-8899-aabbccddeeff""#),
        Form(
            .uuid, .string("00112233-4455-6677-8899-AABBCCDDEEFF"), #""00112233-4455-6677-8899-aabbccddeeff""#,
            isAltered: true),
        Form(
            .uuid, .string("00112233-4455-6677-8899-aabbccddeefF"), #""00112233-4455-6677-8899-aabbccddeeff""#,
            isAltered: true),
        Form(
            .uuid, .string("00112233445566778899aabbccddeeff"), #""00112233-4455-6677-8899-aabbccddeeff""#,
            isAltered: true),
    ]

    @Test(arguments: uuids) func spellsUUIDsInLowerCaseWithHyphens(form: Form) throws { try form.check() }

    @Test(arguments: [
        "", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeeff0",
        "{00112233-4455-6677-8899-aabbccddeeff}", "0011223-34455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeefg", "00112233-4455-6677-88990aabbccddeeff",
        "0011223344556677-8899-aabbccddeeff", "00112233-445566778899aabbccddeeff",
        "----------------------------------------", "٠0112233-4455-6677-8899-aabbccddeef",
    ])
    func refusesInvalidUUIDs(text: String) {
        #expect(Spelling.string(text).isInvalid(Column(name: "key", type: .uuid)))
    }

    static let data: [Form] = [
        Form(.bytes, .string(""), #""""#),
        Form(.bytes, .string("AA=="), #""AA==""#),
        Form(.bytes, .string("AAE="), #""AAE=""#),
        Form(.bytes, .string("+/+/"), #""+/+/""#),
        Form(.bytes, .string("-_-_"), #""+/+/""#, isAltered: true),
        Form(.bytes, .string("-/+_"), #""+/+/""#, isAltered: true),
        Form(.bytes, .string("AA"), #""AA==""#, isAltered: true),
        Form(.bytes, .string("AAE"), #""AAE=""#, isAltered: true),
        Form(.bytes, .string("_w"), #""/w==""#, isAltered: true),
    ]

    @Test(arguments: data) func spellsBytesInTheStandardAlphabetPadded(form: Form) throws { try form.check() }

    @Test(arguments: ["A", "AAAAA", "AB==", "AAF=", "A===", "====", "AA==AA==", "AA =", "AA\n=", "AA%=", "é"])
    func refusesInvalidBase64(text: String) {
        #expect(Spelling.string(text).isInvalid(Column(name: "photo", type: .bytes)))
    }

    @Test func countsTheLengthOfBytesDecoded() throws {
        let column = Column(name: "photo", type: .bytes, maximumLength: 3)
        #expect(try Spelling.string("AAAA").canonical(column).json == #""AAAA""#)
        #expect(Spelling.string("AAAAAA==").isInvalid(column))
    }

    static let wrongTypes: [(ColumnType, Spelling)] = [
        (.text, .number("1")), (.text, .bool(true)), (.text, .json("[]")),
        (.boolean, .number("1")), (.boolean, .number("0")), (.boolean, .string("true")), (.boolean, .json("{}")),
        (.uuid, .number("1")), (.timestamp, .number("1700000000")), (.date, .number("20260102")),
        (.bytes, .number("1")), (.bytes, .bool(false)), (.real, .json("[1]")), (.integer, .json("[1]")),
        (.decimal(precision: 4, scale: 2), .json("{}")), (.timestamp, .bool(true)), (.date, .bool(true)),
        // Callers minify values of type json first.
        (.json, .number("1")), (.json, .string("a")), (.json, .bool(true)),
    ]

    @Test(arguments: wrongTypes) func refusesAnotherTypeOfJSON(type: ColumnType, spelling: Spelling) {
        #expect(spelling.isInvalid(Column(name: "c", type: type)))
    }

    @Test func acceptsBooleans() throws {
        try Form(.boolean, .bool(true), "true").check()
        try Form(.boolean, .bool(false), "false").check()
    }

    @Test(
        arguments: [
            .text, .integer, .real, .boolean, .decimal(precision: 4, scale: 2), .uuid, .timestamp, .date, .bytes, .json,
        ] as [ColumnType])
    func acceptsNullInNullableColumns(type: ColumnType) throws {
        let (json, isAltered) = try Spelling.null.canonical(Column(name: "c", type: type))
        #expect(json == "null" && !isAltered)
        #expect(Spelling.null.isInvalid(Column(name: "c", type: type, isNullable: false)))
        let withDefault = Column(name: "c", type: type, isNullable: false, defaultValue: [UInt8(ascii: "0")])
        #expect(Spelling.null.isInvalid(withDefault))
    }

    @Test func countsTheLengthOfJSONInBytes() throws {
        let column = Column(name: "labels", type: .json, maximumLength: 4)
        #expect(try Spelling.json(#""é""#).canonical(column) == (#""é""#, false))
        #expect(Spelling.json("[1,2]").isInvalid(column))
    }

    /// The value, and the bytes of its canonical JSON.
    static let sizes: [(ColumnType, Spelling, Int)] = [
        (.text, .string("abc"), 5), (.text, .string("\u{1}"), 8), (.text, .string("\""), 4),
        (.bytes, .string("AA"), 6), (.json, .json("[1,2]"), 5), (.integer, .number("12345"), 5),
        (.integer, .string("9007199254740992"), 18), (.real, .number("0.125"), 5),
        (.decimal(precision: 9, scale: 4), .number("1e2"), 10), (.date, .string("2026-01-02"), 12),
        (.timestamp, .string("2026-01-02T03:04:05Z"), 29),
        (.uuid, .string("00112233445566778899aabbccddeeff"), 38),
    ]

    @Test(arguments: sizes)
    func measuresAValueByItsCanonicalForm(type: ColumnType, spelling: Spelling, size: Int) throws {
        let column = Column(name: "c", type: type)
        #expect(try spelling.canonical(column, maximumBytes: size).json.utf8.count == size)
        #expect(throws: ValueRefusal.tooLarge(maximum: size - 1)) {
            try spelling.canonical(column, maximumBytes: size - 1)
        }
    }
}
