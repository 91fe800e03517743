import AsyncPrimitives
import ChangeLog
import ChangeLogConformance
import KafkaChangeLog
import Testing

/// Appends to topics that are not those of the history are refused.
@Suite(.timeLimit(.minutes(2)))
struct TopicGuardTests {
    @Test func nothingIsAppendedWhileTheHistoryIsGone() async throws {
        try await Self.withLog { log, place in
            log.halt(ChangeLogError(.other, message: "control is gone"))
            let error = await #expect(throws: ChangeLogError.self) { _ = try await Self.append(to: place, log) }
            #expect(error?.message.contains("control is gone") == true && error?.isRetriable == true)
            #expect(log.fault(of: [.changes]) != nil)
            log.goOn()
            let offsets = try await Self.append(to: place, log)
            #expect(offsets == [0])
        }
    }

    @Test func anAppendBelowWhatTheTopicHeldIsNoAcknowledgement() async throws {
        try await Self.withLog { log, place in
            log.noteRecord(at: 1, of: place)
            let error = await #expect(throws: ChangeLogError.self) { _ = try await Self.append(to: place, log) }
            #expect(error?.message.contains("was made anew or lost records") == true, "\(error?.message ?? "")")
            // Nor is anything sent until the topic holds as much again.
            await #expect(throws: ChangeLogError.self) { _ = try await Self.append(to: place, log) }
            let range = try await log.range(of: place)
            #expect(range.end == 1)
        }
    }

    private static func append(to place: TopicPartition, _ log: KafkaChangeLog) async throws -> [Int64] {
        let producer = try await log.producer()
        let result = await Result.capturing { try await producer.append([NewRecord(to: place, value: [1])]) }
        await producer.close()
        return try result.get()
    }

    private static func withLog(_ body: (KafkaChangeLog, TopicPartition) async throws -> Void) async throws {
        let place = try await KafkaLogHarness.make()
        let log = try await place.open(LogSettings())
        let result = await Result.capturing { try await body(log, TopicPartition(.uploads, 0)) }
        await log.close()
        try await place.remove()
        try result.get()
    }
}
