import ChangeLog
import Foundation
import Ingest
import SyncModel
import Testing

/// Whatever a batch holds, each change gets one verdict: admitted in one part, or refused.
@Suite struct AdmissionFuzzTests {
    /// `WEIR_TEST_LONG` asks for more.
    private static let rounds = ProcessInfo.processInfo.environment["WEIR_TEST_LONG"] == nil ? 300 : 20_000

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func givesEveryChangeExactlyOneVerdict(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var admitted = 0
        var refused = 0
        for round in 0..<Self.rounds {
            let upload = Self.upload(&random)
            let maximum = random.next() % 4 == 0 ? 4096 : 1 << 20
            let decoded = try upload.admitted(limits: SyncLimits(maxValueBytes: 200), maximumRecordSize: maximum)
            guard decoded.admitted.recordRefusal == nil else {
                #expect(decoded.parts.isEmpty && decoded.letters.count == 1)
                continue
            }
            #expect(decoded.parts.first?.owner.text == "ann")
            var verdicts = Array(repeating: 0, count: decoded.admitted.changeCount)
            for part in decoded.parts {
                for change in part.changes { verdicts[change.index] += 1 }
                #expect(part.changes.map(\.index) == part.changes.map(\.index).sorted())
                admitted += part.changes.count
            }
            for refusal in decoded.refusals { verdicts[refusal.index] += 1 }
            refused += decoded.refusals.count
            #expect(verdicts.allSatisfy { $0 == 1 }, "seed \(seed), round \(round): \(verdicts)")
            #expect(decoded.letters.count == decoded.refusals.count)
            #expect(decoded.parts.dropFirst().allSatisfy { !$0.changes.isEmpty && $0.summary == nil })
            #expect(decoded.parts.dropFirst().map(\.owner) == decoded.parts[0].summary?.otherOwners)
            #expect(decoded.admitted.records.allSatisfy { $0.key.count + $0.value.count <= maximum })
            #expect(
                try upload.admitted(limits: SyncLimits(maxValueBytes: 200), maximumRecordSize: maximum).admitted
                    == decoded.admitted)
        }
        // The generator makes enough of both.
        #expect(admitted > Self.rounds && refused > Self.rounds, "\(admitted) admitted, \(refused) refused")
    }

    @Test func endsWithAVerdictOnDamagedBytes() throws {
        var random = SeededRandom(seed: 5)
        for _ in 0..<Self.rounds {
            var upload = Self.upload(&random)
            for _ in 0..<Int.random(in: 1...4, using: &random) where !upload.changes.isEmpty {
                let place = Int.random(in: upload.changes.indices, using: &random)
                upload.changes[place] = UInt8.random(in: 0...255, using: &random)
            }
            let decoded = try upload.admitted()
            #expect(decoded.admitted.recordRefusal != nil || decoded.parts.first?.part == 0)
        }
    }

    private static func upload(_ random: inout SeededRandom) -> Upload {
        let count = Int.random(in: 0...30, using: &random)
        let changes = (0..<count).map { _ in
            random.next() % 8 == 0 ? value(&random, depth: 0) : change(&random)
        }
        return Upload(changes).with(\.isAtomic, random.next() % 2 == 0)
            .with(\.schema, random.next() % 2 == 0 ? Fixture.oldest : Fixture.newest)
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
