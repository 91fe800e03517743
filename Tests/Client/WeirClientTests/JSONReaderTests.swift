import Fuzzing
import JSON
import Testing
import WeirClient

/// The client's reader of JSON, compared with the server's parser.
@Suite struct JSONReaderTests {
    private static let corpus: [[UInt8]] = [
        #"{"syncId":"abc","batch":{"batch":7,"results":[{"status":"applied","timeStamp":102,"version":2}]},"more":false}"#,
        #"[1,-0,0.5,1e40,123456789012345678901234567890,9223372036854775807,18446744073709551615,5e-324]"#,
        #"{"a":{"a":[[],{},[{}]],"b":null},"":true,"a":false,"é😀":"\ud83d\ude00\n\u0000"}"#,
        "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", " \n\t\r\"text\" ", "17", #""\\\"\/\b\f""#,
        " [ 1 , { \"a\" : [ ] } ] ",
        #"["a text of some words of eight bytes","é: none of ASCII after eight bytes","\"in quotes\""]"#,
    ].map { Array($0.utf8) }

    private static let words = [
        "\n", "\u{1F}", "\u{7F}",
        "{", "}", "[", "]", ",", ":", "\"", "\\", "null", "true", "false", "\\u0000", "\\ud800", "\\udc00", "1e9", "-",
        "\u{FEFF}", "\"\":", "{\"a\":", "[[[[", "]]]]", "é", "0", ".",
    ]

    @Test func readsWhatTheServerReadsAndRefusesWhatItRefuses() throws {
        let tally = try Fuzzer(
            "JSONReader", count: TestLength.count(20_000, long: 400_000), corpus: Self.corpus, words: Self.words
        ).run { bytes in
            var parser = JSONParser()
            var expected: String?
            do {
                expected = try parser.withDocument(bytes.span) { Self.spell($0.root) }
            } catch is JSONError {}
            var reader = JSONReader(bytes)
            do {
                let found = try Self.spell(&reader)
                try reader.finish()
                if expected != found { throw Fuzzer.BrokenPromise("\(expected ?? "refused") is read as \(found)") }
                return .accepted
            } catch let error as JSONReader.Malformed {
                if let expected { throw Fuzzer.BrokenPromise("\(expected) is refused: \(error)") }
                guard (0...bytes.count).contains(error.position) else {
                    throw Fuzzer.BrokenPromise("the position \(error.position) is outside")
                }
                return .refused
            }
        }
        #expect(tally.accepted > 2000 && tally.refused > 2000, "\(tally)")
    }

    @Test func skippingReadsAsMuchAsReading() throws {
        for bytes in Self.corpus {
            var reader = JSONReader(bytes)
            let text = try reader.text()
            try reader.finish()
            var again = JSONReader(Array(text))
            try again.skip()
            try again.finish()
        }
    }

    @Test func valuesAreOfTheKindAskedFor() throws {
        var reader = JSONReader(Array(#"[1,"a",true,null,2.5,9007199254740993]"#.utf8))
        var read: [String] = []
        try reader.array { reader in
            switch try reader.kind() {
            case .number where read.count == 4: read.append("\(try reader.double())")
            case .number: read.append("\(try reader.integer())")
            case .string: read.append(try reader.string())
            case .boolean: read.append("\(try reader.boolean())")
            default: read.append("\(try reader.null())")
            }
        }
        try reader.finish()
        #expect(read == ["1", "a", "true", "true", "2.5", "9007199254740993"])
        var other = JSONReader(Array(#"{"a":1.5}"#.utf8))
        #expect(throws: JSONReader.Malformed.self) { try other.object { reader, _ in _ = try reader.integer() } }
    }

    @Test func whatIsNestedTooDeeplyIsRefused() {
        for depth in [100, 200, 100_000] {
            var reader = JSONReader(
                Array(repeating: UInt8(ascii: "["), count: depth) + Array(repeating: UInt8(ascii: "]"), count: depth))
            if depth > 128 {
                #expect(throws: JSONReader.Malformed.self) { try reader.skip() }
            } else {
                #expect(throws: Never.self) { try reader.skip() }
            }
        }
    }

    /// A text that has everything of a value: numbers as they are spelled, strings without escapes.
    private static func spell(_ reader: inout JSONReader) throws -> String {
        switch try reader.kind() {
        case .object:
            var members: [String] = []
            try reader.object { reader, name in members.append("\(name):\(try spell(&reader))") }
            return "{\(members.joined(separator: "|"))}"
        case .array:
            var elements: [String] = []
            try reader.array { elements.append(try spell(&$0)) }
            return "[\(elements.joined(separator: "|"))]"
        case .string: return "'\(try reader.string())'"
        case .number: return String(decoding: try reader.numberText(), as: UTF8.self)
        case .boolean: return "\(try reader.boolean())"
        case .null: return try reader.null() ? "null" : "no null"
        }
    }

    private static func spell(_ value: borrowing JSONValue) -> String {
        if var members = value.members {
            var spelled: [String] = []
            while let member = members.next() {
                let name = member.name.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
                spelled.append("\(name):\(spell(member.value))")
            }
            return "{\(spelled.joined(separator: "|"))}"
        }
        if var elements = value.elements {
            var spelled: [String] = []
            while let element = elements.next() { spelled.append(spell(element)) }
            return "[\(spelled.joined(separator: "|"))]"
        }
        if let text = value.string {
            return "'\(text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })'"
        }
        if let number = value.numberText {
            return number.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        }
        if let bool = value.bool { return "\(bool)" }
        return "null"
    }
}
