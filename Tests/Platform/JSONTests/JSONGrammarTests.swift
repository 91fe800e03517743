import Fuzzing
import JSON
import Seeded
import Testing

@Suite("JSON grammar")
struct JSONGrammarTests {
    @Test(
        "takes what RFC 8259 allows",
        arguments: [
            "0", "-0", "1", " 1 ", "\t\r\n1\n", "-1.5e+3", "1E-2", "0.0", "0e0", "1e1000", "-1e1000", "1e-1000",
            "123456789012345678901234567890", "\"\"", "\"a\"", " \"a\" ", "true", "false", "null", "[]", "{}", "[ ]",
            "{ }", "[[]]", "[1,2]", "[null,true,false]", "{\"a\":1}", "{\"\":0}", "{\"a\":1,\"a\":2}",
            "{\"a\":{\"b\":[{}]}}", #""\u0000""#, #""\"\\\/\b\f\n\r\t""#, #""\u00e9\uD83D\uDE00\uFFFF""#,
            "\"\u{7F}\u{80}\u{7FF}\u{800}\u{FFFD}\u{10000}\u{10FFFF}\"", "\"/\"", #"{"\u0061":1}"#, "[1e400]",
            "[18446744073709551616]", "[-9223372036854775809]", "[1e400,2,\"x\"]", "{\"big\": 1e999 }",
        ])
    func takesWhatTheGrammarAllows(text: String) throws {
        var parser = JSONParser()
        let document = try parser.parse(text.utf8.span)
        let isWhole = document.source.hasSameBytes(as: text.utf8.span)
        #expect(isWhole)
    }

    @Test(
        "refuses what RFC 8259 does not allow, and says where",
        arguments: [
            Refusal("", .empty, 0), Refusal("  \n", .empty, 3), Refusal("[", .unexpectedEnd, 1),
            Refusal("[1", .unexpectedEnd, 2), Refusal("[1,", .unexpectedEnd, 3), Refusal("[1,]", .unexpectedByte, 3),
            Refusal("[,1]", .unexpectedByte, 1), Refusal("[1 2]", .unexpectedByte, 3),
            Refusal("[1}", .unexpectedByte, 2), Refusal("]", .unexpectedByte, 0), Refusal("{", .unexpectedEnd, 1),
            Refusal("{\"a\"", .unexpectedEnd, 4), Refusal("{\"a\":", .unexpectedEnd, 5),
            Refusal("{\"a\":1", .unexpectedEnd, 6), Refusal("{\"a\":1,}", .unexpectedByte, 7),
            Refusal("{a:1}", .unexpectedByte, 1), Refusal("{1:1}", .unexpectedByte, 1),
            Refusal("{\"a\" 1}", .unexpectedByte, 5), Refusal("{\"a\",1}", .unexpectedByte, 4),
            Refusal("{\"a\":1]", .unexpectedByte, 6), Refusal("{\"a\":}", .unexpectedByte, 5),
            Refusal("{'a':1}", .unexpectedByte, 1), Refusal("[1:2]", .unexpectedByte, 2),
            Refusal("1 2", .trailingContent, 2), Refusal("[]]", .trailingContent, 2),
            Refusal("{}x", .trailingContent, 2),
            Refusal("[1]/**/", .trailingContent, 3), Refusal("1\0", .trailingContent, 1),
            Refusal("[1\0]", .unexpectedByte, 2), Refusal("[1\u{C}]", .unexpectedByte, 2),
            Refusal("[\u{A0}1]", .unexpectedByte, 1), Refusal("01", .invalidNumber, 0),
            Refusal("[-01]", .invalidNumber, 1), Refusal("[1.]", .invalidNumber, 3),
            Refusal("[.5]", .unexpectedByte, 1),
            Refusal("[+1]", .unexpectedByte, 1), Refusal("[-]", .invalidNumber, 2), Refusal("[1e]", .invalidNumber, 3),
            Refusal("[1e+]", .invalidNumber, 4), Refusal("[0x1]", .invalidNumber, 1),
            Refusal("[1a]", .invalidNumber, 1),
            Refusal("[1.2.3]", .invalidNumber, 1), Refusal("[1-2]", .invalidNumber, 1), Refusal("-", .unexpectedEnd, 1),
            Refusal("[NaN]", .unexpectedByte, 1), Refusal("[Infinity]", .unexpectedByte, 1),
            Refusal("[-Infinity]", .invalidNumber, 2), Refusal("[nul]", .invalidLiteral, 1),
            Refusal("[nulll]", .invalidLiteral, 1), Refusal("[True]", .unexpectedByte, 1),
            Refusal("tru", .unexpectedEnd, 3), Refusal("[truefalse]", .invalidLiteral, 1),
            Refusal("\"a", .unexpectedEnd, 2), Refusal("\"a\\", .unexpectedEnd, 3),
            Refusal("\"a\n\"", .controlCharacter, 2), Refusal("\"\0\"", .controlCharacter, 1),
            Refusal("[\"\t\"]", .controlCharacter, 2), Refusal(#""\x""#, .invalidEscape, 1),
            Refusal(#""\'""#, .invalidEscape, 1), Refusal(#""a\u12g4""#, .invalidEscape, 2),
            Refusal(#""\u12"#, .unexpectedEnd, 5), Refusal(#""\U0041""#, .invalidEscape, 1),
            Refusal("\"a\" \"b\"", .trailingContent, 4), Refusal("[\"a\"b]", .unexpectedByte, 4),
            Refusal("[1e400,]", .unexpectedByte, 7), Refusal("[1e400 1e400]", .unexpectedByte, 7),
        ])
    func refusesWithAPosition(refusal: Refusal) {
        refusal.check()
    }

    @Test(
        "refuses half of a surrogate pair in values and names",
        arguments: [
            Refusal(#""\ud800""#, .loneSurrogate, 1), Refusal(#""\udc00""#, .loneSurrogate, 1),
            Refusal(#""\uDBFF""#, .loneSurrogate, 1), Refusal(#""\uDFFF""#, .loneSurrogate, 1),
            Refusal(#"["a\ud800b"]"#, .loneSurrogate, 3), Refusal(#""\ud800\u0041""#, .loneSurrogate, 1),
            Refusal(#""\ud800\ud800""#, .loneSurrogate, 1), Refusal(#""\udc00\ud800""#, .loneSurrogate, 1),
            Refusal(#""\ud83d\ude00\ude00""#, .loneSurrogate, 13), Refusal(#""\ud800\n""#, .loneSurrogate, 1),
            Refusal(#"{"\udfff":1}"#, .loneSurrogate, 2), Refusal(#"{"\ud800":1}"#, .loneSurrogate, 2),
            Refusal(#"{"k":"x","\ud8ab":null}"#, .loneSurrogate, 10),
        ])
    func refusesLoneSurrogates(refusal: Refusal) {
        refusal.check()
    }

    @Test(
        "refuses what is not UTF-8",
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
            [0xE2, 0x82], [0xE2, 0x28, 0xA1], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF],
            [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        ] as [[UInt8]])
    func refusesInvalidUTF8(sequence: [UInt8]) {
        Refusal(bytes: Array("[\"ab".utf8) + sequence + Array("\"]".utf8), .invalidUTF8, 4).check()
        Refusal(bytes: Array("{\"".utf8) + sequence + Array("\":0}".utf8), .invalidUTF8, 2).check()
        Refusal(bytes: Array("[".utf8) + sequence + Array("]".utf8), .unexpectedByte, 1).check()
    }

    @Test("refuses a byte order mark")
    func refusesAByteOrderMark() {
        Refusal("\u{FEFF}[1]", .byteOrderMark, 0).check()
        Refusal("\u{FEFF}", .byteOrderMark, 0).check()
    }

    @Test("takes 1024 levels and refuses 1025, empty or not")
    func limitsTheDepth() throws {
        let limit = JSONParser.maximumDepth
        #expect(limit == 1024)
        for (open, close, inner) in [("[", "]", ""), ("[", "]", "1"), ("{\"a\":", "}", "1"), ("{\"a\":", "}", "{}")] {
            let innerLevels = inner == "{}" ? 1 : 0
            var parser = JSONParser()
            let levels = limit - innerLevels
            let text = String(repeating: open, count: levels) + inner + String(repeating: close, count: levels)
            _ = try parser.parse(text.utf8.span)
            let deeper = open + text + close
            Refusal(deeper, .tooDeep, limit * open.utf8.count).check()
        }
    }

    @Test("refuses a megabyte of opening brackets")
    func refusesAMegabyteOfBrackets() {
        Refusal(String(repeating: "[", count: 1_000_000), .tooDeep, 1024).check()
        Refusal(String(repeating: "{\"\":", count: 250_000), .tooDeep, 4096).check()
        Refusal(
            String(repeating: "[", count: 500_000) + String(repeating: "]", count: 500_000), .tooDeep, 1024
        ).check()
    }

    @Test("siblings do not add to the depth")
    func countsOnlyOpenLevels() throws {
        var parser = JSONParser()
        let text = "[" + Array(repeating: "[[]]", count: 5000).joined(separator: ",") + "]"
        let document = try parser.parse(text.utf8.span)
        let count = document.root.count
        #expect(count == 5000)
    }

    @Test("the reader of errors and simdjson agree on damaged documents")
    func bothChecksAgree() {
        var random = SeededRandom(seed: 0x5EED)
        var refused = 0
        var taken = 0
        for _ in 0..<TestLength.count(8000, long: 50_000) {
            var model = JSONModel.array([.number("1e300")])
            model.append(JSONModel.random(depth: 3, using: &random))
            var bytes: [UInt8] = []
            model.write(into: &bytes, spaces: true, using: &random)
            let place = bytes.firstRange(of: Array("1e300".utf8))!.upperBound
            let alphabet = Array("{}[],:\"\\ut0-1.eE \n\u{1}é".utf8) + [0xED, 0xA0, 0xFF, 0]
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let index = Int.random(in: place..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = alphabet.randomElement(using: &random)!
                case 1: bytes.insert(alphabet.randomElement(using: &random)!, at: index)
                default: if bytes.count > place + 1 { bytes.remove(at: index) }
                }
            }
            // The same document with a number that simdjson cannot represent is judged by the other check.
            var other = bytes
            other[place - 3] = UInt8(ascii: "4")
            let first = Refusal.outcome(bytes)
            let second = Refusal.outcome(other)
            #expect(first == second, "\(String(decoding: bytes, as: UTF8.self))")
            if first == nil { taken += 1 } else { refused += 1 }
        }
        #expect(refused > 1000 && taken > 1000)
    }
}

/// A document with the error it must give.
struct Refusal: CustomTestStringConvertible, Sendable {
    let bytes: [UInt8]
    let error: JSONError

    init(_ text: String, _ reason: JSONError.Reason, _ position: Int) {
        self.init(bytes: Array(text.utf8), reason, position)
    }

    init(bytes: [UInt8], _ reason: JSONError.Reason, _ position: Int) {
        self.bytes = bytes
        error = JSONError(reason, at: position)
    }

    var testDescription: String { "\(String(decoding: bytes.prefix(40), as: UTF8.self)): \(error)" }

    func check(sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(Self.outcome(bytes) == error, sourceLocation: sourceLocation)
    }

    static func outcome(_ bytes: [UInt8]) -> JSONError? {
        var parser = JSONParser()
        do {
            _ = try parser.parse(bytes.span)
            return nil
        } catch {
            return error
        }
    }
}
