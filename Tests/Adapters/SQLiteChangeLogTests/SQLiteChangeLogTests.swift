import ChangeLog
import ChangeLogConformance
import Configuration
import SQLiteChangeLog
import Testing

@Suite(.timeLimit(.minutes(5))) struct SQLiteChangeLogTests {
    private let place = TopicPartition(.uploads, 0)

    @Test(arguments: LogBehaviour<SQLiteLogHarness>.all)
    func conforms(_ behaviour: LogBehaviour<SQLiteLogHarness>) async throws {
        try await behaviour.check(SQLiteLogHarness())
    }

    /// Appends that wait while the writer is blocked share a transaction.
    @Test func sharesTransactionsAmongProducers() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await directory.open(LogSettings())
        let producers = try await withThrowingTaskGroup(of: LogProducerOfTest.self) { group in
            for _ in 0..<64 { group.addTask { try await log.producer() } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        var tasks: [Task<[Int64], any Error>] = []
        try await directory.whileWritesStall(log) {
            for producer in producers {
                tasks.append(Task.immediate { try await producer.append([NewRecord(to: place, value: [1])]) })
            }
        }
        var offsets: [Int64] = []
        for task in tasks { offsets += try await task.value }
        #expect(offsets.sorted() == Array(0..<64))
        let statistics = log.statistics
        #expect(statistics.appends == 64)
        #expect(statistics.records == 64)
        #expect(statistics.bytes == 64)
        // The first append may be ahead of the lock.
        #expect(statistics.transactions <= 3)
        try await log.close()
    }

    @Test func usesItsClockForTheTimeOfRecords() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await SQLiteChangeLog(SQLiteChangeLogConfiguration(path: directory.path), clock: { 77 })
        try await log.producer().append([NewRecord(to: place, value: [])])
        let records = try await log.reader(of: place, from: 0).next(maximumBytes: 1)
        #expect(records.map(\.time) == [77])
        try await log.close()
    }

    /// With few records in memory, most reads come from the file.
    @Test(arguments: [1, 500, 1 << 20]) func readsOlderRecordsFromTheFile(maximumBytes: Int) async throws {
        let directory = try SQLiteLogHarness()
        let log = try await SQLiteChangeLog(SQLiteChangeLogConfiguration(path: directory.path).with(\.tailBytes, 1000))
        let producer = try await log.producer()
        for number in 0..<50 { try await producer.append([NewRecord(to: place, key: [UInt8(number)], value: [])]) }
        let reader = try await log.reader(of: place, from: 0)
        var keys: [UInt8] = []
        while keys.count < 50 { keys += try await reader.next(maximumBytes: maximumBytes).flatMap(\.key) }
        #expect(keys == Array(0..<50))
        try await log.close()
    }

    @Test func closesConcurrentlyAndTwice() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await directory.open(LogSettings())
        let producer = try await log.producer()
        let receipt = try await producer.enqueue([NewRecord(to: place, value: [1])])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { try await log.close() } }
            try await group.waitForAll()
        }
        #expect(try await receipt.offsets() == [0])
        await producer.close()
        try await log.close()
        await #expect(throws: ChangeLogError.closed("the log")) {
            try await log.removeRecords(of: .uploads, before: 0)
        }
    }

    @Test func removesSeveralSlicesDuringAppends() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await directory.open(LogSettings())
        let producer = try await log.producer()
        try await producer.append((0..<2000).map { NewRecord(to: place, value: [UInt8(truncatingIfNeeded: $0)]) })
        async let removal: Void = log.removeRecords(of: .uploads, before: .max)
        try await producer.append([NewRecord(to: place, value: [7])])
        try await removal
        let range = try await log.range(of: place)
        #expect(range.end == 2001)
        #expect(range.start >= 1999)
        try await log.close()
        let reopened = try await directory.open(LogSettings())
        #expect(try await reopened.range(of: place) == range)
        try await reopened.close()
    }
}

typealias LogProducerOfTest = SQLiteChangeLog.Producer
