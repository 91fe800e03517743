import JSON
import Seeded
import Testing

@Suite("JSON values")
struct JSONValueTests {
    /// The spelling of every value of a document, in the order met, with its name before it.
    private static func spellings(_ value: borrowing JSONValue, in source: [UInt8], into list: inout [String]) {
        list.append(String(decoding: source[value.sourceRange], as: UTF8.self))
        if var elements = value.elements {
            while let element = elements.next() { spellings(element, in: source, into: &list) }
        }
        if var members = value.members {
            while let member = members.next() {
                list.append(String(decoding: source[member.nameRange], as: UTF8.self))
                spellings(member.value, in: source, into: &list)
            }
        }
    }

    @Test("gives the range of every kind of value, with white space and escapes around")
    func givesRanges() throws {
        let text = #"""
             { "a" : [ 1 , -2.50e1,"x\"y" ,"" , true,false , null ,{ } , [ ]  ] ,
              "\u0062\\" : { "c d" : "é ] } \\" } , "last":12345678901234567890123  }
            """#
        let source = Array(text.utf8)
        var parser = JSONParser()
        let document = try parser.parse(source.span)
        var list: [String] = []
        Self.spellings(document.root, in: source, into: &list)
        #expect(
            list == [
                text.trimmed, #""a""#, #"[ 1 , -2.50e1,"x\"y" ,"" , true,false , null ,{ } , [ ]  ]"#, "1", "-2.50e1",
                #""x\"y""#, #""""#, "true", "false", "null", "{ }", "[ ]", #""\u0062\\""#, #"{ "c d" : "é ] } \\" }"#,
                #""c d""#, #""é ] } \\""#, #""last""#, "12345678901234567890123",
            ])
    }

    @Test(
        "gives the range of a lone value between white space",
        arguments: ["1", "-0.5e-7", "\"a b\"", "\"\"", "true", "false", "null", "[]", "{}", "1e400"])
    func givesTheRangeOfALoneValue(text: String) throws {
        for (before, after) in [("", ""), (" \n", ""), ("", "\t "), ("\r\n ", " \r\n")] {
            var parser = JSONParser()
            let document = try parser.parse((before + text + after).utf8.span)
            let range = document.root.sourceRange
            #expect(range == before.utf8.count..<before.utf8.count + text.utf8.count)
        }
    }

    @Test("a random document reads back as its model, from every range, and minifies to the one minimal spelling")
    func readsRandomDocuments() throws {
        var random = SeededRandom(seed: 20_260_101)
        var parser = JSONParser()
        for _ in 0..<1000 {
            let model = JSONModel.random(depth: 5, using: &random)
            var source: [UInt8] = []
            model.write(into: &source, spaces: true, using: &random)
            var minimal: [UInt8] = []
            model.write(into: &minimal, spaces: false, using: &random)

            let padding = Bool.random(using: &random) ? JSONParser.padding : 0
            let padded = source + (0..<padding).map { _ in UInt8.random(in: 0...255, using: &random) }
            var minified: [UInt8] = []
            let ranges: [Range<Int>]
            do {
                let document = try parser.parse(padded.span, padding: padding)
                #expect(JSONModel(document.root) == model)
                try document.root.appendMinified(to: &minified, maximumDepth: 6)
                ranges = Self.ranges(of: document.root)
            }
            #expect(minified == minimal)
            for (range, part) in zip(ranges, Self.parts(of: model)) {
                let slice = Array(source[range])
                let document = try parser.parse(slice.span)
                #expect(JSONModel(document.root) == part)
                let whole = document.root.sourceRange
                #expect(whole == slice.indices)
            }
        }
    }

    private static func ranges(of value: borrowing JSONValue) -> [Range<Int>] {
        var list = [value.sourceRange]
        if var elements = value.elements {
            while let element = elements.next() { list += ranges(of: element) }
        }
        if var members = value.members {
            while let member = members.next() { list += ranges(of: member.value) }
        }
        return list
    }

    private static func parts(of model: JSONModel) -> [JSONModel] {
        switch model {
        case .array(let values): [model] + values.flatMap(parts)
        case .object(let members): [model] + members.flatMap { parts(of: $0.value) }
        default: [model]
        }
    }

    @Test("one parser reads documents of all sizes one after the other, good and bad")
    func reusesAParser() throws {
        var parser = JSONParser()
        for count in [100_000, 1, 50_000, 0, 300_000, 7] {
            let items = (0..<count).map { #"{"id":\#($0),"name":"n\#($0)\u00e9"}"# }
            let source = Array(("[" + items.joined(separator: ",") + "]").utf8)
            do {
                let document = try parser.parse(source.span)
                let counted = document.root.count
                #expect(counted == count)
                var elements = document.root.elements!
                var index: Int64 = 0
                while let element = elements.next() {
                    let isRight = element.member(named: "id")?.int64 == index
                    let name = JSONModel.text(element.member(named: "name")!.string!)
                    guard isRight && name == "n\(index)é" else {
                        Issue.record("element \(index) of \(count)")
                        break
                    }
                    index += 1
                }
                #expect(index == count)
            }
            #expect(throws: JSONError(.unexpectedEnd, at: source.count - 1)) {
                _ = try parser.parse(source.span, padding: 1)
            }
        }
    }

    @Test("an error in a large document keeps its position")
    func keepsPositionsInLargeDocuments() {
        var source = Array(("[" + Array(repeating: "\"0123456789\"", count: 80_000).joined(separator: ",") + "]").utf8)
        #expect(source.count > 1_000_000)
        #expect(source[700_002] == UInt8(ascii: "2"))
        source[700_002] = 0x07
        Refusal(bytes: source, .controlCharacter, 700_002).check()
    }

    @Test("counts values and members")
    func counts() throws {
        var parser = JSONParser()
        for (text, count) in [
            ("[]", 0), ("{}", 0), ("[[]]", 1), ("[1,[2,3],{\"a\":1,\"b\":2}]", 3), ("{\"a\":[1,2],\"a\":2}", 2),
            ("1", 0), ("\"abc\"", 0),
        ] {
            let document = try parser.parse(text.utf8.span)
            let counted = document.root.count
            #expect(counted == count, "\(text)")
        }
    }

    @Test("counts beyond the 24 bits that the tape has for it")
    func countsVeryMany() throws {
        let count = 1 << 24
        var source: [UInt8] = [UInt8(ascii: "[")]
        source.reserveCapacity(2 * count + 2)
        for index in 0..<count { source += index == 0 ? [0x30] : [0x2C, 0x30] }
        source.append(UInt8(ascii: "]"))
        var parser = JSONParser()
        let document = try parser.parse(source.span)
        let counted = document.root.count
        #expect(counted == count)
    }

    @Test("accessors of other types answer nil")
    func otherTypesReturnNil() throws {
        var parser = JSONParser()
        let document = try parser.parse(#"[null,true,1,"1",[1],{"a":1}]"#.utf8.span)
        var elements = document.root.elements!
        var kinds: [JSONKind] = []
        while let value = elements.next() {
            let kind = value.kind
            kinds.append(kind)
            let answers = [
                value.isNull, value.bool != nil, value.int64 != nil, value.uint64 != nil, value.double != nil,
                value.numberText != nil, value.string != nil, value.elements != nil, value.members != nil,
                value.member(named: "a") != nil,
            ]
            let expected: [Bool] =
                switch kind {
                case .null: [true, false, false, false, false, false, false, false, false, false]
                case .boolean: [false, true, false, false, false, false, false, false, false, false]
                case .number: [false, false, true, true, true, true, false, false, false, false]
                case .string: [false, false, false, false, false, false, true, false, false, false]
                case .array: [false, false, false, false, false, false, false, true, false, false]
                case .object: [false, false, false, false, false, false, false, false, true, true]
                }
            #expect(answers == expected, "\(kind)")
        }
        #expect(kinds == [.null, .boolean, .number, .string, .array, .object])
    }

    @Test("finds members by the bytes of their names, the first of several")
    func findsMembers() throws {
        let text = #"{"b":0,"a\u0000":-1,"a":1,"\u0061":2,"ab":3,"":4,"é":5,"e\u0301":6}"#
        var parser = JSONParser()
        let document = try parser.parse(text.utf8.span)
        #expect(document.root.member(named: "a")?.int64 == 1)
        #expect(document.root.member(named: "ab")?.int64 == 3)
        #expect(document.root.member(named: "")?.int64 == 4)
        // Canonically equivalent, and two names.
        #expect(document.root.member(named: "\u{E9}")?.int64 == 5)
        #expect(document.root.member(named: "e\u{301}")?.int64 == 6)
        let isMissing = document.root.member(named: "c") == nil
        #expect(isMissing)
    }

    @Test("sees a repeated name, however it is spelled and however large the object")
    func findsRepeatedNames() throws {
        let many = (0..<500).map { "\"n\($0)\":\($0)" }
        for (text, name, value) in [
            (#"{"a":1,"b":2,"\u0061":3,"b":4}"#, "a", 3),
            ("{" + (many + [#""n7":-7"#, #""n3":-3"#]).joined(separator: ",") + "}", "n7", -7),
            ("{" + (many + [#""n3":-3"#, #""n7":-7"#]).joined(separator: ",") + "}", "n3", -3),
            (#"{"":1,"":2}"#, "", 2),
        ] as [(String, String, Int64)] {
            var parser = JSONParser()
            let document = try parser.parse(text.utf8.span)
            guard let repeated = document.root.repeatedMember else {
                Issue.record("no name found twice in \(text.prefix(40))")
                continue
            }
            let found = JSONModel.text(repeated.name)
            #expect(found == name)
            let second = repeated.value.int64
            #expect(second == value)
        }
        for text in ["{}", "[1,1]", #"{"a":{"b":1},"b":1}"#, "{" + many.joined(separator: ",") + "}"] {
            var parser = JSONParser()
            let document = try parser.parse(text.utf8.span)
            let isNone = document.root.repeatedMember == nil
            #expect(isNone, "\(text)")
        }
    }

    @Test("keeps U+0000 in strings and names")
    func keepsNUL() throws {
        var parser = JSONParser()
        let document = try parser.parse(#"{"a\u0000":"\u0000b"}"#.utf8.span)
        var members = document.root.members!
        let member = members.next()!
        let name = JSONModel.text(member.name)
        let value = JSONModel.text(member.value.string!)
        #expect(name == "a\0")
        #expect(value == "\0b")
    }

    @Test("hands a document to a closure from a parser kept in a class")
    func servesFromAClass() throws {
        final class Reader {
            private var parser = JSONParser()

            func sum(_ text: String) throws -> Int64 {
                try parser.withDocument(text.utf8.span) { document in
                    var sum: Int64 = 0
                    var elements = document.root.elements!
                    while let element = elements.next() { sum += element.int64 ?? 0 }
                    return sum
                }
            }
        }
        let reader = Reader()
        #expect(try reader.sum("[1,2,3]") == 6)
        #expect(throws: JSONError(.unexpectedEnd, at: 2)) { try reader.sum("[1") }
        #expect(try reader.sum("[4]") == 4)
    }
}

extension String {
    fileprivate var trimmed: String {
        String(self.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}
