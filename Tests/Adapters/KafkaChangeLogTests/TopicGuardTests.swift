import AsyncPrimitives
import ChangeLog
import ChangeLogConformance
import KafkaChangeLog
import Testing

/// Appends fail while the topics may not have the process's epoch.
@Suite(.timeLimit(.minutes(5)))
struct TopicGuardTests {
    @Test func suspendedAppendsFail() async throws {
        try await Self.withLog { log, partition in
            log.suspendAppends(ChangeLogError(.other, message: "control is gone"))
            let error = await #expect(throws: ChangeLogError.self) { _ = try await Self.append(to: partition, log) }
            #expect(error?.message.contains("control is gone") == true && error?.isRetriable == true)
            #expect(log.fault(of: [.changes]) != nil)
            log.resumeAppends()
            let offsets = try await Self.append(to: partition, log)
            #expect(offsets == [0])
        }
    }

    @Test func appendBelowTheKnownEndFails() async throws {
        try await Self.withLog { log, partition in
            log.recordOffset(1, of: partition)
            let error = await #expect(throws: ChangeLogError.self) { _ = try await Self.append(to: partition, log) }
            #expect(error?.message.contains("was recreated or lost records") == true, "\(error?.message ?? "")")
            // Further records are not sent until the topic has its end again.
            await #expect(throws: ChangeLogError.self) { _ = try await Self.append(to: partition, log) }
            let range = try await log.range(of: partition)
            #expect(range.end == 1)
        }
    }

    private static func append(to partition: TopicPartition, _ log: KafkaChangeLog) async throws -> [Int64] {
        let producer = try await log.producer()
        let result = await Result.capturing { try await producer.append([NewRecord(to: partition, value: [1])]) }
        await producer.close()
        return try result.get()
    }

    private static func withLog(_ body: (KafkaChangeLog, TopicPartition) async throws -> Void) async throws {
        let harness = try await KafkaLogHarness.make()
        let log = try await harness.open(LogSettings())
        let result = await Result.capturing { try await body(log, TopicPartition(.uploads, 0)) }
        await log.close()
        try await harness.remove()
        try result.get()
    }
}
