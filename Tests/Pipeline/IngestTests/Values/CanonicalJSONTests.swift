import Fuzzing
import Ingest
import JSON
import Seeded
import SyncModel
import Testing

@Suite struct CanonicalJSONTests {
    /// What a column makes of a JSON value as a request spells it.
    private static func canonical(
        _ json: String, _ column: Column, maximumBytes: Int = 1 << 20
    ) throws -> (json: String, isAltered: Bool) {
        var parser = JSONParser()
        let document = try parser.parse(Array(json.utf8).span)
        var bytes: [UInt8] = []
        let isAltered = try column.appendCanonical(document.root, maximumBytes: maximumBytes, to: &bytes)
        return (String(decoding: bytes, as: UTF8.self), isAltered)
    }

    private static func refusal(_ json: String, _ column: Column, maximumBytes: Int = 1 << 20) throws -> ChangeRefusal?
    {
        do {
            _ = try canonical(json, column, maximumBytes: maximumBytes)
            return nil
        } catch let refusal as ChangeRefusal {
            return refusal
        }
    }

    static let forms: [(ColumnType, json: String, canonical: String, isAltered: Bool)] = [
        // Escapes are JSON's spelling of a string, not the string's.
        (.text, #""\u0041\/\u00e9""#, #""A/é""#, false),
        (.text, #""\ud83d\ude00""#, #""😀""#, false),
        (.text, #""\u001F""#, #""\u001f""#, false),
        (.text, #" "a" "#, #""a""#, false),
        (.integer, "1e3", "1000", false),
        (.integer, #""1""#, "1", true),
        (.integer, "9223372036854775807", #""9223372036854775807""#, true),
        (.real, "1E2", "100", false),
        (.boolean, "false", "false", false),
        (.decimal(precision: 4, scale: 1), "1", #""1.0""#, true),
        (.decimal(precision: 4, scale: 1), #""1.0""#, #""1.0""#, false),
        (.uuid, #""00112233-4455-6677-8899-AABBCCDDEEFF""#, #""00112233-4455-6677-8899-aabbccddeeff""#, true),
        (.timestamp, #""2026-01-02T03:04:05Z""#, #""2026-01-02T03:04:05.000000Z""#, true),
        (.date, #""2026-01-02""#, #""2026-01-02""#, false),
        (.bytes, #""_w""#, #""/w==""#, true),
        (.bytes, #""\/w==""#, #""/w==""#, false),
        (.text, "null", "null", false),
        (.json, "null", "null", false),
        (
            .json, #"{"b":1,"a":[1.0,-0,1e999,"é",null,true,{}]}"#, #"{"b":1,"a":[1.0,-0,1e999,"é",null,true,{}]}"#,
            false
        ),
        (.json, #" {"a":1} "#, #"{"a":1}"#, false),
        (.json, #"{"a": 1}"#, #"{"a":1}"#, true),
        (.json, "[1,\n2]", "[1,2]", true),
        (.json, #""\u0041""#, #""A""#, true),
        (.json, #"["\u001F"]"#, #"["\u001f"]"#, true),
        (.json, #"["\u001f"]"#, #"["\u001f"]"#, false),
        (.json, "17", "17", false), (.json, "true", "true", false), (.json, #""a""#, #""a""#, false),
    ]

    @Test(arguments: forms)
    func bringsAValueToItsCanonicalForm(type: ColumnType, json: String, expected: String, isAltered: Bool) throws {
        let form = try Self.canonical(json, Column(name: "c", type: type))
        #expect(form.json.utf8.elementsEqual(expected.utf8), "\(form.json)")
        #expect(form.isAltered == isAltered)
    }

    @Test func tellsWhatIsInvalidFromWhatIsTooLarge() throws {
        let text = Column(name: "body", type: .text, isNullable: false, maximumLength: 5)
        #expect(try Self.refusal("17", text) == ChangeRefusal(.invalidValue, "body takes a string"))
        #expect(try Self.refusal("null", text) == ChangeRefusal(.invalidValue, "body is not nullable"))
        #expect(try Self.refusal("\"123456\"", text)?.code == .invalidValue)
        #expect(
            try Self.refusal("\"12345\"", text, maximumBytes: 6)
                == ChangeRefusal(.valueTooLarge, "body takes at most 6 bytes of JSON"))
        #expect(try Self.refusal("\"12345\"", text, maximumBytes: 7) == nil)
        let json = Column(name: "labels", type: .json, maximumLength: 7)
        #expect(try Self.refusal("[1, 2, 3 ]", json) == nil)
        #expect(try Self.refusal("[1,2,34]", json)?.code == .invalidValue)
        #expect(try Self.refusal("[1, 2, 3 ]", json, maximumBytes: 6)?.code == .valueTooLarge)
        #expect(try Self.refusal("[]", Column(name: "c", type: .boolean))?.code == .invalidValue)
    }

    @Test func refusesJSONThatAStoreCouldRefuse() throws {
        let column = Column(name: "labels", type: .json)
        let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
        #expect(try Self.canonical(deep, column) == (deep, false))
        #expect(
            try Self.refusal("[\(deep)]", column) == ChangeRefusal(.invalidValue, "labels: nested too deeply"))
        for repeated in [#"{"a":1,"a":1}"#, #"[{"b":{"a":1,"\u0061":2}}]"#] {
            let refusal = ChangeRefusal(.invalidValue, "labels: repeated name in an object")
            #expect(try Self.refusal(repeated, column) == refusal)
        }
        for nul in [#""\u0000""#, #"["a\u0000b"]"#, #"{"\u0000":1}"#] {
            #expect(try Self.refusal(nul, column) == ChangeRefusal(.invalidValue, "labels: U+0000 in a string"))
        }
    }

    // MARK: Property

    static let types: [ColumnType] = [
        .text, .integer, .real, .boolean, .decimal(precision: 12, scale: 4), .decimal(precision: 38, scale: 0), .uuid,
        .timestamp, .date, .bytes, .json,
    ]

    /// What values of one type are spelled with, and what they are not.
    private static let words = [
        "\"", "\\u0000", "\\ud83d\\ude00", "-0", "1e999", "9223372036854775808", "9007199254740993", "0.1", "null",
        "0000-01-01", "T24:00:00", "Z", "+23:59", ".1234567", "==", "_-", "[", "]", "{\"a\":", "}", ",", "NaN", "é",
    ]

    @Test(arguments: types)
    func leavesACanonicalFormAsItIs(type: ColumnType) throws {
        let column = Column(name: "c", type: type)
        let count = TestLength.count(2000, long: 60_000)
        let tally = try Fuzzer(
            "\(type)", count: count, corpus: Self.forms.map { Array($0.json.utf8) }, words: Self.words,
            generate: { random in Array(Self.value(type, &random).utf8) }
        ).run { bytes in
            let form: [UInt8]
            do {
                form = try Self.canonical(bytes, column).form
            } catch is ChangeRefusal {
                return .refused
            } catch is JSONError {
                return .refused
            }
            let again = try Self.canonical(form, column)
            guard again.form == form, !again.isAltered else {
                throw Fuzzer.BrokenPromise(
                    "\(String(decoding: bytes, as: UTF8.self)) gives \(String(decoding: form, as: UTF8.self)) gives "
                        + String(decoding: again.form, as: UTF8.self))
            }
            return .accepted
        }
        #expect(tally.accepted > count / 16 && tally.refused > count / 16, "\(tally)")
    }

    private static func canonical(_ json: [UInt8], _ column: Column) throws -> (form: [UInt8], isAltered: Bool) {
        var parser = JSONParser()
        let document = try parser.parse(json.span)
        var bytes: [UInt8] = []
        let isAltered = try column.appendCanonical(document.root, maximumBytes: 1 << 20, to: &bytes)
        return (bytes, isAltered)
    }

    private static func digits(_ count: Int, _ random: inout SeededRandom) -> String {
        String((0..<count).map { _ in Character(String(random.next() % 10)) })
    }

    private static func number(_ random: inout SeededRandom) -> String {
        switch random.next() % 5 {
        case 0: return String(Int64(bitPattern: random.next()) >> Int64(random.next() % 64))
        case 1: return String(Double(Int64(bitPattern: random.next()) >> Int64(random.next() % 64)) / 64)
        case 2:
            return String(Int.random(in: -9...9, using: &random)) + "e"
                + String(Int.random(in: -6...12, using: &random))
        case 3: return "-" + String(random.next() % 1000) + "." + digits(Int.random(in: 1...4, using: &random), &random)
        default:
            let double = Double(bitPattern: random.next())
            return double.isFinite ? String(double) : "-0.0"
        }
    }

    private static func value(_ type: ColumnType, _ random: inout SeededRandom) -> String {
        switch type {
        case .text: return text(&random)
        case .integer:
            let number = number(&random)
            return random.next() % 2 == 0 ? number : "\"\(["", "+", "00"].randomElement(using: &random)!)\(number)\""
        case .real: return number(&random)
        case .boolean: return random.next() % 2 == 0 ? "true" : "false"
        case .decimal:
            let number = number(&random)
            return random.next() % 2 == 0 ? number : "\"\(number)\""
        case .uuid:
            var text = (0..<32).map { _ in String(random.next() % 16, radix: 16, uppercase: random.next() % 2 == 0) }
            if random.next() % 2 == 0 { for place in [20, 16, 12, 8] { text.insert("-", at: place) } }
            return "\"\(text.joined())\""
        case .timestamp: return timestamp(&random)
        case .date: return "\"\(date(&random))\""
        case .bytes:
            let alphabet = Array("ABCDwxyz0189+/-_")
            let count = Int.random(in: 0...9, using: &random)
            return "\"" + String((0..<count).map { _ in alphabet.randomElement(using: &random)! }) + "\""
        case .json: return json(&random, depth: 0)
        }
    }

    private static func text(_ random: inout SeededRandom) -> String {
        let pieces = [
            "a", "é", "e\u{301}", "😀", "\\n", "\\u0001", "\\\"", "\\\\", "\\/", "\\u00e9", " ", "\u{7F}", "\u{2028}",
        ]
        let count = Int.random(in: 0...6, using: &random)
        return "\"" + (0..<count).map { _ in pieces.randomElement(using: &random)! }.joined() + "\""
    }

    private static func date(_ random: inout SeededRandom) -> String {
        let year = String(Int.random(in: 1...9999, using: &random))
        let month = Int.random(in: 1...12, using: &random)
        let day = Int.random(in: 1...29, using: &random)
        return String(repeating: "0", count: 4 - year.utf8.count) + year + "-\(month < 10 ? "0" : "")\(month)"
            + "-\(day < 10 ? "0" : "")\(day)"
    }

    private static func timestamp(_ random: inout SeededRandom) -> String {
        func two(_ limit: Int) -> String {
            let number = Int.random(in: 0..<limit, using: &random)
            return number < 10 ? "0\(number)" : "\(number)"
        }
        let fraction = Int.random(in: 0...6, using: &random)
        let decimals = fraction == 0 ? "" : "." + digits(fraction, &random)
        let zone = ["Z", "z", "+\(two(24)):\(two(60))", "-\(two(24)):\(two(60))"].randomElement(using: &random)!
        let separator = ["T", "t", " "].randomElement(using: &random)!
        return "\"\(date(&random))\(separator)\(two(24)):\(two(60)):\(two(60))\(decimals)\(zone)\""
    }

    private static func json(_ random: inout SeededRandom, depth: Int) -> String {
        let space = ["", " ", "\n"].randomElement(using: &random)!
        switch random.next() % (depth < 3 ? 6 : 4) {
        case 0: return space + number(&random)
        case 1: return text(&random) + space
        case 2: return "true"
        case 3: return "null"
        case 4: return "[\(space)" + (0..<2).map { _ in json(&random, depth: depth + 1) }.joined(separator: ",") + "]"
        default:
            let members = (0..<2).map { "\"k\($0)\(random.next() % 9)\":\(space)" + json(&random, depth: depth + 1) }
            return "{" + members.joined(separator: ",") + "}"
        }
    }
}
