import Fuzzing
import JSON
import SyncModel
import Testing

@testable import Gateway

/// Whatever a body holds: it is refused with a code and a place, or what was read keeps the contract's bounds.
@Suite struct EnvelopeFuzzTests {
    private static let corpus: [[UInt8]] = [
        #"{"knowledgeId":"k1","epoch":"h3Zq","schemaVersion":"9f2c","batch":7,"atomic":true,"changes":[{"table":"#
            + #""person","id":"g1","values":{"name":"A"},"base":101}],"knowledge":[{"syncId":"abc","knowledgeId":"k1","#
            + #""lastTimeStamp":0},{"syncId":"abc","knowledgeId":"*","lastTimeStamp":9007199254740991}],"limit":1000}"#,
        #"{"knowledgeId":"k2","wait":10.5,"include":[1,2,3],"compact":false,"knowledge":[]}"#,
        #"{"knowledgeId":"é","batch":9007199254740991,"changes":[],"epoch":null,"schemaVersion":null}"#,
    ].map { Array($0.utf8) }

    private static let names = [
        "knowledgeId", "epoch", "schemaVersion", "batch", "atomic", "changes", "knowledge", "limit", "compact", "wait",
        "include", "syncId", "lastTimeStamp", "other",
    ]
    private static let values = [
        "null", "true", "0", "-1", "1", "1.5", "1e999", "9007199254740992", "18446744073709551616", "\"\"", "\"*\"",
        "\"k1\"", "\"\\u0000\"", "[]", "{}", "[1]", "[[]]", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", "[null]",
        #"[{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":5}]"#, "\"\(String(repeating: "k", count: 256))\"",
    ]

    @Test func refusesOrParsesWithinTheContractsBounds() throws {
        let words = Self.values + Self.names.map { "\"\($0)\":" } + ["{", "}", "[", "]", ",", ":"]
        let tally = try Fuzzer(
            "envelope", count: TestLength.count(5000, long: 150_000), corpus: Self.corpus, words: words,
            generate: { random in
                var members = [#""knowledgeId":"k1""#]
                for _ in 0..<Int.random(in: 0...5, using: &random) {
                    let name = Self.names.randomElement(using: &random)!
                    members.append("\"\(name)\":\(Self.values.randomElement(using: &random)!)")
                }
                return Array("{\(members.shuffled(using: &random).joined(separator: ","))}".utf8)
            }
        ).run { bytes in
            var parser = JSONParser()
            do {
                let envelope = try parser.withDocument(bytes.span) { document in
                    try Envelope(document.root, fields: [.upload, .pull, .waiting])
                }
                try Self.check(envelope)
                return .accepted
            } catch is JSONError {
                return .refused
            } catch let problem as Problem {
                guard problem.code == .invalidRequest, (0..<bytes.count).contains(problem.position ?? 0) else {
                    throw Fuzzer.BrokenPromise("\(problem)")
                }
                return .refused
            }
        }
        #expect(tally.accepted > 300 && tally.refused > 300, "\(tally)")
    }

    private static func check(_ envelope: Envelope) throws {
        let numbers = envelope.include + [envelope.batch].compactMap { $0 }
        guard numbers.allSatisfy({ (1...TimeStamp.maximum.rawValue).contains($0) }),
            (1...Envelope.maximumLimit).contains(envelope.limit), envelope.include.count <= Envelope.maximumInclude,
            envelope.wait >= .zero, envelope.wait <= .seconds(Envelope.maximumWait),
            envelope.knowledgeID != .everyOther
        else { throw Fuzzer.BrokenPromise("\(envelope)") }
        guard let changes = envelope.changes else { return }
        // What travels on is the array, whole.
        var parser = JSONParser()
        let count = try parser.withDocument(changes.take().span) { document in
            guard document.root.kind == .array else { throw Fuzzer.BrokenPromise("the changes are no array") }
            return document.root.count
        }
        guard count == envelope.changeCount else { throw Fuzzer.BrokenPromise("\(count) changes") }
    }
}
