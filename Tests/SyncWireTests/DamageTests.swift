import SyncModel
import SyncWire
import Testing

/// Damaged records are errors, or other messages; never a trap.
@Suite struct DamageTests {
    @Test(arguments: Sample.all)
    func aRecordCutWithinAFieldIsAnError(sample: Sample) throws {
        // Protobuf does not say where a message ends: cut behind a field it is a shorter message, or lacks a required field.
        let ends = Set(try FieldRanges(decoding: sample.bytes).ranges.map(\.upperBound)).union([0])
        for count in sample.bytes.indices {
            let cut = Array(sample.bytes[..<count])
            if ends.contains(count) {
                do { #expect(try !sample.matches(cut), "\(count) bytes") } catch is WireError {}
            } else {
                #expect(throws: WireError.self, "\(count) bytes") { try sample.matches(cut) }
            }
        }
    }

    @Test(arguments: Sample.all)
    func unknownFieldsOfEveryWireTypeAreSkippedBetweenAnyTwo(sample: Sample) throws {
        let ends = [0] + (try FieldRanges(decoding: sample.bytes).ranges.map(\.upperBound))
        for end in ends {
            #expect(try sample.matches(sample.bytes[..<end] + Builder.unknown + sample.bytes[end...]), "at \(end)")
        }
    }

    @Test(arguments: Sample.all)
    func damagedBytesNeverTrap(sample: Sample) throws {
        var random = SeededRandom(seed: 0x5EED + UInt64(sample.bytes.count))
        // The largest samples say nothing more after the first kilobytes.
        let rounds = sample.bytes.count > 10_000 ? 200 : 4000
        var refused = 0
        for _ in 0..<rounds {
            var bytes = sample.bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                damage(&bytes, &random)
            }
            do { _ = try sample.matches(bytes) } catch is WireError { refused += 1 }
        }
        #expect(refused > 0 || sample.bytes.isEmpty)
    }

    @Test func anyBytesNeverTrap() throws {
        var random = SeededRandom(seed: 42)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...64, using: &random)
            let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            for sample in Sample.all.prefix(8) {
                do { #expect(try !sample.matches(bytes)) } catch is WireError {}
            }
        }
    }

    private func damage(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let position = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[position] = UInt8.random(in: .min ... .max, using: &random)
        case 2: bytes.remove(at: position)
        default: bytes.insert(UInt8.random(in: .min ... .max, using: &random), at: position)
        }
    }
}

/// SplitMix64, so that a failure comes again.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
