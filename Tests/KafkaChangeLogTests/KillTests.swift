import ChangeLog
import ChangeLogConformance
import Foundation
import KafkaChangeLog
import Testing

/// What a broker's death does, with a broker for this alone.
@Suite(.timeLimit(.minutes(3)), .enabled(if: TestCluster.own != nil, "there is no KAFKA_HOME to start a broker from"))
struct KillTests {
    private let place = TopicPartition(.uploads, 0)

    /// Requests are on their way whenever the broker dies, and each record is there once, in order.
    @Test func keepsEveryRecordOnceAndInOrderWhenABrokerDies() async throws {
        let home = try #require(ProcessInfo.processInfo.environment["KAFKA_HOME"])
        let broker = OwnBroker.start(home: home)
        let subject = KafkaLogPlace(broker: broker)
        let log = try await subject.open(LogSettings())
        let producer = try await log.producer()
        let reader = try await log.reader(of: place, from: 0)
        let total = 6000
        let isRunning = AsyncStream.makeStream(of: Void.self)
        let appending = Task {
            var receipts: [AppendReceipt] = []
            for number in 0..<total {
                receipts.append(
                    try await producer.enqueue([NewRecord(to: place, value: Array("\(number)".utf8))]))
                if number % 2000 == 1999 { isRunning.continuation.yield() }
            }
            isRunning.continuation.finish()
            var offsets: [Int64] = []
            for receipt in receipts { offsets += try await receipt.offsets() }
            return offsets
        }
        for await _ in isRunning.stream {
            broker.kill()
            broker.startAgain()
        }
        #expect(try await appending.value == (0..<total).map { Int64($0) })
        var values: [String] = []
        while values.count < total {
            values += try await reader.next(maximumBytes: 1 << 20).map { String(decoding: $0.value, as: UTF8.self) }
        }
        #expect(values == (0..<total).map { "\($0)" })
        await log.close()
        broker.kill()
    }
}
