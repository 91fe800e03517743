import ChangeLog
import ChangeLogConformance
import KafkaChangeLog
import KafkaServer
import Testing

/// Kills a broker of its own.
@Suite(.timeLimit(.minutes(5)), .enabled(if: TestCluster.mayKill, "needs WEIR_TEST_LENGTH=long and KAFKA_HOME"))
struct KillTests {
    private let partition = TopicPartition(.uploads, 0)

    /// The broker is killed with requests in flight; each record is in the log once, in order.
    @Test func everyRecordIsKeptOnceAndInOrderWhenABrokerIsKilled() async throws {
        let broker = try await KafkaServer.start()
        let subject = KafkaLogHarness(broker: broker)
        let log = try await subject.open(LogSettings())
        let producer = try await log.producer()
        let reader = try await log.reader(of: partition, from: 0)
        let total = 40_000
        let isRunning = AsyncStream.makeStream(of: Void.self)
        let appending = Task {
            var receipts: [AppendReceipt] = []
            for number in 0..<total {
                let value = Array("\(number)".utf8) + Array(repeating: UInt8(ascii: " "), count: 500)
                receipts.append(try await producer.enqueue([NewRecord(to: partition, value: value)]))
                if number % 10_000 == 5000 { isRunning.continuation.yield() }
            }
            isRunning.continuation.finish()
            var offsets: [Int64] = []
            for receipt in receipts { offsets += try await receipt.offsets() }
            return offsets
        }
        for await _ in isRunning.stream {
            try await broker.kill()
            try await broker.startAgain()
        }
        // Outside of the expectation, which would print the arrays.
        let hasOffsetsInOrder = try await appending.value == (0..<total).map { Int64($0) }
        #expect(hasOffsetsInOrder)
        var values: [String] = []
        while values.count < total {
            values += try await reader.next(maximumBytes: 1 << 20).map {
                String(decoding: $0.value.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
            }
        }
        let hasValuesInOrder = values == (0..<total).map { "\($0)" }
        #expect(hasValuesInOrder)
        await log.close()
        await broker.end()
    }
}
