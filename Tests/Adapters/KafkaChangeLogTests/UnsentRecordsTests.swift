import ChangeLog
import Testing

@testable import KafkaChangeLog

/// librdkafka has few records that it may not send.
struct UnsentRecordsTests {
    private let topics = TopicNames(prefix: "", partitionCount: 4)

    private func add(
        _ tags: ClosedRange<UInt>, to partition: Int = 0, size: Int = 10, _ unsent: inout UnsentRecords
    ) -> [UInt] {
        let records = tags.map { _ in
            NewRecord(to: TopicPartition(.uploads, partition), value: Array(repeating: 1, count: size))
        }
        return unsent.add(records[...], firstTag: tags.lowerBound, topics).map(\.tag)
    }

    private func remove(_ count: Int, of partition: Int = 0, _ unsent: inout UnsentRecords) -> [UInt] {
        unsent.remove(Array(repeating: TopicPartition(.uploads, partition), count: count)).map(\.tag)
    }

    @Test func aPartitionWithFiveRecordsUnderWayHandsOverNoMoreUntilThereAreFewer() {
        var unsent = UnsentRecords(maximumBytes: 1000)
        #expect(add(1...4, &unsent) == [1, 2, 3, 4])
        // One request has them all.
        #expect(add(5...14, &unsent) == Array(5...14))
        #expect(add(15...16, &unsent) == [])
        #expect(add(17...17, to: 1, &unsent) == [17])
        #expect(remove(9, &unsent) == [])
        #expect(remove(1, &unsent) == [15, 16])
        #expect(remove(1, of: 1, &unsent) == [])
    }

    @Test func whatIsHandedOverAtOnceFitsIntoARequest() {
        var unsent = UnsentRecords(maximumBytes: 1000)
        #expect(add(1...25, size: 100, &unsent) == Array(1...10))
        #expect(remove(5, &unsent) == [])
        #expect(remove(1, &unsent) == Array(11...20))
        #expect(remove(14, &unsent) == [21, 22, 23, 24, 25])
        #expect(remove(5, &unsent) == [])
        // Of larger ones each is in a request of its own.
        #expect(add(26...32, size: 2000, &unsent) == [26, 27, 28, 29, 30])
        #expect(remove(2, &unsent) == [31, 32])
    }

    @Test func nothingIsHandedOverAfterTheRestWasDropped() {
        var unsent = UnsentRecords(maximumBytes: 1000)
        #expect(add(1...5, &unsent) == [1, 2, 3, 4, 5])
        #expect(add(6...7, &unsent) == [])
        #expect(unsent.drop().map(\.tag) == [6, 7])
        #expect(remove(5, &unsent) == [])
        #expect(add(8...8, to: 3, &unsent) == [])
        #expect(unsent.drop().map(\.tag) == [8])
    }
}
