import JSON
import Seeded
import Testing

@Suite("JSON numbers")
struct JSONNumberTests {
    /// A number's spelling and what its conversions must give.
    struct Reading: CustomTestStringConvertible, Sendable {
        let text: String
        let int64: Int64?
        let uint64: UInt64?
        let double: Double?

        init(_ text: String, _ int64: Int64?, _ uint64: UInt64?, _ double: Double?) {
            self.text = text
            self.int64 = int64
            self.uint64 = uint64
            self.double = double
        }

        var testDescription: String { text }
    }

    static let readings = [
        Reading("0", 0, 0, 0), Reading("-0", 0, 0, 0), Reading("-0.0", 0, 0, 0), Reading("0e999", 0, 0, 0),
        Reading("0.000", 0, 0, 0), Reading("1.0", 1, 1, 1), Reading("-1.0", -1, nil, -1),
        Reading("1e3", 1000, 1000, 1000),
        Reading("10e-1", 1, 1, 1), Reading("1200e-2", 12, 12, 12), Reading("1.5", nil, nil, 1.5),
        Reading("15e-1", nil, nil, 1.5), Reading("1.50E1", 15, 15, 15), Reading("100.00e-2", 1, 1, 1),
        Reading("0.001e3", 1, 1, 1), Reading("0.1", nil, nil, 0.1),
        Reading("0.30000000000000004", nil, nil, 0.1 + 0.2), Reading("0.3", nil, nil, 0.3),
        Reading("9007199254740991", 9_007_199_254_740_991, 9_007_199_254_740_991, 9_007_199_254_740_991),
        Reading("9007199254740992", 9_007_199_254_740_992, 9_007_199_254_740_992, 9_007_199_254_740_992),
        Reading("9007199254740993", 9_007_199_254_740_993, 9_007_199_254_740_993, 9_007_199_254_740_992),
        Reading("-9007199254740993", -9_007_199_254_740_993, nil, -9_007_199_254_740_992),
        Reading("9007199254740993.0", 9_007_199_254_740_993, 9_007_199_254_740_993, 9_007_199_254_740_992),
        Reading("9223372036854775807", .max, 9_223_372_036_854_775_807, 9_223_372_036_854_775_808),
        Reading("9223372036854775808", nil, 9_223_372_036_854_775_808, 9_223_372_036_854_775_808),
        Reading("-9223372036854775808", .min, nil, -9_223_372_036_854_775_808),
        Reading("-9223372036854775809", nil, nil, -9_223_372_036_854_775_808),
        Reading("-922337203685477580.8e1", .min, nil, -9_223_372_036_854_775_808),
        Reading("18446744073709551615", nil, .max, 18_446_744_073_709_551_616),
        Reading("18446744073709551615.000", nil, .max, 18_446_744_073_709_551_616),
        Reading("18446744073709551616", nil, nil, 18_446_744_073_709_551_616),
        Reading("99999999999999999999", nil, nil, 1e20), Reading("1e19", nil, 10_000_000_000_000_000_000, 1e19),
        Reading("1e20", nil, nil, 1e20), Reading("1e308", nil, nil, 1e308),
        Reading("1.7976931348623157e308", nil, nil, .greatestFiniteMagnitude), Reading("1.8e308", nil, nil, nil),
        Reading("1e400", nil, nil, nil), Reading("-1e400", nil, nil, nil),
        Reading("1e99999999999999999999", nil, nil, nil), Reading("5e-324", nil, nil, .leastNonzeroMagnitude),
        Reading("1e-400", nil, nil, 0), Reading("-1e-400", nil, nil, 0),
        Reading("1e-99999999999999999999", nil, nil, 0),
        Reading("0.123456789012345678901234567890", nil, nil, 0.12345678901234568),
        Reading("123456789012345678901234567890", nil, nil, 123_456_789_012_345_677_877_719_597_056),
        Reading("0e99999999999999999999", 0, 0, 0),
    ]

    @Test("converts exactly or not at all, and keeps the text", arguments: readings)
    func converts(reading: Reading) throws {
        // Beside a number that only the other path takes, all must read the same.
        for document in ["%", "[%]", "[1e400, %\n,1]", "{\"a\": % ,\"b\":-99999999999999999999}"] {
            let source = document.replacing("%", with: reading.text)
            var parser = JSONParser()
            let root = try parser.parse(source.utf8.span).root
            var value = root
            if var elements = root.elements {
                value = elements.next()!
                if root.count == 3 { value = elements.next()! }
            } else if let member = root.member(named: "a") {
                value = member
            }
            #expect(value.kind == .number)
            #expect(value.int64 == reading.int64, "\(source)")
            #expect(value.uint64 == reading.uint64, "\(source)")
            #expect(value.double == reading.double, "\(source)")
            #expect(value.double?.sign == reading.double?.sign, "\(source)")
            let text = JSONModel.text(value.numberText!)
            #expect(text == reading.text)
        }
    }

    @Test("keeps the spelling of numbers in a minified copy")
    func keepsTheTextOfNumbers() throws {
        let texts = Self.readings.map(\.text)
        let source = "[ " + texts.joined(separator: " , ") + " ]"
        var parser = JSONParser()
        var copy: [UInt8] = []
        try parser.parse(source.utf8.span).root.appendMinified(to: &copy, maximumDepth: 1)
        #expect(String(decoding: copy, as: UTF8.self) == "[" + texts.joined(separator: ",") + "]")
    }

    @Test("takes a number apart without rounding")
    func parsesNumbersExactly() {
        for (text, isNegative, digits, exponent) in [
            ("0", false, "", 0), ("-0.00e7", true, "", 0), ("1", false, "1", 0), ("-100", true, "1", 2),
            ("1.20", false, "12", -1), ("0.00120", false, "12", -4), ("10.010", false, "1001", -2),
            ("10.0e-3", false, "1", -2), ("1E+2", false, "1", 2), ("1230e-1", false, "123", 0),
            ("0.5e1", false, "5", 0),
            ("123456789012345678901234567890.5", false, "1234567890123456789012345678905", -1),
            ("1e99999999999999999999", false, "1", 1_000_000_000_000_000),
        ] {
            let utf8 = Array(text.utf8)
            let decimal = JSONDecimal(utf8.span)
            let found = utf8[decimal.digitRange].filter { $0 != UInt8(ascii: ".") }
            #expect(String(decoding: found, as: UTF8.self) == digits, "\(text)")
            #expect(decimal.digitCount == digits.utf8.count, "\(text)")
            #expect(decimal.isNegative == isNegative, "\(text)")
            #expect(decimal.exponent == exponent, "\(text)")
        }
    }

    @Test("random numbers read like Swift's own literals, on both paths")
    func readsRandomNumbers() throws {
        var random = SeededRandom(seed: 77)
        var parser = JSONParser()
        for _ in 0..<20_000 {
            let bits = Double(bitPattern: random.next())
            let number = bits.isFinite ? bits : 0.5
            let integer = Int64(bitPattern: random.next() >> UInt64.random(in: 0..<64, using: &random))
            for prefix in ["[", "[1e400,"] {
                let document = try parser.parse("\(prefix)\(number),\(integer)]".utf8.span)
                var elements = document.root.elements!
                if prefix.utf8.count > 1 { _ = elements.next() }
                let double = elements.next()!.double
                #expect(double == number)
                let int64 = elements.next()!.int64
                #expect(int64 == integer)
            }
        }
    }
}
