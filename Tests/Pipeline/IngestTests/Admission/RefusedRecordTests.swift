import ChangeLog
import Ingest
import SyncModel
import SyncWire
import Testing

@Suite struct RefusedRecordTests {
    @Test(
        arguments: [
            ("", .malformedMessage, "missing in"), ("{}", .malformedChanges, "changes is no JSON array"),
            ("null", .malformedChanges, "changes is no JSON array"),
            ("[1,]", .malformedChanges, "changes is no JSON: unexpected byte at byte 3"),
            ("[", .malformedChanges, "changes is no JSON: ends inside a value at byte 1"),
            (" ", .malformedChanges, "changes is no JSON: no value at byte 1"),
            ("[] []", .malformedChanges, "changes is no JSON: content after the value at byte 3"),
            (#"["\ud800"]"#, .malformedChanges, "changes is no JSON: half of a surrogate pair at byte 2"),
            ("[1,2,3,4]", .tooManyChanges, "4 changes, at most 3 are allowed"),
        ] as [(String, RecordRefusal.Code, String)])
    func sendsARecordThatBreaksTheContractToDeadLetters(
        changes: String, code: RecordRefusal.Code, reason: String
    ) throws {
        let upload = Upload(changes).with(\.limits, OutcomeLimits(maxChanges: 3))
        let decoded = try upload.admitted()
        #expect(decoded.parts.isEmpty && decoded.letters.count == 1)
        let refusal = try #require(decoded.admitted.recordRefusal)
        #expect(refusal.code == code && refusal.reason.hasPrefix(reason), "\(refusal)")
        let letter = try #require(decoded.letters.first)
        #expect(letter.upload == UploadReference(partition: 2, offset: 42))
        #expect(letter.logTime == 1_767_323_045_000_000)
        #expect(letter.subject == .record(refusal, value: upload.record.value))
        let record = decoded.admitted.records[0]
        #expect(record.destination == TopicPartition(.deadLetters, 2) && record.key == Array("ann".utf8))
    }

    /// Whatever else is wrong with it, or has to be waited for: it waits for nothing, and gets no outcome.
    @Test(arguments: [
        Upload([#"{"table":"note","id":"1"}"#]), Upload([]), Upload("{}"), Upload([]).with(\.epoch, "h2"),
        Upload([]).with(\.rules, 99), Upload([]).with(\.schema, String(repeating: "0", count: 32)),
    ])
    func sendsARecordOutsideItsCallersPartitionToDeadLettersAlone(upload: Upload) throws {
        #expect(upload.partition == 2)
        for partition in [0, 1, 3] {
            let misplaced = upload.with(\.wrongPartition, partition)
            let decoded = try misplaced.admitted()
            let refusal = RecordRefusal(.wrongPartition, "the caller's uploads belong into partition 2 of 4")
            #expect(decoded.admitted.recordRefusal == refusal)
            #expect(decoded.parts.isEmpty && decoded.admitted.changeCount == 0)
            let letter = DeadLetter(
                upload: UploadReference(partition: partition, offset: 42), logTime: upload.time,
                subject: .record(refusal, value: upload.record.value))
            #expect(decoded.letters == [letter])
            #expect(decoded.admitted.records[0].destination == TopicPartition(.deadLetters, partition))
        }
    }

    @Test func takesAsManyChangesAsAreAllowed() throws {
        let changes = (1...3).map { #"{"table":"note","id":"\#($0)"}"# }
        #expect(try Upload(changes).admitted(limits: OutcomeLimits(maxChanges: 3)).outline == ["ann 0 1 2"])
    }

    @Test func sendsBytesThatAreNoMessageToDeadLetters() throws {
        var admission = Admission(history: Fixture.history(recordSize: 1 << 20))
        for value in [[], [0xFF], [0x08], [0x08, 0x00], Array("hello".utf8), [0x0B]] as [[UInt8]] {
            let record = LogRecord(offset: 1, time: 2, key: [], value: value)
            let decoded = try Decoded(admission.admit(record, of: 0, schemas: Fixture.schemas))
            #expect(decoded.parts.isEmpty && decoded.admitted.recordRefusal != nil)
            guard case .record(_, let kept) = try #require(decoded.letters.first).subject else {
                Issue.record("a letter of a record")
                return
            }
            #expect(kept == value)
        }
    }

    @Test func waitsAtARecordThatNeedsSomethingNewer() throws {
        let upload = UploadReference(partition: 2, offset: 42)
        let batch = Upload("[]")
        let unknownRules = RulesVersion.current + 1
        #expect(throws: IngestError.unknownRules(upload, unknownRules)) {
            try batch.with(\.rules, unknownRules).admitted()
        }
        let unknown = String(repeating: "0", count: 32)
        #expect(throws: IngestError.unknownSchema(upload, unknown)) { try batch.with(\.schema, unknown).admitted() }
        var admission = Admission(history: Fixture.history(recordSize: 1 << 20))
        // Format 2, and a field that format 1 would refuse.
        let newer = LogRecord(offset: 42, time: 0, key: [], value: [0x08, 0x02, 0x0B])
        var thrown: IngestError?
        do throws(IngestError) {
            _ = try admission.admit(newer, of: 2, schemas: Fixture.schemas)
        } catch {
            thrown = error
        }
        guard case .newerFormat(upload, _)? = thrown else {
            Issue.record("\(String(describing: thrown))")
            return
        }
        // It is known again as soon as `control` has it.
        #expect(throws: IngestError.unknownSchema(upload, Fixture.newest)) {
            var early = Admission(history: Fixture.history(recordSize: 1 << 20))
            var known = SchemaHistory()
            known.append(Fixture.schemas.entries[0])
            _ = try early.admit(batch.record, of: 2, schemas: known)
        }
    }

    @Test(arguments: [
        IngestError.newerFormat(UploadReference(partition: 3, offset: 9), "x"),
        .unknownRules(UploadReference(partition: 3, offset: 9), 4),
        .unknownSchema(UploadReference(partition: 3, offset: 9), "ab"),
        .positionOutOfRange(UploadReference(partition: 3, offset: 9), LogRange(start: 10, end: 20)),
        .uploadsLost(UploadReference(partition: 3, offset: 9), LogRange(start: 0, end: 5)),
    ])
    func namesThePlaceInItsErrors(error: IngestError) {
        #expect(error.description.hasPrefix("uploads[3] offset 9"))
    }
}
