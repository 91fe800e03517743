import SyncModel
import SyncWire
import Testing

@Suite struct RoundTripTests {
    @Test(arguments: Sample.all)
    func readsWhatItWrites(sample: Sample) throws {
        #expect(try sample.matches(sample.bytes))
    }

    @Test func equalValuesGiveEqualBytes() {
        let positions = (0..<100).map { ($0, progress($0)) }
        let forwards = UploadPositions(Dictionary(uniqueKeysWithValues: positions))
        let backwards = UploadPositions(Dictionary(uniqueKeysWithValues: positions.reversed()))
        #expect(forwards.encode() == backwards.encode())
    }

    @Test func readsFieldsInAnyOrder() throws {
        let bytes = Sample.part.encode(naming: Sample.schema)
        let backwards = try Fields(bytes).reversed().joined()
        #expect(Array(backwards) != bytes)
        // Repeated fields are turned round by this, too.
        var expected = Sample.part
        expected.changes.reverse()
        #expect(try ChangePart(decoding: Array(backwards)) == expected)

        var piece = Sample.piece
        let fields = try Fields(piece.encode(naming: Sample.schema)).reversed()
        piece.rows.reverse()
        piece.results.reverse()
        #expect(try OrderedPiece(decoding: Array(fields.joined())) == piece)
    }

    @Test func theLastOfARepeatedScalarIsUsed() throws {
        let more = Builder().varint(8, 0).text(11, "k9").bytes
        let part = try ChangePart(decoding: Sample.part.encode(naming: Sample.schema) + more)
        #expect(part.device.knowledgeID.text == "k9")
        // A change without a knowledgeId has the part's.
        #expect(part.changes[0].knowledgeID.text == "k9")
        #expect(part.changes[1].knowledgeID == Sample.other)
    }

    @Test func rulesVersionsAreReadUnchangedExceptZero() throws {
        var batch = ChangeBatch(
            epoch: "e", rules: 1, schema: Sample.hash, device: Sample.device, batch: 1, grants: [],
            changes: [0x5B, 0x5D])
        #expect(try ChangeBatch(decoding: batch.encode() + Builder().varint(3, 0).bytes).rules == 1)
        batch.rules = 2
        #expect(try ChangeBatch(decoding: batch.encode()).rules == 2)
    }

    @Test func aChangeTakesFewBytesBesidesItsIdAndValues() {
        var part = Sample.part
        part.changes = [part.changes[0]]
        let one = part.encode(naming: Sample.schema).count
        part.changes.append(part.changes[0])
        let change = part.changes[0]
        let added = part.encode(naming: Sample.schema).count - one
        #expect(added - change.id.text.utf8.count - change.values.bytes.count == 6)
    }

    @Test func theHeaderOfAPieceIsReadWithoutItsRows() throws {
        let bytes = Sample.piece.encode(naming: Sample.schema)
        let header = try OrderedPieceHeader(decoding: bytes)
        let piece = Sample.piece
        #expect(header.epoch == piece.epoch && header.schema == piece.schema)
        #expect(header.changesOffset == piece.changesOffset && header.piece == piece.piece && header.isLast)
        #expect(header.upload == piece.upload && header.uploadPart == piece.uploadPart)
        #expect(header.logTime == piece.logTime && header.timeStamp == piece.timeStamp)
        #expect(header.owner == piece.owner && header.device == piece.device && header.batch == piece.batch)
        #expect(header.verdict == piece.verdict && header.contentHash == piece.contentHash)
        #expect(header.rowCount == piece.rows.count && header.resultCount == piece.results.count)
        // An absent row is not evaluated.
        let broken = bytes + Builder().message(15) { $0.varint(2, 1) }.bytes
        #expect(try OrderedPieceHeader(decoding: broken).rowCount == piece.rows.count + 1)
        #expect(throws: WireError.self) { try OrderedPiece(decoding: broken) }
    }

    @Test func recordsOfControlHaveUniqueKeys() {
        let history = ControlRecord.history(History(epoch: "e", partitions: 1))
        #expect(history.key(distinguishedBy: "a") == Array("history/a".utf8))
        let schema = ControlRecord.schema(Sample.entry(12, Sample.schema))
        #expect(schema.key(distinguishedBy: "b") == Array("schema/12/b".utf8))
    }

    private func progress(_ number: Int) -> UploadProgress { UploadProgress(offset: Int64(number), part: number) }
}
