import ChangeLog
import Testing

@testable import LocalLog

@Suite(.timeLimit(.minutes(5))) struct LocalReaderTests {
    private let place = TopicPartition(.ordered, 0)

    private func record(_ offset: Int64) -> LogRecord { LogRecord(offset: offset, time: 0, key: [], value: []) }

    /// Retention between the lookup in memory and the read from the file.
    @Test func failsIfRetentionRemovedTheRecords() async throws {
        for found in [[], [record(3), record(4)]] {
            let tail = PartitionTail(range: LogRange(start: 0, end: 5), maximumBytes: 0)
            let reader = try LocalReader(of: place, from: 1, tail: tail) { _, _, _, _ in
                tail.setStart(3)
                return found
            }
            let left = LogRange(start: 3, end: 5)
            await #expect(throws: ChangeLogError.outOfRange(1, of: place, left)) {
                try await reader.next(maximumBytes: 1 << 20)
            }
        }
    }

    @Test func readsOnlyOlderRecordsFromTheStorage() async throws {
        let tail = PartitionTail(range: LogRange(start: 0, end: 3), maximumBytes: 64 * 2)
        tail.append([record(3), record(4)])
        let reader = try LocalReader(of: place, from: 1, tail: tail) { place, offset, end, maximumBytes in
            #expect(place == self.place && offset == 1 && end == 5 && maximumBytes == 100)
            return [record(1), record(2)]
        }
        #expect(try await reader.next(maximumBytes: 100).map(\.offset) == [1, 2])
        #expect(try await reader.next(maximumBytes: 100).map(\.offset) == [3, 4])
    }
}
