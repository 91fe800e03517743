import ChangeLog
import SyncModel
import SyncWire
import Testing
import TopicAudit

/// The records of `changes` and `ordered`, one after the other.
struct TopicAuditTests {
    private func ordered(_ pieces: [OrderedPiece]) throws -> TopicAudit {
        var audit = TopicAudit()
        for (offset, piece) in pieces.enumerated() {
            _ = try audit.checkOrdered(
                LogRecord(offset: Int64(offset), time: 0, key: [], value: piece.encode(naming: Sample.schema)), 0)
        }
        return audit
    }

    private func changes(_ parts: [ChangePart]) throws -> TopicAudit {
        var audit = TopicAudit()
        for (offset, part) in parts.enumerated() {
            _ = try audit.checkChanges(
                LogRecord(offset: Int64(offset), time: 0, key: [], value: part.encode(naming: Sample.schema)), 0)
        }
        return audit
    }

    @Test func resultsInOrderAreRight() throws {
        let audit = try ordered([Sample.piece([100, 101]), Sample.piece([102], batch: 2, at: 1)])
        #expect(audit.findings == [])
        #expect(audit.rows == 3)
        #expect(audit.orderedUpTo == [0: 2])
    }

    @Test func aRepetitionWithTheSameBytesIsCounted() throws {
        let audit = try ordered([Sample.piece([100]), Sample.piece([100])])
        #expect(audit.findings == [])
        #expect(audit.repeats == 1)
        #expect(audit.rows == 1)
    }

    @Test func aRepetitionWithOtherBytesIsFound() throws {
        #expect(
            try ordered([Sample.piece([100]), Sample.piece([101])]).findings == ["ordered 0 at 1 repeats other bytes"])
        var other = Sample.part()
        other.logTime = 2
        #expect(try changes([Sample.part(), other]).findings == ["changes 0 at 1 repeats other bytes"])
    }

    @Test func timeStampsThatDoNotRiseAreFound() throws {
        let found = try ordered([Sample.piece([100]), Sample.piece([100], batch: 2, at: 1)]).findings
        #expect(found == ["ordered 0 at 1: the timeStamp 100 of row r0 of anna is not above 100"])
    }

    @Test func recordsOutOfOrderAreFound() throws {
        let results = try ordered([Sample.piece([100], batch: 2, at: 1), Sample.piece([101], batch: 1, at: 0)])
        #expect(results.findings == ["ordered 0 at 1 is out of order"])
        let parts = try changes([Sample.part(2, upload: 1), Sample.part(1, upload: 0)])
        #expect(parts.findings == ["changes 0 at 1 is out of order"])
    }
}
