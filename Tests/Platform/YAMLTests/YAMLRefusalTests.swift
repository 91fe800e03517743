import Testing
import YAML

/// What a reader refuses, and where it says the fault is.
@Suite struct YAMLRefusalTests {
    private func refusal(_ text: String, limits: YAMLLimits = YAMLLimits()) throws -> YAMLError {
        try #require(throws: YAMLError.self) { _ = try YAMLDocument(text, limits: limits) }
    }

    @Test func refusesARepeatedKeyAndNamesBothPositions() throws {
        let error = try refusal("a: 1\nb: 2\n\"a\": 3\n")
        #expect(error.code == .duplicateKey)
        #expect(error.position == YAMLPosition(line: 3, column: 1))
        #expect(error.description == "3:1: the key \"a\" is repeated; its first use is at 1:1")
    }

    @Test(arguments: [
        ("a: &x 1\n", 1, 4), ("a: 1\nb: *x\n", 2, 4), ("a: !!int 1\n", 1, 4), ("a: !!python/object {}\n", 1, 4),
        ("? [a]\n: 1\n", 1, 3), ("a: 1\n---\nb: 2\n", 2, 1), ("&top [a]\n", 1, 1), ("- &m {a: 1}\n", 1, 3),
    ])
    func refusesWhatItDoesNotSupport(_ text: String, _ line: Int, _ column: Int) throws {
        let error = try refusal(text)
        #expect(error.code == .unsupported)
        #expect(error.position == YAMLPosition(line: line, column: column))
    }

    @Test func reportsSyntaxWithLineAndColumn() throws {
        let error = try refusal("a: 1\nb: [1, 2\nc: 3\n")
        #expect(error.code == .syntax)
        #expect(error.position == YAMLPosition(line: 3, column: 2))
        let tab = try refusal("a:\n\t- 1\n")
        #expect(tab.code == .syntax)
        #expect(tab.position.line == 2)
    }

    @Test func reportsTheFirstByteThatIsNotUTF8() throws {
        let bytes = Array("a: ä\nbé: ".utf8) + [0xC3, 0x28]
        let error = try #require(throws: YAMLError.self) { _ = try YAMLDocument(bytes) }
        #expect(error.code == .invalidCharacter)
        #expect(error.position == YAMLPosition(line: 2, column: 5))
    }

    @Test(
        arguments: [[0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xE2, 0x82]] as [[UInt8]])
    func refusesOverlongFormsSurrogatesAndCutSequences(_ bytes: [UInt8]) throws {
        let error = try #require(throws: YAMLError.self) { _ = try YAMLDocument(Array("a: ".utf8) + bytes) }
        #expect(error.code == .invalidCharacter)
        #expect(error.position == YAMLPosition(line: 1, column: 4))
    }

    @Test func refusesControlCharacters() throws {
        let error = try refusal("a: 1\nb: x\u{0}y\n")
        #expect(error.code == .invalidCharacter)
        #expect(error.position == YAMLPosition(line: 2, column: 5))
    }

    @Test func refusesATextAboveTheLimit() throws {
        let limits = YAMLLimits(bytes: 8)
        _ = try YAMLDocument("abc: def", limits: limits)
        #expect(try refusal("abc: defg", limits: limits).code == .tooLarge)
    }

    @Test func refusesNestingAboveTheLimit() throws {
        let limits = YAMLLimits(depth: 3)
        _ = try YAMLDocument("[[{a: 1}]]", limits: limits)
        let error = try refusal("[[{a: []}]]", limits: limits)
        #expect(error.code == .tooDeep)
        #expect(error.position == YAMLPosition(line: 1, column: 7))
    }

    @Test func refusesATextOfBrackets() throws {
        #expect(try refusal(String(repeating: "[", count: 1 << 20)).code == .tooDeep)
        #expect(try refusal(String(repeating: "{a: ", count: 1 << 18)).code == .tooDeep)
        #expect(try refusal(String(repeating: "- ", count: 1 << 19)).code == .tooDeep)
    }
}
