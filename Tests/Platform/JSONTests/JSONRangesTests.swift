import JSONText
import Seeded
import Testing

@Suite struct JSONRangesTests {
    /// The members of an object, and where it ends.
    private func members(of json: [UInt8], at start: Int = 0) -> (members: [(String, String)], end: Int?) {
        var members: [(String, String)] = []
        let bytes = json.span
        let end = JSONRanges.forEachMember(in: bytes, objectAt: start) { name, start in
            let end = JSONRanges.end(ofValue: start, in: bytes)
            if let end {
                members.append(
                    (String(decoding: json[name], as: UTF8.self), String(decoding: json[start..<end], as: UTF8.self)))
            }
            return end
        }
        return (members, end)
    }

    /// A value as Weir writes it.
    private func write(depth: Int, _ random: inout SeededRandom, to writer: inout JSONWriter) {
        switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &random) {
        case 0: writer.null()
        case 1: writer.value(random.chance(50))
        case 2: writer.value(Int64.random(in: .min ... .max, using: &random))
        case 3: writer.value(Double.random(in: -1e9...1e9, using: &random))
        case 4:
            let letters: [Character] = ["a", "\"", "\\", "{", "}", "[", "]", ",", ":", "é", "\n", "\u{1}", " "]
            let count = Int.random(in: 0..<40, using: &random)
            writer.value(String((0..<count).map { _ in letters.randomElement(using: &random)! }))
        case 5:
            writer.array { writer in
                for _ in 0..<Int.random(in: 0..<4, using: &random) { write(depth: depth - 1, &random, to: &writer) }
            }
        default:
            writer.object { writer in
                for index in 0..<Int.random(in: 0..<4, using: &random) {
                    writer.name("member\(index)" as String)
                    write(depth: depth - 1, &random, to: &writer)
                }
            }
        }
    }

    @Test func membersOfWrittenObjectsAreFound() {
        for seed in 1...1000 as ClosedRange<UInt64> {
            var random = SeededRandom(seed: seed)
            var expected: [(String, String)] = []
            for index in 0..<Int.random(in: 0..<6, using: &random) {
                var value = JSONWriter()
                write(depth: 3, &random, to: &value)
                let name = "n" + String(repeating: "m", count: index * 3)
                expected.append((name, String(decoding: value.take(), as: UTF8.self)))
            }
            let object = "{" + expected.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
            let json = Array((",[" + object + "]").utf8)
            let found = members(of: json, at: 2)
            #expect(found.end == json.count - 1, "seed \(seed): \(object)")
            #expect(found.members.elementsEqual(expected) { $0 == $1 }, "seed \(seed): \(object)")
        }
    }

    @Test func whatIsCutHasNoEnd_andWhatIsDamagedNoneOutsideItsBytes() {
        for seed in 1...1000 as ClosedRange<UInt64> {
            var random = SeededRandom(seed: seed)
            var writer = JSONWriter()
            writer.object { writer in
                for name in ["a", "b"] {
                    writer.name(name as String)
                    write(depth: 3, &random, to: &writer)
                }
            }
            var json = writer.take()
            let cut = Array(json.prefix(Int.random(in: 0..<json.count, using: &random)))
            #expect(members(of: cut).end == nil, "seed \(seed)")
            for _ in 0..<3 {
                let index = Int.random(in: 0..<json.count, using: &random)
                json[index] = Array("{}[],:\"\\0x".utf8).randomElement(using: &random)!
            }
            #expect(members(of: json).end ?? 0 <= json.count, "seed \(seed)")
        }
    }

    @Test func numbersOfAllSizesAreWrittenInDecimal() {
        var writer = JSONWriter()
        for number in [0, 7, 10, -1, .max, .min] as [Int64] {
            writer.value(number)
            #expect(String(decoding: writer.take(), as: UTF8.self) == "\(number)")
        }
        writer.value(UInt64.max)
        #expect(String(decoding: writer.take(), as: UTF8.self) == "\(UInt64.max)")
    }
}
