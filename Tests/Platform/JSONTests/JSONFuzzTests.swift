import Fuzzing
import Testing

@testable import JSON

/// Whatever bytes come: they are refused with their place, or every view into them can be read.
@Suite struct JSONFuzzTests {
    private static let corpus: [[UInt8]] = [
        #"{"knowledgeId":"k1","batch":7,"changes":[{"table":"person","id":"g1","values":{"name":"A","n":-1.5e3}}]}"#,
        #"[1,-0,0.5,1e400,123456789012345678901234567890,9223372036854775807,18446744073709551615,5e-324]"#,
        #"{"a":{"a":[[],{},[{}]],"b":null},"":true,"\u0061":false,"é😀":"\ud83d\ude00\n\u0000"}"#,
        "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", " \n\t\r\"text\" ", "17", #""\\\"\/\b\f""#,
    ].map { Array($0.utf8) }

    private static let words = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "null", "true", "false", "\\u0000", "\\ud800", "\\udc00", "1e999",
        "-",
        "\u{FEFF}", "\"\":", "{\"a\":", "[[[[", "]]]]", "é",
    ]

    @Test func refusesOrReadsAnyInput() throws {
        let tally = try Fuzzer(
            "JSON", count: TestLength.count(10_000, long: 400_000), corpus: Self.corpus, words: Self.words,
            generate: { random in
                var bytes: [UInt8] = []
                JSONModel.random(depth: 4, using: &random).write(into: &bytes, spaces: true, using: &random)
                return bytes
            }
        ).run(Self.check)
        #expect(tally.accepted > 1000 && tally.refused > 1000, "\(tally)")
    }

    private static func check(_ bytes: [UInt8]) throws -> Fuzzer.Verdict {
        // A second opinion by other means: byte by byte, without simdjson.
        var byHand: JSONError?
        var check = JSONSyntaxCheck(maximumDepth: JSONParser.maximumDepth)
        do { try check.run(bytes.span) } catch { byHand = error }
        var parser = JSONParser()
        do {
            let minified = try minified(bytes, &parser)
            guard byHand == nil else { throw Fuzzer.BrokenPromise("taken, although \(byHand!)") }
            guard let minified else { return .accepted }
            guard try self.minified(minified, &parser) == minified else {
                throw Fuzzer.BrokenPromise("other when minified twice: \(String(decoding: minified, as: UTF8.self))")
            }
            return .accepted
        } catch let error as JSONError {
            guard error == byHand else {
                throw Fuzzer.BrokenPromise("\(error), but by hand \(byHand.map { "\($0)" } ?? "right")")
            }
            guard (0...bytes.count).contains(error.position) else {
                throw Fuzzer.BrokenPromise("the position \(error.position) is outside")
            }
            return .refused
        }
    }

    /// Reads everything, and spells it without white space; `nil` when a name is repeated.
    private static func minified(_ bytes: [UInt8], _ parser: inout JSONParser) throws -> [UInt8]? {
        let document = try parser.parse(bytes.span)
        try walk(document.root)
        var minified: [UInt8] = []
        do {
            try document.root.appendMinified(to: &minified, maximumDepth: JSONParser.maximumDepth)
        } catch {
            guard error.reason == .repeatedName, minified.isEmpty else {
                throw Fuzzer.BrokenPromise("not to be minified: \(error)")
            }
            return nil
        }
        return minified
    }

    private static func walk(_ value: borrowing JSONValue) throws {
        var count = 0
        if var elements = value.elements {
            while let element = elements.next() {
                try walk(element)
                count += 1
            }
        } else if var members = value.members {
            while let member = members.next() {
                guard member.nameRange.upperBound <= member.value.sourceRange.lowerBound else {
                    throw Fuzzer.BrokenPromise("a name behind its value")
                }
                try walk(member.value)
                count += 1
            }
        } else {
            let readings = [
                value.isNull, value.bool != nil, value.string != nil, value.kind == .number,
            ]
            guard readings.filter({ $0 }).count == 1 else { throw Fuzzer.BrokenPromise("read as \(readings)") }
            _ = value.int64
            _ = value.double
            return
        }
        guard count == value.count else { throw Fuzzer.BrokenPromise("\(count) inside, not \(value.count)") }
    }
}
