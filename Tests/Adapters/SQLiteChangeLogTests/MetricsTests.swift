import ChangeLog
import Metrics
import SQLiteChangeLog
import Testing

@Suite(.timeLimit(.minutes(5))) struct MetricsTests {
    private let registry = MetricRegistry()
    private let place = TopicPartition(.uploads, 0)

    @Test func countsTransactionsAndTheirRecords() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await SQLiteChangeLog(
            SQLiteChangeLogConfiguration(path: directory.path), metrics: SQLiteLogMetrics(registry))
        let producer = try await log.producer()
        var tasks: [Task<[Int64], any Error>] = []
        try await directory.whileWritesStall(log) {
            for _ in 0..<4 {
                tasks.append(
                    Task.immediate {
                        try await producer.append([NewRecord(to: place, key: [1, 2], value: [3, 4, 5])])
                    })
            }
            #expect(log.queuedBytes == 4 * (5 + 64))
        }
        for task in tasks { _ = try await task.value }
        try await log.close()
        #expect(log.queuedBytes == 0)
        let records = registry.histogram(.logGroupRecords).snapshot
        #expect(records.sum == 4)
        #expect(registry.histogram(.logGroupBytes).snapshot.sum == 20)
        // The first may have a transaction of its own; all others share one.
        let transactions = try #require(records.cumulative.last)
        #expect(transactions <= 2)
        #expect(transactions == log.statistics.transactions)
        let (write, sync) = (
            registry.histogram(.logWriteDuration).snapshot, registry.histogram(.logSyncDuration).snapshot
        )
        #expect(write.cumulative.last == transactions && sync.cumulative.last == transactions)
        #expect(sync.sum > 0 && sync.sum < write.sum)
    }

    @Test func countsFailures() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await SQLiteChangeLog(
            SQLiteChangeLogConfiguration(path: directory.path), metrics: SQLiteLogMetrics(registry))
        try await directory.whileAppendsFail(log) {
            let producer = try await log.producer()
            await #expect(throws: ChangeLogError.self) { try await producer.append([NewRecord(to: place, value: [1])]) }
        }
        try await log.close()
        #expect(registry.counter(.logWriteFailures).value == 1)
        #expect(registry.histogram(.logGroupRecords).snapshot.sum == 0)
    }

    @Test func answersTheWatchdogOpenOrClosed() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await SQLiteChangeLog(SQLiteChangeLogConfiguration(path: directory.path))
        await log.beat()
        try await log.close()
        await log.beat()
        #expect(log.statistics.transactions == 0)
    }
}
