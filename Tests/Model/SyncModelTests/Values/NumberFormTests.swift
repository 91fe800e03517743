import Seeded
import SyncModel
import Testing

@Suite struct NumberFormTests {
    static let integers: [Form] = [
        Form(.integer, .number("0"), "0"),
        Form(.integer, .number("-0"), "0"),
        Form(.integer, .number("-1"), "-1"),
        Form(.integer, .number("123456789012345"), "123456789012345"),
        Form(.integer, .number("-99999999999999"), "-99999999999999"),
        Form(.integer, .number("5.0"), "5"),
        Form(.integer, .number("12e2"), "1200"),
        Form(.integer, .number("1200E-2"), "12"),
        Form(.integer, .number("9007199254740991"), "9007199254740991"),
        Form(.integer, .number("-9007199254740991"), "-9007199254740991"),
        Form(.integer, .string("5"), "5", isAltered: true),
        Form(.integer, .string("-0"), "0", isAltered: true),
        Form(.integer, .string("+7"), "7", isAltered: true),
        Form(.integer, .string("007"), "7", isAltered: true),
        Form(.integer, .string("9007199254740991"), "9007199254740991", isAltered: true),
        Form(.integer, .string("9007199254740992"), #""9007199254740992""#),
        Form(.integer, .string("-9007199254740992"), #""-9007199254740992""#),
        Form(.integer, .string("+9007199254740992"), #""9007199254740992""#, isAltered: true),
        Form(.integer, .string("09007199254740992"), #""9007199254740992""#, isAltered: true),
        Form(.integer, .number("9007199254740992"), #""9007199254740992""#, isAltered: true),
        Form(.integer, .number("-9007199254740992"), #""-9007199254740992""#, isAltered: true),
        Form(.integer, .number("9223372036854775807"), #""9223372036854775807""#, isAltered: true),
        Form(.integer, .number("-9223372036854775808"), #""-9223372036854775808""#, isAltered: true),
        Form(.integer, .string("9223372036854775807"), #""9223372036854775807""#),
        Form(.integer, .string("-9223372036854775808"), #""-9223372036854775808""#),
    ]

    @Test(arguments: integers) func spellsIntegersBeyondDoublesAsStrings(form: Form) throws { try form.check() }

    @Test(
        arguments: [
            .number("1.5"), .number("1e-1"), .number("9223372036854775808"), .number("-9223372036854775809"),
            .number("1e19"), .number("1e999999999999999999999"), .string("9223372036854775808"),
            .string("-9223372036854775809"), .string(""), .string("-"), .string("+"), .string("1.0"), .string("1e3"),
            .string(" 1"), .string("1 "), .string("0x10"), .string("--1"), .string("١"), .bool(true),
        ] as [Spelling])
    func refusesInvalidIntegers(spelling: Spelling) {
        #expect(spelling.isInvalid(Column(name: "count", type: .integer)))
    }

    static let reals: [Form] = [
        Form(.real, .number("0"), "0"),
        Form(.real, .number("1.0"), "1"),
        Form(.real, .number("-7"), "-7"),
        Form(.real, .number("0.000001"), "0.000001"),
        Form(.real, .number("-0.000001"), "-0.000001"),
        Form(.real, .number("0.0000001"), "1e-7"),
        Form(.real, .number("10.0000001"), "10.0000001"),
        Form(.real, .number("1.50"), "1.5"),
        Form(.real, .number("123456789012345"), "123456789012345"),
        Form(.real, .number("0.12345678901234"), "0.12345678901234"),
        Form(.real, .number("0.0"), "0"),
        Form(.real, .number("-0.0"), "0", isAltered: true),
        Form(.real, .number("1e3"), "1000"),
        Form(.real, .number("0.1"), "0.1"),
        Form(.real, .number("0.1000000000000000055511151231257827"), "0.1"),
        Form(.real, .number("1.7976931348623157e308"), "1.7976931348623157e+308"),
        Form(.real, .number("5e-324"), "5e-324"),
        Form(.real, .number("1E21"), "1e+21"),
        Form(.real, .number("123456789012345680000"), "123456789012345680000"),
        Form(.real, .number("9007199254740993"), "9007199254740992"),
        Form(.real, .number("1e-400"), "0"),
        Form(.real, .number("-0"), "0", isAltered: true),
        Form(.real, .number("-0.0e9"), "0", isAltered: true),
        Form(.real, .number("-1e-400"), "0", isAltered: true),
    ]

    @Test(arguments: reals) func spellsRealsShortest(form: Form) throws { try form.check() }

    /// Short numbers are passed on unchanged, and must equal the general path's spelling.
    @Test func spellsShortDecimalsAsTheirDoubles() throws {
        var random = SeededRandom(seed: 3)
        for _ in 0..<20_000 {
            let text = Self.decimal(&random)
            let number = try #require(Double(text))
            let (json, isAltered) = try Spelling.number(text).canonical(Column(name: "c", type: .real))
            // Swift promises the shortest digits; where it lays them out without an exponent, only `.0` is too much.
            var shortest = (number + 0).description
            if shortest.utf8.contains(UInt8(ascii: "e")) {
                shortest = json
            } else if shortest.hasSuffix(".0") {
                shortest.removeLast(2)
            }
            #expect(json.utf8.elementsEqual(shortest.utf8), "\(text)")
            #expect(Double(json) == number && isAltered == (number == 0 && number.sign == .minus), "\(text)")
        }
    }

    /// One to seventeen digits, the point anywhere, zeros at both ends of the fraction.
    private static func decimal(_ random: inout SeededRandom) -> String {
        var whole = String(random.next() >> UInt64.random(in: 8...63, using: &random))
        let scale = Int.random(in: 0...12, using: &random)
        if scale > 0 {
            if whole.utf8.count <= scale { whole = String(repeating: "0", count: scale + 1 - whole.utf8.count) + whole }
            whole.insert(".", at: whole.index(whole.endIndex, offsetBy: -scale))
        }
        return (random.next() % 2 == 0 ? "-" : "") + whole
    }

    @Test(
        arguments: [
            .number("1e309"), .number("-1.8e308"), .string("1.5"), .string("NaN"), .bool(false),
        ] as [Spelling])
    func refusesNumbersThatAreNotFinite(spelling: Spelling) {
        #expect(spelling.isInvalid(Column(name: "weight", type: .real)))
    }

    private static let money = ColumnType.decimal(precision: 6, scale: 2)
    private static let whole = ColumnType.decimal(precision: 3, scale: 0)
    private static let fraction = ColumnType.decimal(precision: 2, scale: 2)
    private static let widest = ColumnType.decimal(precision: 38, scale: 19)

    static let decimals: [Form] = [
        Form(money, .string("12.50"), #""12.50""#),
        Form(money, .string("9999.99"), #""9999.99""#),
        Form(money, .string("-9999.99"), #""-9999.99""#),
        Form(money, .string("0.00"), #""0.00""#),
        Form(money, .string("0.01"), #""0.01""#),
        Form(money, .string("12.5"), #""12.50""#, isAltered: true),
        Form(money, .string("12"), #""12.00""#, isAltered: true),
        Form(money, .string("12.500"), #""12.50""#, isAltered: true),
        Form(money, .string("0012.50"), #""12.50""#, isAltered: true),
        Form(money, .string("+12.50"), #""12.50""#, isAltered: true),
        Form(money, .string("1.25e1"), #""12.50""#, isAltered: true),
        Form(money, .string("1250E-2"), #""12.50""#, isAltered: true),
        Form(money, .string("1e3"), #""1000.00""#, isAltered: true),
        Form(money, .string("-0"), #""0.00""#, isAltered: true),
        Form(money, .string("-0.00"), #""0.00""#, isAltered: true),
        Form(money, .string("0e999999999999"), #""0.00""#, isAltered: true),
        Form(money, .number("12.50"), #""12.50""#, isAltered: true),
        Form(money, .number("-12"), #""-12.00""#, isAltered: true),
        Form(money, .number("-0"), #""0.00""#, isAltered: true),
        Form(whole, .string("999"), #""999""#),
        Form(whole, .string("0"), #""0""#),
        Form(whole, .string("999.0"), #""999""#, isAltered: true),
        Form(fraction, .string("0.99"), #""0.99""#),
        Form(fraction, .string("0.05"), #""0.05""#),
        Form(fraction, .string("5e-2"), #""0.05""#, isAltered: true),
        Form(
            widest, .string("1234567890123456789.1234567890123456789"),
            #""1234567890123456789.1234567890123456789""#),
        Form(widest, .string("1e-19"), #""0.0000000000000000001""#, isAltered: true),
        Form(widest, .string("1e18"), #""1000000000000000000.0000000000000000000""#, isAltered: true),
    ]

    @Test(arguments: decimals) func spellsDecimalsWithAllTheirPlaces(form: Form) throws { try form.check() }

    static let impossible: [(ColumnType, Spelling)] = [
        (money, .string("10000")), (money, .string("1e4")), (money, .string("0.001")), (money, .string("9999.999")),
        (money, .string("9999.995")), (money, .number("0.001")), (money, .number("12345.6")),
        (money, .string("1e999999999999999999")), (money, .string("1e-999999999999999999")),
        (money, .string("")), (money, .string("-")), (money, .string(".5")), (money, .string("5.")),
        (money, .string("1e")), (money, .string("1e+")), (money, .string("1.2.3")), (money, .string("1,5")),
        (money, .string(" 1")), (money, .string("1\n")), (money, .string("NaN")), (money, .string("Infinity")),
        (money, .bool(true)), (whole, .string("1000")), (whole, .string("0.5")), (fraction, .string("1")),
        (fraction, .string("0.001")), (widest, .string("1e19")), (widest, .string("1e-20")),
    ]

    @Test(arguments: impossible) func neverRoundsADecimal(type: ColumnType, spelling: Spelling) {
        #expect(spelling.isInvalid(Column(name: "price", type: type)))
    }
}
