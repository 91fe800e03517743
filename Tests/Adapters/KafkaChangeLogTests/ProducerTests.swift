import ChangeLog
import ChangeLogConformance
import KafkaChangeLog
import MockKafka
import Seeded
import Testing

/// What a producer does when brokers fail, on a mock cluster that fails as it is told.
@Suite(.timeLimit(.minutes(1))) struct ProducerTests {
    private let place = TopicPartition(.uploads, 0)

    private func record(_ number: Int, to place: TopicPartition) -> NewRecord {
        NewRecord(to: place, value: Array("\(number)".utf8))
    }

    /// A cluster of the test's own, with its log.
    private func open() async throws -> (KafkaLogHarness, MockCluster, KafkaChangeLog) {
        let cluster = MockCluster()
        let subject = KafkaLogHarness(mock: cluster)
        return (subject, cluster, try await subject.open(LogSettings()))
    }

    private func values(_ log: KafkaChangeLog, _ place: TopicPartition, count: Int) async throws -> [String] {
        let reader = try await log.reader(of: place, from: 0)
        var values: [String] = []
        while values.count < count {
            values += try await reader.next(maximumBytes: 1 << 20).map { String(decoding: $0.value, as: UTF8.self) }
        }
        await reader.close()
        return values
    }

    /// Errors that pass: each record is there once, in order, whatever became of the requests.
    @Test(arguments: 1...4) func keepsEveryRecordOnceAndInOrderThroughErrorsThatPass(seed: UInt64) async throws {
        let (_, cluster, log) = try await open()
        var generator = SeededRandom(seed: seed)
        let codes = [
            MockCluster.disconnect, MockCluster.notLeader, MockCluster.notEnoughReplicas, MockCluster.requestTimedOut,
        ]
        let producer = try await log.producer()
        var offsets: [Int64] = []
        for number in 0..<30 {
            // One request at a time: the mock does not look at sequence numbers, and would take the next before this one.
            let count = Int.random(in: 0...3, using: &generator)
            cluster.failRequests(0, codes: (0..<count).map { _ in codes.randomElement(using: &generator)! })
            offsets += try await producer.append([record(number, to: place)])
        }
        #expect(offsets == (0..<30).map { Int64($0) })
        #expect(try await values(log, place, count: 30) == (0..<30).map { "\($0)" })
        #expect(try await log.range(of: place).end == 30)
        await producer.close()
        await log.close()
    }

    /// An error that does not pass ends the producer: what is appended is a prefix, and another producer goes on behind it.
    @Test func leavesAPrefixWhenAnErrorDoesNotPass() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        try await producer.append([record(0, to: place)])
        // Every request: the mock does not look at sequence numbers, and would take what is behind a gap.
        cluster.failRequests(0, codes: Array(repeating: MockCluster.topicForbidden, count: 50))
        let tasks = (1...50).map { number in
            Task.immediate { try await producer.append([record(number, to: place)]) }
        }
        var causes: [ChangeLogError] = []
        for task in tasks {
            let error = await #expect(throws: ChangeLogError.self) { try await task.value }
            if let error, error.code != .producerFailed { causes.append(error) }
        }
        // One tells why, the others that the producer has ended.
        #expect(causes.count == 1)
        #expect(causes.allSatisfy { $0.code == .other }, "\(causes)")
        await expectEnded(producer)
        await producer.close()
        cluster.clearFailures(of: 0)
        #expect(try await log.range(of: place).end == 1)
        let successor = try await log.producer()
        for number in 1...50 { try await successor.append([record(number, to: place)]) }
        #expect(try await values(log, place, count: 51) == (0...50).map { "\($0)" })
        await successor.close()
        await log.close()
    }

    private func expectEnded(_ producer: KafkaLogProducer) async {
        let error = await #expect(throws: ChangeLogError.self) { try await producer.append([record(0, to: place)]) }
        #expect(error?.code == .producerFailed)
    }

    @Test func namesTheCauseAndThePartitionOfAFailure() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        cluster.failRequests(0, codes: [MockCluster.topicForbidden])
        let error = await #expect(throws: ChangeLogError.self) {
            try await producer.append([record(0, to: place)])
        }
        #expect(error?.partition == place)
        #expect(error?.message.contains("TOPIC_AUTHORIZATION_FAILED") == true)
        #expect(error?.isRetriable == false)
        await producer.close()
        await log.close()
    }

    @Test func goesOnWhenBrokersComeBack() async throws {
        let (_, cluster, log) = try await open()
        let producer = try await log.producer()
        let reader = try await log.reader(of: place, from: 0)
        try await producer.append([record(0, to: place)])
        cluster.goDown()
        let receipt = try await producer.enqueue([record(1, to: place)])
        cluster.comeUp()
        #expect(try await receipt.offsets() == [1])
        var count = 0
        while count < 2 { count += try await reader.next(maximumBytes: 1 << 20).count }
        await log.close()
    }

    @Test func boundsWhatWaitsForBrokersThatAreDownAndGivesItUpWithTheLog() async throws {
        let cluster = MockCluster()
        let subject = KafkaLogHarness(mock: cluster)
        try await subject.createTopics(partitions: 4)
        var configuration = subject.configuration()
        configuration.queueBytes = 10_000
        configuration.closeTimeout = .milliseconds(10)
        let log = try await KafkaChangeLog(configuration)
        let producer = try await log.producer()
        cluster.goDown()
        let large = NewRecord(to: place, value: Array(repeating: 1, count: 4000))
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
