import Testing
import YAML

/// What a document's tree holds.
@Suite struct YAMLTreeTests {
    @Test func keepsTheOrderOfKeysAndAllPositions() throws {
        let text = """
            # a comment
            zebra: 1
            apple:
              - x
              - {y: "z"}
            empty:
            """
        let root = try #require(try YAMLDocument(text).root)
        let mapping = try #require(root.mapping)
        #expect(mapping.entries.map(\.key.text) == ["zebra", "apple", "empty"])
        #expect(mapping.entries.map(\.key.position.line) == [2, 3, 6])
        #expect(mapping["zebra"]?.position == YAMLPosition(line: 2, column: 8))
        let elements = try #require(mapping["apple"]?.sequence)
        #expect(elements[0].position == YAMLPosition(line: 4, column: 5))
        let inner = try #require(elements[1].mapping?.entries.first)
        #expect(inner.key.position == YAMLPosition(line: 5, column: 6))
        #expect(inner.value.position == YAMLPosition(line: 5, column: 9))
        #expect(mapping["empty"]?.scalar?.isNull == true)
        #expect(mapping["absent"] == nil)
    }

    @Test func countsColumnsInCharacters() throws {
        let mapping = try #require(try YAMLDocument("{ä: 1, é: 2}").root?.mapping)
        #expect(mapping.entries.map(\.key.position.column) == [2, 8])
        #expect(mapping["é"]?.position == YAMLPosition(line: 1, column: 11))
    }

    @Test func comparesKeysByBytes() throws {
        let mapping = try #require(try YAMLDocument("\u{E9}: 1\ne\u{301}: 2\n").root?.mapping)
        #expect(mapping.entries.count == 2)
        #expect(mapping["\u{E9}"]?.scalar?.integer == 1)
        #expect(mapping["e\u{301}"]?.scalar?.integer == 2)
    }

    @Test func keepsTheStyleOfScalars() throws {
        let text = "- a\n- 'a'\n- \"\\u0061\"\n- |\n  a\n- >\n  a\n  b\n"
        let scalars = try #require(try YAMLDocument(text).root?.sequence).compactMap(\.scalar)
        #expect(scalars.map(\.style) == [.plain, .singleQuoted, .doubleQuoted, .literal, .folded])
        #expect(scalars.map(\.text) == ["a", "a", "a", "a\n", "a b\n"])
    }

    @Test(arguments: ["", "# nothing here\n", "\n\n", "---\n...\n"])
    func aTextWithoutContentHasNoRoot(_ text: String) throws {
        let root = try YAMLDocument(text).root
        #expect(root == nil || root?.scalar?.isNull == true)
    }

    @Test(arguments: [
        ("null", YAMLScalar.Tag.null), ("~", .null), ("NULL", .null), ("nUll", .string),
        ("true", .boolean), ("FALSE", .boolean), ("no", .string), ("on", .string), ("yes", .string),
        ("0", .integer), ("-12", .integer), ("+7", .integer), ("0o17", .integer), ("0xFf", .integer), ("0o8", .string),
        ("0x", .string), ("-0x1", .string), ("017", .integer), ("1_000", .string), ("12:30", .string),
        ("1.5", .float), (".5", .float), ("5.", .float), ("1e3", .float), ("-1.5E-3", .float), ("1e", .string),
        (".", .string), (".inf", .float), ("-.INF", .float), (".nan", .float), ("+.nan", .string),
        ("2026-01-02", .string), ("1.2.3", .string), ("e3", .string),
    ])
    func followsTheCoreSchemaForPlainScalars(_ text: String, _ tag: YAMLScalar.Tag) throws {
        let scalar = try #require(try YAMLDocument("[\(text)]").root?.sequence?.first?.scalar)
        #expect(scalar.tag == tag)
    }

    @Test func quotedScalarsAreText() throws {
        let scalars = try #require(try YAMLDocument("['1', \"true\", '~', '']").root?.sequence).compactMap(\.scalar)
        #expect(scalars.allSatisfy { $0.tag == .string })
        #expect(scalars.allSatisfy { $0.integer == nil && $0.boolean == nil && !$0.isNull })
    }

    @Test func readsIntegersOfEveryBaseWithin64Bits() throws {
        let text = "[0o17, 0xff, -9223372036854775808, 9223372036854775808, true, False]"
        let scalars = try #require(try YAMLDocument(text).root?.sequence).compactMap(\.scalar)
        #expect(scalars.map(\.integer) == [15, 255, .min, nil, nil, nil])
        #expect(scalars.map(\.boolean) == [nil, nil, nil, nil, true, false])
    }
}
