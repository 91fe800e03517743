import ChangeLog
import ChangeLogConformance
import KafkaChangeLog
import MockKafka
import Seeded
import Testing

/// Producers with failing brokers, simulated by a mock cluster.
@Suite(.timeLimit(.minutes(5))) struct ProducerTests {
    private let partition = TopicPartition(.uploads, 0)

    private func record(_ number: Int, to partition: TopicPartition) -> NewRecord {
        NewRecord(to: partition, value: Array("\(number)".utf8))
    }

    /// A mock cluster with a log.
    private func open() async throws -> (KafkaLogHarness, MockCluster, KafkaChangeLog) {
        let cluster = MockCluster()
        let subject = KafkaLogHarness(mock: cluster)
        return (subject, cluster, try await subject.open(LogSettings()))
    }

    private func values(_ log: KafkaChangeLog, _ partition: TopicPartition, count: Int) async throws -> [String] {
        let reader = try await log.reader(of: partition, from: 0)
        var values: [String] = []
        while values.count < count {
            values += try await reader.next(maximumBytes: 1 << 20).map { String(decoding: $0.value, as: UTF8.self) }
        }
        await reader.close()
        return values
    }

    /// Each record is in the log once, in order, after retriable errors.
    @Test(arguments: 1...4) func everyRecordIsKeptOnceAndInOrderAfterRetriableErrors(seed: UInt64) async throws {
        let (_, cluster, log) = try await open()
        var generator = SeededRandom(seed: seed)
        let codes = [
            MockCluster.disconnect, MockCluster.notLeader, MockCluster.notEnoughReplicas, MockCluster.requestTimedOut,
        ]
        let producer = try await log.producer()
        var offsets: [Int64] = []
        for number in 0..<30 {
            // One request at a time: the mock cluster ignores sequence numbers, and would accept the next one first.
            let count = Int.random(in: 0...3, using: &generator)
            cluster.failRequests(0, codes: (0..<count).map { _ in codes.randomElement(using: &generator)! })
            offsets += try await producer.append([record(number, to: partition)])
        }
        #expect(offsets == (0..<30).map { Int64($0) })
        #expect(try await values(log, partition, count: 30) == (0..<30).map { "\($0)" })
        #expect(try await log.range(of: partition).end == 30)
        await producer.close()
        await log.close()
    }

    /// A permanent error ends the producer: the appended records are a prefix, and another producer continues after it.
    @Test func permanentErrorLeavesAPrefix() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        try await producer.append([record(0, to: partition)])
        // Every request fails: the mock cluster ignores sequence numbers, and would accept records after a gap.
        cluster.failRequests(0, codes: Array(repeating: MockCluster.topicForbidden, count: 50))
        let tasks = (1...50).map { number in
            Task.immediate { try await producer.append([record(number, to: partition)]) }
        }
        var causes: [ChangeLogError] = []
        for task in tasks {
            let error = await #expect(throws: ChangeLogError.self) { try await task.value }
            if let error, error.code != .producerFailed { causes.append(error) }
        }
        // One append fails with the cause, the others with `producerFailed`.
        #expect(causes.count == 1)
        #expect(causes.allSatisfy { $0.code == .other }, "\(causes)")
        await expectEnded(producer)
        await producer.close()
        cluster.clearFailures(of: 0)
        #expect(try await log.range(of: partition).end == 1)
        let successor = try await log.producer()
        for number in 1...50 { try await successor.append([record(number, to: partition)]) }
        #expect(try await values(log, partition, count: 51) == (0...50).map { "\($0)" })
        await successor.close()
        await log.close()
    }

    private func expectEnded(_ producer: KafkaLogProducer) async {
        let error = await #expect(throws: ChangeLogError.self) { try await producer.append([record(0, to: partition)]) }
        #expect(error?.code == .producerFailed)
    }

    @Test func failureHasCauseAndPartition() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        cluster.failRequests(0, codes: [MockCluster.topicForbidden])
        let error = await #expect(throws: ChangeLogError.self) {
            try await producer.append([record(0, to: partition)])
        }
        #expect(error?.partition == partition)
        #expect(error?.message.contains("TOPIC_AUTHORIZATION_FAILED") == true)
        #expect(error?.isRetriable == false)
        await producer.close()
        await log.close()
    }

    @Test func continuesWhenBrokersAreAvailableAgain() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        let reader = try await log.reader(of: partition, from: 0)
        try await producer.append([record(0, to: partition)])
        cluster.goDown()
        let receipt = try await producer.enqueue([record(1, to: partition)])
        cluster.comeUp()
        #expect(try await receipt.offsets() == [1])
        var count = 0
        while count < 2 { count += try await reader.next(maximumBytes: 1 << 20).count }
        await log.close()
    }

    /// Most of them wait until librdkafka could send them.
    @Test func manyAppendsOfSeveralPartitionsAreWrittenInTheirOrder() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        cluster.goDown()
        var receipts: [AppendReceipt] = []
        for number in 0..<100 {
            receipts.append(
                try await producer.enqueue((0..<3).map { record(number, to: TopicPartition(.uploads, $0)) }))
        }
        cluster.comeUp()
        for (number, receipt) in receipts.enumerated() {
            #expect(try await receipt.offsets() == [Int64](repeating: Int64(number), count: 3))
        }
        for index in 0..<3 {
            #expect(try await values(log, TopicPartition(.uploads, index), count: 100) == (0..<100).map { "\($0)" })
        }
        await producer.close()
        await log.close()
    }

    /// A worker that ends must not wait for brokers that are away, and the next one begins again.
    ///
    /// Of more than five records librdkafka does not have all yet.
    @Test(arguments: [2, 20]) func closeWithinALimitDropsWhatBrokersDoNotTake(count: Int) async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        try await producer.append([record(0, to: partition)])
        cluster.goDown()
        var receipts: [AppendReceipt] = []
        for number in 1...count { receipts.append(try await producer.enqueue([record(number, to: partition)])) }
        await producer.close(within: .milliseconds(10))
        // As after any failure: the log was not closed.
        let cause = await #expect(throws: ChangeLogError.self) { try await receipts[0].offsets() }
        #expect(cause?.code == .inputOutput && cause?.isRetriable == true)
        for receipt in receipts.dropFirst() {
            let consequence = await #expect(throws: ChangeLogError.self) { try await receipt.offsets() }
            #expect(consequence?.code == .producerFailed)
        }
        cluster.comeUp()
        let next = try await log.producer()
        try await next.append([record(count + 1, to: partition)])
        await next.close(within: .seconds(60))
        await log.close()
    }

    @Test func queueIsBoundedWhileBrokersAreDownAndDroppedByClose() async throws {
        let cluster = MockCluster()
        let subject = KafkaLogHarness(mock: cluster)
        try await subject.createTopics(partitions: 4)
        var configuration = subject.configuration()
        configuration.queueBytes = 10_000
        configuration.closeTimeout = .milliseconds(10)
        let log = try await KafkaChangeLog(configuration)
        let producer = try await log.producer()
        cluster.goDown()
        let large = NewRecord(to: partition, value: Array(repeating: 1, count: 4000))
        let receipts = try await [producer.enqueue([large]), producer.enqueue([large])]
        let waiting = Task.immediate { try await producer.enqueue([large]) }
        await log.close()
        for receipt in receipts {
            let error = await #expect(throws: ChangeLogError.self) { try await receipt.offsets() }
            #expect(error?.code == .closed)
        }
        let error = await #expect(throws: ChangeLogError.self) { _ = try await waiting.value }
        #expect(error?.code == .closed)
        await producer.close()
    }
}
