import ChangeLog
import Ingest
import SyncModel
import Testing

/// A log takes records up to a size, and a batch has an outcome all the same.
@Suite struct SizeTests {
    private let limit = 4096

    private func sizes(_ decoded: Decoded) -> [Int] { decoded.admitted.records.map { $0.key.count + $0.value.count } }

    /// Changes that canonical spelling makes longer: zeros become decimals of many places.
    private func changes(_ count: Int, owner: String) -> [String] {
        (0..<count).map {
            #"{"table":"note","id":"\#($0)","syncId":"\#(owner)","values":{"due":"2026-01-02T03:04:05Z"}}"#
        }
    }

    @Test func refusesTogetherWhatIsTooLargeForOneOwnersPart() throws {
        let upload = Upload(changes(2, owner: "ann") + changes(100, owner: "bob") + changes(1, owner: "dan"))
            .with(\.grants, [("ann", .write), ("bob", .write), ("dan", .write)])
        let decoded = try upload.admitted(maximumRecordSize: limit)
        #expect(decoded.outline == ["ann 0 1", "dan 102"])
        #expect(decoded.parts.map(\.part) == [0, 1])
        #expect(decoded.parts[0].summary?.otherOwners.map(\.text) == ["dan"])
        #expect(decoded.refusals.map(\.index) == Array(2..<102))
        #expect(decoded.refusals.allSatisfy { $0.code == .valueTooLarge })
        #expect(decoded.admitted.refusals == [.valueTooLarge: 100])
        #expect(sizes(decoded).allSatisfy { $0 <= limit })
        // The dead letter has the first changes as they were sent, as far as there is space, and counts the others.
        let refused = try decoded.refusedChanges()
        #expect(refused.changes.count > 5 && refused.others == [.valueTooLarge: 100 - refused.changes.count])
        for (number, change) in refused.changes.enumerated() {
            #expect(change.refusal.index == number + 2)
            #expect(change.json == Array(changes(100, owner: "bob")[number].utf8))
        }
    }

    @Test func refusesTheCallersOwnPartTogether() throws {
        let upload = Upload(changes(100, owner: "ann") + ["7"] + changes(2, owner: "bob"))
        let decoded = try upload.admitted(maximumRecordSize: limit)
        #expect(decoded.outline == ["ann !", "bob 101 102"])
        #expect(decoded.refusals.map(\.index) == Array(0...100))
        #expect(decoded.refusals[100].code == .invalidChange)
        #expect(sizes(decoded).allSatisfy { $0 <= limit })
        // Where messages do not fit they are left out of part 0; the dead letter has the first ones.
        #expect(decoded.refusals.allSatisfy { $0.message.isEmpty })
        let refused = try decoded.refusedChanges()
        #expect(refused.changes.allSatisfy { !$0.refusal.message.isEmpty })
        #expect(refused.others == [.valueTooLarge: 100 - refused.changes.count, .invalidChange: 1])
    }

    @Test func leavesMessagesOutBeforeItRefusesChanges() throws {
        let bad = Array(repeating: #"{"table":"nothing","id":"1"}"#, count: 120)
        let decoded = try Upload(bad + changes(10, owner: "ann")).admitted(maximumRecordSize: limit)
        #expect(decoded.parts[0].changes.map(\.index) == Array(120..<130))
        #expect(decoded.refusals.count == 120 && decoded.refusals.allSatisfy { $0.message.isEmpty })
        #expect(sizes(decoded).allSatisfy { $0 <= limit })
        let few = try Upload(Array(bad.prefix(20))).admitted(maximumRecordSize: limit)
        #expect(few.refusals.allSatisfy { !$0.message.isEmpty })
    }

    @Test func fitsTheRefusalsOfAsManyChangesAsABatchMayHave() throws {
        let name = String(repeating: "n", count: 70)
        let changes = (0..<10_000).map { #"{"table":"note","id":"\#($0)","values":{"\#(name)":1}}"# }
        let decoded = try Upload(changes).admitted(maximumRecordSize: 1 << 20)
        #expect(decoded.outline == ["ann !"] && decoded.refusals.count == 10_000)
        #expect(sizes(decoded).allSatisfy { $0 <= 1 << 20 })
    }

    /// 10,000 refused changes of a few bytes, of an owner with a long name.
    @Test func aBatchOfRefusedChangesCausesOneBoundedDeadLetter() throws {
        let upload = Upload(Array(repeating: "0", count: 10_000))
        let decoded = try upload.admitted(maximumRecordSize: 32 << 20)
        let refused = try decoded.refusedChanges()
        #expect(refused.changes.map(\.refusal) == Array(decoded.refusals.prefix(refused.changes.count)))
        #expect(refused.changes.count > 500 && refused.changes.allSatisfy { $0.json == Array("0".utf8) })
        #expect(refused.others == [.invalidChange: 10_000 - refused.changes.count])
        #expect(try #require(sizes(decoded).last) < 80 << 10)
        // All that the batch causes, part 0 with the reasons included.
        #expect(sizes(decoded).reduce(0, +) < 25 * upload.record.value.count + 80 << 10)
    }

    @Test func refusesTheRecordWhenNotEvenTheRefusalsFit() throws {
        let decoded = try Upload(Array(repeating: "1", count: 2000)).admitted(maximumRecordSize: limit)
        #expect(decoded.parts.isEmpty && decoded.letters.count == 1)
        let refusal = RecordRefusal(
            .tooManyRefusals, "the refusals of its 2000 changes are larger than the log takes")
        #expect(decoded.admitted.recordRefusal == refusal)
        guard case .record(refusal, let value)? = decoded.letters.first?.subject else {
            Issue.record("a letter of a record")
            return
        }
        // The letter would not fit with the record inside.
        #expect(value.isEmpty && sizes(decoded)[0] <= limit)
    }

    @Test func sendsALetterWithoutWhatDoesNotFit() throws {
        let filler = String(repeating: "x", count: limit)
        let decoded = try Upload([#"{"table":"nothing","id":"1","x":"\#(filler)"}"#]).admitted(maximumRecordSize: limit)
        let refused = try decoded.refusedChanges()
        #expect(refused.changes == [RefusedChanges.Change(decoded.refusals[0], json: [])] && refused.others.isEmpty)
        #expect(sizes(decoded).allSatisfy { $0 <= limit })

        var admission = Admission(history: Fixture.history(recordSize: limit))
        let record = LogRecord(offset: 1, time: 2, key: Array(filler.utf8), value: [0xFF])
        let letter = try admission.admit(record, of: 0, schemas: Fixture.schemas).records[0]
        #expect(letter.key.isEmpty && letter.value.count <= limit)
    }

    @Test func countsTheKeyAsPartOfTheRecord() throws {
        // Among these counts are some whose part fits by its value alone.
        let owner = String(repeating: "o", count: 255)
        for count in 40...90 {
            let others = Upload(changes(count, owner: owner)).with(\.grants, [("ann", .write), (owner, .write)])
            #expect(try sizes(others.admitted(maximumRecordSize: limit)).allSatisfy { $0 <= limit })
            let own = Upload(changes(count, owner: owner)).with(\.caller, owner).with(\.grants, [(owner, .write)])
            #expect(try sizes(own.admitted(maximumRecordSize: limit)).allSatisfy { $0 <= limit })
        }
    }
}
