import SyncModel
import SyncWire
import Testing

@testable import Chaos

/// What devices were answered, against `changes` and `ordered`.
struct OutcomeJudgeTests {
    /// A device whose first batch of two changes was sent and acknowledged so often.
    private func book(sends: Int = 1, acknowledged: Int = 1, outcome: Bool = true) throws -> BatchBook {
        var book = BatchBook(owner: "anna", device: "k1")
        book.begin(1, [Sample.edit("r0"), Sample.edit("r1")])
        for _ in 0..<sends { book.sent(1) }
        for _ in 0..<acknowledged { book.acknowledged(1) }
        if outcome { #expect(book.take(try Sample.applied(100, 101), of: 1) == []) }
        return book
    }

    private func judge(_ book: BatchBook, _ parts: [ChangePart], _ pieces: [OrderedPiece]) -> [Finding.Kind] {
        var judge = OutcomeJudge([book])
        for part in parts { judge.take(part) }
        for piece in pieces { judge.take(piece, 0) }
        judge.finish()
        return judge.findings.map(\.kind)
    }

    @Test func aBatchThatWasAppliedOnceIsRight() throws {
        #expect(judge(try book(), [Sample.part()], [Sample.piece([100, 101])]) == [])
    }

    @Test func aRepeatedBatchIsAppliedOnce() throws {
        let parts = [Sample.part(), Sample.part(upload: 1)]
        let pieces = [Sample.piece([100, 101]), Sample.piece([], at: 1, verdict: .repeated)]
        #expect(judge(try book(sends: 3, acknowledged: 2), parts, pieces) == [])
    }

    @Test func anAcknowledgedBatchThatIsNowhereIsLost() throws {
        #expect(judge(try book(outcome: false), [], []).prefix(2) == [.lost, .lost])
    }

    /// It is in `changes`, where it waits.
    @Test func anAcknowledgedBatchThatIsNotOrderedYetIsNotLost() throws {
        #expect(judge(try book(outcome: false), [Sample.part()], []) == [.notHealed])
    }

    @Test func aRevokedDeviceNeedsNoOutcomeAndLosesNothing() throws {
        var book = try book(outcome: false)
        book.isRevoked = true
        #expect(judge(book, [Sample.part()], [Sample.piece([100, 101])]) == [])
        #expect(judge(book, [Sample.part()], []) == [.lost])
    }

    /// The batch was sent again later; that does not excuse the loss of the first record.
    @Test func anAcknowledgedRecordThatIsMissingIsLostThoughARepetitionWasApplied() throws {
        #expect(
            judge(try book(sends: 2, acknowledged: 2), [Sample.part()], [Sample.piece([100, 101])]) == [.lost])
    }

    @Test func aPartWithoutResultIsLost() throws {
        #expect(judge(try book(), [Sample.part()], [Sample.piece([100])]) == [.lost])
        #expect(judge(try book(), [Sample.part()], []) == [.lost])
    }

    @Test func aBatchThatWasAppliedTwiceIsDoubled() throws {
        let pieces = [Sample.piece([100, 101]), Sample.piece([102, 103], at: 1)]
        #expect(judge(try book(sends: 2), [Sample.part(), Sample.part(upload: 1)], pieces) == [.doubled])
    }

    @Test func aRecordThatWasNeverSentIsDoubled() throws {
        let parts = [Sample.part(), Sample.part(upload: 1)]
        #expect(judge(try book(), parts, [Sample.piece([100, 101])]) == [.doubled])
    }

    @Test func anotherResultThanTheDeviceGotIsFound() throws {
        #expect(judge(try book(), [Sample.part()], [Sample.piece([100, 102])]) == [.wrongOutcome])
    }

    @Test func aBatchThatWasNeverSentIsFound() throws {
        #expect(
            judge(try book(), [Sample.part()], [Sample.piece([100, 101]), Sample.piece([102], batch: 2, at: 1)])
                == [.wrongOutcome])
    }

    @Test func aRefusalOfTheWholeBatchIsFound() throws {
        let refused = Sample.piece([], at: 1, verdict: .refused(.outcomeExpired))
        #expect(judge(try book(), [Sample.part()], [Sample.piece([100, 101]), refused]) == [.wrongOutcome])
    }

    @Test func anAcknowledgedBatchWithoutOutcomeIsFound() throws {
        #expect(judge(try book(outcome: false), [Sample.part()], [Sample.piece([100, 101])]) == [.notHealed])
    }

    @Test func aBatchThatWasNotAcknowledgedMayBeMissing() throws {
        #expect(judge(try book(sends: 1, acknowledged: 0, outcome: false), [], []) == [])
    }
}
