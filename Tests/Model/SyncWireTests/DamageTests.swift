import SyncModel
import SyncWire
import Testing

/// Records cut short are errors, and fields from the future are skipped.
@Suite struct DamageTests {
    @Test(arguments: Sample.all)
    func aRecordCutWithinAFieldIsAnError(sample: Sample) throws {
        // Protobuf does not say where a message ends: cut behind a field it is a shorter message, or lacks a required
        // field.
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
}
