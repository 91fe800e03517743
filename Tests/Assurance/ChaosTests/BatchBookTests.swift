import DeviceModel
import SyncModel
import Testing

@testable import Chaos

/// What one device is answered about its batches.
struct BatchBookTests {
    private func book(_ edits: [Edit] = [Sample.edit("r0"), Sample.edit("r1")]) -> BatchBook {
        var book = BatchBook(owner: "anna", device: "k1")
        for number: Int64 in 1...2 { book.begin(number, edits) }
        return book
    }

    @Test func anOutcomeAndItsRepetitionAreRight() throws {
        var book = book()
        #expect(book.take(try Sample.applied(100, 101), of: 1) == [])
        #expect(book.take(try Sample.applied(102, 103), of: 2) == [])
        #expect(book.take(try Sample.applied(100, 101), of: 1) == [])
        #expect(book.entries[1]?.outcome?.map(\.timeStamp) == [100, 101])
    }

    @Test func anotherOutcomeOfARepeatedBatchIsFound() throws {
        var book = book()
        #expect(book.take(try Sample.applied(100, 101), of: 1) == [])
        let found = book.take(try Sample.applied(100, 102), of: 1)
        #expect(found.map(\.kind) == [.wrongOutcome])
        #expect(found[0].text.contains("change 1 was applied 101 v1, and is applied 102 v1"), "\(found)")
        #expect(found[0].batch?.description == "anna/k1 batch 1")
    }

    @Test func timeStampsThatDoNotRiseAreFound() throws {
        var within = book()
        #expect(within.take(try Sample.applied(101, 100), of: 1).map(\.kind) == [.order])
        var across = book()
        #expect(across.take(try Sample.applied(100, 101), of: 1) == [])
        #expect(across.take(try Sample.applied(101, 102), of: 2).map(\.kind) == [.order])
    }

    @Test func timeStampsOfSeveralOwnersAreIndependent() throws {
        var book = book([Sample.edit("r0"), Sample.edit("r1", of: Sample.other)])
        #expect(book.take(try Sample.applied(100, 50), of: 1) == [])
    }

    @Test func aDeleteOfATombstoneMayShowItsOldTimeStamp() throws {
        var book = book([Sample.edit("r0"), Sample.edit("r1", isDelete: true)])
        #expect(book.take(try Sample.applied(100, 40), of: 1) == [])
    }

    @Test func aRefusedBatchAndAMissingResultAreFound() throws {
        var book = book()
        let refused = try Sample.answer(#"{"batch":{"batch":1,"refused":{"code":"outcome_expired"}}}"#)
        #expect(book.take(refused, of: 1).map(\.kind) == [.wrongOutcome])
        #expect(book.take(try Sample.applied(100), of: 1).map(\.kind) == [.wrongOutcome])
        #expect(book.take(try Sample.applied(100, 101), of: 3).map(\.kind) == [.wrongOutcome])
    }
}
