import Fuzzing
import Seeded
import SyncModel
import SyncWire
import Testing

/// Whatever bytes come, they are an error or a message that can be written again; never a trap.
@Suite struct WireFuzzTests {
    static let messages = Array(Set(Sample.all.map(\.message))).sorted()

    @Test(arguments: messages)
    func anyBytesAreEitherAnErrorOrAMessage(message: String) throws {
        // The largest samples say nothing more after the first kilobytes.
        let samples = Sample.all.filter { $0.message == message && $0.bytes.count < 10_000 }
        let tally = try Fuzzer(
            message, count: TestLength.count(1000, long: 40_000), corpus: samples.map(\.bytes), generate: Self.fields
        ).run { bytes in
            // Every type that reads the message, also those that read a part of it.
            var verdict = Fuzzer.Verdict.refused
            for sample in samples {
                do {
                    guard try sample.survives(bytes) else {
                        throw Fuzzer.BrokenPromise("\(sample): other when written and read again")
                    }
                    verdict = .accepted
                } catch is WireError {}
            }
            return verdict
        }
        #expect(tally.refused > 50 && tally.accepted > 5, "\(tally)")
    }

    /// Fields of every number and type, mostly those that messages know.
    private static func fields(_ random: inout SeededRandom) -> [UInt8] {
        var builder = Builder()
        for _ in 0..<Int.random(in: 0...12, using: &random) { builder = field(builder, &random, depth: 0) }
        return builder.bytes
    }

    private static func field(_ builder: Builder, _ random: inout SeededRandom, depth: Int) -> Builder {
        let number =
            random.once(in: 20) ? Int.random(in: 0...(1 << 29), using: &random) : Int.random(in: 1...24, using: &random)
        switch Int.random(in: 0..<(depth < 4 ? 8 : 6), using: &random) {
        case 0: return builder.varint(number, UInt64.random(in: 0...3, using: &random))
        case 1: return builder.varint(number, random.next() >> UInt64.random(in: 0..<64, using: &random))
        case 2:
            return builder.text(number, ["", "a", "k1", "é", Sample.hash, "[]", "null"].randomElement(using: &random)!)
        case 3:
            let count = Int.random(in: 0...40, using: &random)
            return builder.blob(number, (0..<count).map { _ in .random(in: .min ... .max, using: &random) })
        case 4: return builder.tag(number, [1, 3, 4, 5, 6, 7].randomElement(using: &random)!)
        case 5: return builder.blob(number, (0..<32).map { UInt8($0) })
        default:
            var inner = Builder()
            for _ in 0..<Int.random(in: 0...6, using: &random) { inner = field(inner, &random, depth: depth + 1) }
            return builder.blob(number, inner.bytes)
        }
    }
}
