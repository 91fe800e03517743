import ChangeLog
import Fuzzing
import Ingest
import Seeded
import SyncModel
import Testing

/// Whatever a batch holds, each change gets one verdict: admitted in one part, or refused.
@Suite struct AdmissionFuzzTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func givesEveryChangeExactlyOneVerdict(seed: UInt64) throws {
        var admitted = 0
        var refused = 0
        let count = TestLength.count(300, long: 10_000)
        let tally = try Fuzzer(
            "admission", seed: seed, count: count, corpus: Self.corpus, words: Self.words,
            generate: Self.changes
        ).run { bytes in
            var random = SeededRandom(seed: seed &+ UInt64(bytes.count))
            var upload = Upload("")
            upload.changes = bytes
            upload.isAtomic = random.once(in: 2)
            if random.once(in: 2) { upload.schema = Fixture.oldest }
            let maximum = random.once(in: 4) ? 4096 : 1 << 20
            let decoded = try upload.admitted(limits: OutcomeLimits(maxValueBytes: 200), maximumRecordSize: maximum)
            guard decoded.admitted.records.allSatisfy({ $0.key.count + $0.value.count <= maximum }) else {
                throw Fuzzer.BrokenPromise("a record larger than the log takes")
            }
            let again = try upload.admitted(limits: OutcomeLimits(maxValueBytes: 200), maximumRecordSize: maximum)
            guard again.admitted == decoded.admitted else {
                throw Fuzzer.BrokenPromise("other records the second time")
            }
            if decoded.admitted.recordRefusal != nil {
                guard decoded.parts.isEmpty, decoded.letters.count == 1 else {
                    throw Fuzzer.BrokenPromise("\(decoded.parts.count) parts of a refused record")
                }
                return .refused
            }
            try Self.check(decoded)
            admitted += decoded.parts.reduce(0) { $0 + $1.changes.count }
            refused += decoded.refusals.count
            return .accepted
        }
        // The generator makes enough of everything.
        #expect(admitted > count / 4 && refused > count / 4, "\(admitted) admitted, \(refused) refused")
        #expect(tally.accepted > count / 4 && tally.refused > count / 4, "\(tally)")
    }

    /// Every change is in one part or refused, the parts are as the contract has them.
    private static func check(_ decoded: Decoded) throws {
        var verdicts = Array(repeating: 0, count: decoded.admitted.changeCount)
        for part in decoded.parts {
            for change in part.changes { verdicts[change.index] += 1 }
            guard part.changes.map(\.index) == part.changes.map(\.index).sorted() else {
                throw Fuzzer.BrokenPromise("changes out of order in the part of \(part.owner)")
            }
        }
        for refusal in decoded.refusals { verdicts[refusal.index] += 1 }
        guard verdicts.allSatisfy({ $0 == 1 }) else { throw Fuzzer.BrokenPromise("verdicts \(verdicts)") }
        guard decoded.parts.first?.owner.text == "ann", decoded.letters.count == (decoded.refusals.isEmpty ? 0 : 1),
            decoded.parts.dropFirst().allSatisfy({ !$0.changes.isEmpty && $0.summary == nil }),
            decoded.parts.dropFirst().map(\.owner) == decoded.parts[0].summary?.otherOwners
        else { throw Fuzzer.BrokenPromise("parts \(decoded.outline), \(decoded.letters.count) letters") }
        guard !decoded.refusals.isEmpty else { return }
        let refused = try decoded.refusedChanges()
        guard refused.changes.count + refused.others.values.reduce(0, +) == decoded.refusals.count else {
            throw Fuzzer.BrokenPromise("\(decoded.refusals.count) refusals, others in the dead letter: \(refused)")
        }
    }

    private static let corpus: [[UInt8]] = {
        var random = SeededRandom(seed: 0)
        return [Array("[]".utf8)] + (0..<15).map { _ in changes(&random) }
    }()

    private static let words = [
        "{", "}", "[", "]", ",", ":", "null", "\"table\":", "\"note\"", "\"values\":", "\"id\":", "\"syncId\":",
        "\"bob\"",
        "\"base\":", "\"deleted\":", "\"title\":", "\\u0000", "\\ud800", "1e999", "9007199254740992", "[[[[[[[[[[", "é",
    ]

    private static func changes(_ random: inout SeededRandom) -> [UInt8] {
        let count = Int.random(in: 0...30, using: &random)
        let changes = (0..<count).map { _ in random.once(in: 8) ? value(&random, depth: 0) : change(&random) }
        return Array("[\(changes.joined(separator: ","))]".utf8)
    }

    private static func change(_ random: inout SeededRandom) -> String {
        let names = [
            "table", "id", "syncId", "knowledgeId", "deleted", "base", "ifBase", "updatedAt", "values", "other",
        ]
        var members = [#""table":"\#(["note", "task", "place", "x"].randomElement(using: &random)!)""#]
        members.append(#""id":"\#(random.next() % 5)""#)
        if random.next() % 2 == 0 {
            members.append(#""syncId":"\#(["ann", "bob", "cat", "zoe"].randomElement(using: &random)!)""#)
        }
        if random.next() % 2 == 0 { members.append(#""values":\#(values(&random))"#) }
        if random.next() % 4 == 0 {
            members.append("\"\(names.randomElement(using: &random)!)\":\(value(&random, depth: 0))")
        }
        return "{" + members.shuffled(using: &random).joined(separator: ",") + "}"
    }

    private static func values(_ random: inout SeededRandom) -> String {
        let typical = [
            #""title":"A""#, #""count":5"#, #""count":"9007199254740993""#, #""price":"1.5""#, #""price":2"#,
            #""due":"2026-01-02T03:04:05+01:00""#, #""labels":{"a":[1, 2]}"#, #""done":true"#, #""weight":1.5e3"#,
            #""photo":"AAE""#, #""key":"00112233445566778899aabbccddeeff""#, #""day":"2026-01-02""#, #""body":"B""#,
            #""b":"B""#, #""a":"A""#, #""name":"N""#, #""body":null"#,
        ]
        var members = (0..<Int.random(in: 0...3, using: &random)).map { _ in typical.randomElement(using: &random)! }
        if random.next() % 4 == 0 {
            let column = ["title", "count", "price", "due", "labels", "weight"].randomElement(using: &random)!
            members.append("\"\(column)\":\(value(&random, depth: 0))")
        }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func value(_ random: inout SeededRandom, depth: Int) -> String {
        switch random.next() % (depth < 4 ? 10 : 7) {
        case 0: return "null"
        case 1: return "true"
        case 2: return String(Int64(bitPattern: random.next()))
        case 3: return "-\(random.next() % 1000).\(random.next() % 1000)e\(Int.random(in: -400...400, using: &random))"
        case 4: return "\"" + String(repeating: "é", count: Int.random(in: 0...150, using: &random)) + "\""
        case 5: return #""\u0000\ud83d\ude00\n""#
        case 6: return #""2026-02-30T03:04:05Z""#
        case 7:
            let count = Int.random(in: 0...3, using: &random)
            return "[" + (0..<count).map { _ in value(&random, depth: depth + 1) }.joined(separator: ", ") + "]"
        default:
            let count = Int.random(in: 0...3, using: &random)
            let members = (0..<count).map { _ in "\"k\(random.next() % 3)\": \(value(&random, depth: depth + 1))" }
            return "{" + members.joined(separator: ",") + "}"
        }
    }
}
