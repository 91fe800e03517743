import JSON
import Seeded
import Testing

@Suite("Writing JSON")
struct JSONWriterTests {
    private static func written(_ body: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        body(&writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test("puts commas where they belong")
    func writesCommas() {
        let text = Self.written { writer in
            writer.object { writer in
                writer.name("a")
                writer.value(1)
                writer.name("b")
                writer.array { writer in
                    writer.value(true)
                    writer.null()
                    writer.array { _ in }
                    writer.object { _ in }
                    writer.value(0.5)
                    writer.value("x")
                    writer.raw(Array(#"{"r":1}"#.utf8))
                    writer.raw("2,3".utf8.span)
                    writer.base64("hi".utf8.span)
                    writer.value(false)
                }
                writer.name(String("c"))
                writer.object { writer in
                    writer.name("d\"".utf8.span)
                    writer.value("e".utf8.span)
                }
                writer.name("f")
                writer.value(String("g"))
                writer.name("h")
                writer.array { writer in
                    for number in 1...2 {
                        writer.rawBeginning(Array(#"{"i":"#.utf8))
                        writer.value(number)
                        writer.endObject()
                    }
                }
            }
        }
        let expected =
            #"{"a":1,"b":[true,null,[],{},0.5,"x",{"r":1},2,3,"aGk=",false],"c":{"d\"":"e"},"f":"g","#
            + #""h":[{"i":1},{"i":2}]}"#
        #expect(text == expected)
    }

    @Test("starts anew when its bytes are taken or removed, and appends to what it is given")
    func resets() {
        var writer = JSONWriter(appendingTo: Array("data: ".utf8))
        writer.value(1)
        #expect(writer.take() == Array("data: 1".utf8))
        writer.value(2)
        #expect(writer.bytes == Array("2".utf8))
        writer.removeAll()
        writer.value(3)
        #expect(writer.bytes == Array("3".utf8))
    }

    @Test("escapes only what must be, the same at every place of a long string")
    func escapesMinimally() throws {
        let escapes: [(UInt8, String)] =
            (0..<0x20).map { ($0, "\\u00" + ($0 < 16 ? "0" : "") + String($0, radix: 16)) }.map { byte, escape in
                switch byte {
                case 8: (byte, "\\b")
                case 9: (byte, "\\t")
                case 10: (byte, "\\n")
                case 12: (byte, "\\f")
                case 13: (byte, "\\r")
                default: (byte, escape)
                }
            } + [(0x22, "\\\""), (0x5C, "\\\\")]
        let others: [(UInt8, String)] = (0x20..<0x80).filter { $0 != 0x22 && $0 != 0x5C }.map {
            ($0, String(UnicodeScalar($0)))
        }
        let filler = "aé/😀\u{7F}0123456789012345"
        for (byte, spelling) in escapes + others {
            for place in 0..<20 {
                let before = String(filler.prefix(place))
                let text = before + String(UnicodeScalar(byte)) + "zz"
                let written = Self.written { $0.value(text) }
                #expect(Array(written.utf8) == Array(("\"" + before + spelling + "zz\"").utf8))
            }
        }
    }

    @Test("writes whole numbers of every size")
    func writesIntegers() {
        #expect(Self.written { $0.value(Int64.min) } == "-9223372036854775808")
        #expect(Self.written { $0.value(Int64.max) } == "9223372036854775807")
        #expect(Self.written { $0.value(UInt64.max) } == "18446744073709551615")
        #expect(Self.written { $0.value(0) } == "0")
        #expect(Self.written { $0.value(-10) } == "-10")
        #expect(Self.written { $0.value(Int8.min) } == "-128")
    }

    @Test(
        "spells doubles as RFC 8785, appendix B, does",
        arguments: [
            (0x0000_0000_0000_0000, "0"), (0x8000_0000_0000_0000, "0"), (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"), (0x7FEF_FFFF_FFFF_FFFF, "1.7976931348623157e+308"),
            (0xFFEF_FFFF_FFFF_FFFF, "-1.7976931348623157e+308"), (0x4340_0000_0000_0000, "9007199254740992"),
            (0xC340_0000_0000_0000, "-9007199254740992"), (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44B5_2D02_C7E1_4AF5, "9.999999999999997e+22"), (0x44B5_2D02_C7E1_4AF6, "1e+23"),
            (0x44B5_2D02_C7E1_4AF7, "1.0000000000000001e+23"), (0x444B_1AE4_D6E2_EF4E, "999999999999999700000"),
            (0x444B_1AE4_D6E2_EF4F, "999999999999999900000"), (0x444B_1AE4_D6E2_EF50, "1e+21"),
            (0x3EB0_C6F7_A0B5_ED8C, "9.999999999999997e-7"), (0x3EB0_C6F7_A0B5_ED8D, "0.000001"),
            (0x41B3_DE43_5555_5553, "333333333.3333332"), (0x41B3_DE43_5555_5554, "333333333.33333325"),
            (0x41B3_DE43_5555_5555, "333333333.3333333"), (0x41B3_DE43_5555_5556, "333333333.3333334"),
            (0x41B3_DE43_5555_5557, "333333333.33333343"), (0xBECB_F647_612F_3696, "-0.0000033333333333333333"),
            (0x4314_3FF3_C1CB_0959, "1424953923781206.2"),
        ] as [(UInt64, String)])
    func spellsDoublesAsRFC8785(bits: UInt64, text: String) {
        #expect(Self.written { $0.value(Double(bitPattern: bits)) } == text)
    }

    @Test(
        "spells doubles as ECMAScript does at the edges of its layouts",
        arguments: [
            (1.0, "1"), (-1.0, "-1"), (0.1, "0.1"), (0.1 + 0.2, "0.30000000000000004"), (123.456, "123.456"),
            (1e20, "100000000000000000000"), (1e21, "1e+21"), (1.5e21, "1.5e+21"), (1e-6, "0.000001"),
            (1e-7, "1e-7"), (1.25e-7, "1.25e-7"), (0.00001234, "0.00001234"), (1e16, "10000000000000000"),
            (1.5, "1.5"), (100.0, "100"), (-0.5, "-0.5"), (4.35, "4.35"), (1e100, "1e+100"),
        ])
    func spellsDoublesAtTheEdges(number: Double, text: String) {
        #expect(Self.written { $0.value(number) } == text)
    }

    @Test("random doubles read back the same")
    func doublesRoundTrip() throws {
        var random = SeededRandom(seed: 8785)
        for _ in 0..<50_000 {
            let number = Double(bitPattern: random.next())
            guard number.isFinite else { continue }
            let text = Self.written { $0.value(number) }
            var parser = JSONParser()
            let read = try parser.parse(text.utf8.span).root.double
            #expect(read == number, "\(text)")
        }
    }
}

@Suite("Minified copies")
struct JSONMinifyTests {
    private static func minified(_ text: String, maximumDepth: Int = 8, refusesNUL: Bool = false) throws -> String {
        var parser = JSONParser()
        var bytes: [UInt8] = Array("> ".utf8)
        let document = try parser.parse(text.utf8.span)
        try document.root.appendMinified(to: &bytes, maximumDepth: maximumDepth, refusesNUL: refusesNUL)
        return String(decoding: bytes.dropFirst(2), as: UTF8.self)
    }

    @Test("drops white space, keeps order and numbers, and escapes as little as possible")
    func minifies() throws {
        let text = #"""
            { "z" : [ 1.50 , -0 , 1E+2, { } , [ ] , [ [ ] , null ] ] ,
              "\u0061" : "\/\u00e9\u0022\u000a\u001F\uD83D\uDE00" , "" : true, "b":false }
            """#
        let expected = #"{"z":[1.50,-0,1E+2,{},[],[[],null]],"a":"/é\"\n\u001f😀","":true,"b":false}"#
        #expect(try Self.minified(text) == expected)
        #expect(try Self.minified(" 1e400 ") == "1e400")
        #expect(try Self.minified(" \"x\" ") == "\"x\"")
        #expect(try Self.minified(expected) == expected)
    }

    @Test("refuses a repeated name at any depth and says where the second one is")
    func refusesRepeatedNames() throws {
        #expect(throws: JSONError(.repeatedName, at: 7)) { try Self.minified(#"{"a":1,"a":2}"#) }
        #expect(throws: JSONError(.repeatedName, at: 15)) { try Self.minified(#"[{"x":[{"a":1, "\u0061":2}]}]"#) }
        #expect(try Self.minified(#"{"a":{"a":{"a":1}}}"#) == #"{"a":{"a":{"a":1}}}"#)
        #expect(try Self.minified(#"[{"a":1},{"a":1}]"#) == #"[{"a":1},{"a":1}]"#)
    }

    @Test("refuses more levels than allowed")
    func refusesDepth() throws {
        #expect(try Self.minified("[[{}]]", maximumDepth: 3) == "[[{}]]")
        #expect(throws: JSONError(.tooDeep, at: 3)) { try Self.minified("[1,[{}]]", maximumDepth: 1) }
        #expect(throws: JSONError(.tooDeep, at: 2)) { try Self.minified("[[{}]]", maximumDepth: 2) }
        #expect(try Self.minified("1", maximumDepth: 0) == "1")
        #expect(throws: JSONError(.tooDeep, at: 0)) { try Self.minified("[]", maximumDepth: 0) }
        let deep = String(repeating: "[", count: 1024) + String(repeating: "]", count: 1024)
        #expect(try Self.minified(deep, maximumDepth: 1024) == deep)
    }

    @Test("leaves the bytes as they were when it refuses")
    func leavesTheBytes() throws {
        var parser = JSONParser()
        var bytes: [UInt8] = [1, 2, 3]
        let document = try parser.parse(#"["x",{"a":1,"a":2}]"#.utf8.span)
        do throws(JSONError) {
            try document.root.appendMinified(to: &bytes, maximumDepth: 8)
            Issue.record("a repeated name passed")
        } catch {
            #expect(error == JSONError(.repeatedName, at: 12))
        }
        #expect(bytes == [1, 2, 3])
    }

    @Test("refuses U+0000 in strings and names on request")
    func refusesNUL() throws {
        #expect(try Self.minified(#"["\u0000"]"#) == #"["\u0000"]"#)
        #expect(throws: JSONError(.containsNUL, at: 4)) { try Self.minified(#"[1, "a\u0000"]"#, refusesNUL: true) }
        #expect(throws: JSONError(.containsNUL, at: 1)) { try Self.minified(#"{"\u0000b":1}"#, refusesNUL: true) }
        #expect(try Self.minified(#"["\\u0000"]"#, refusesNUL: true) == #"["\\u0000"]"#)
    }
}
