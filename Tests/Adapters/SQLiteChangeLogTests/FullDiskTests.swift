import ChangeLog
import ChangeLogConformance
import Configuration
import SQLiteChangeLog
import Testing

@Suite(.timeLimit(.minutes(5))) struct FullDiskTests {
    private let place = TopicPartition(.uploads, 0)
    private let other = TopicPartition(.uploads, 1)

    private func open(_ directory: SQLiteLogHarness) async throws -> SQLiteChangeLog {
        try await SQLiteChangeLog(
            SQLiteChangeLogConfiguration(path: directory.path).with(\.partitions, 2)
                .with(\.maximumFileBytes, 1_600_000))
    }

    private func record(_ size: Int, to place: TopicPartition) -> NewRecord {
        NewRecord(to: place, value: [UInt8](repeating: 1, count: size))
    }

    @Test func failsWhileTheFileIsFullAndRecovers() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await open(directory)
        var count = 0
        var producer = try await log.producer()
        let error = await #expect(throws: ChangeLogError.self) {
            while true {
                try await producer.append([record(100_000, to: place)])
                count += 1
            }
        }
        #expect(error?.code == .storageFull)
        #expect(error?.isRetriable == true)
        #expect(count > 3)
        #expect(try await log.range(of: place).end == Int64(count))

        try await log.removeRecords(of: .uploads, before: .max)
        producer = try await log.producer()
        let offsets = try await producer.append([record(100_000, to: place)])
        #expect(offsets == [Int64(count)])
        try await log.close()
    }

    @Test func onlyUploadsRespectTheReserve() async throws {
        let directory = try SQLiteLogHarness()
        // Above the size of any disk.
        let log = try await SQLiteChangeLog(
            SQLiteChangeLogConfiguration(path: directory.path).with(\.partitions, 2).with(\.reserveBytes, 1 << 60))
        let edge = try await log.producer()
        let stage = try await log.producer()
        let error = await #expect(throws: ChangeLogError.self) { try await edge.append([record(10, to: place)]) }
        #expect(error?.code == .storageFull)
        #expect(error?.isRetriable == true)
        #expect(error?.message.contains(directory.path) == true)
        #expect(try await stage.append([record(10, to: TopicPartition(.changes, 0))]) == [0])
        #expect(try await log.range(of: place).end == 0)
        try await log.close()
    }

    /// An append that does not fit fails alone, even between others.
    @Test func failsOnlyTheAppendThatDoesNotFit() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await open(directory)
        let small = try await log.producer()
        let large = try await log.producer()
        let membership = try await log.join(group: "g", topic: .uploads)
        let assigned = AsyncStream.makeStream(of: Assignment.self)
        let running = Task { try await membership.run { assigned.continuation.yield($0) } }
        var assignments = assigned.stream.makeAsyncIterator()
        let assignment = try #require(await assignments.next())

        var smallTasks: [Task<[Int64], any Error>] = []
        var largeTasks: [Task<[Int64], any Error>] = []
        var commit: Task<Void, any Error>?
        try await directory.whileWritesStall(log) {
            for size in [10, 1_900_000, 10] {
                smallTasks.append(Task.immediate { try await small.append([record(10, to: place)]) })
                largeTasks.append(Task.immediate { try await large.append([record(size, to: other)]) })
                smallTasks.append(Task.immediate { try await small.append([record(10, to: place)]) })
            }
            commit = Task.immediate { try await assignment.commit(1) }
        }
        var offsets: [Int64] = []
        for task in smallTasks { offsets += try await task.value }
        #expect(offsets == Array(0..<6))
        #expect(try await largeTasks[0].value == [0])
        let full = await #expect(throws: ChangeLogError.self) { try await largeTasks[1].value }
        #expect(full?.code == .storageFull)
        // Behind the failed one every append fails.
        let behind = await #expect(throws: ChangeLogError.self) { try await largeTasks[2].value }
        #expect(behind?.code == .producerFailed)
        #expect(try await log.range(of: other).end == 1)
        try await commit?.value
        let committed = try await assignment.committed()
        #expect(committed == 1)
        running.cancel()
        try await running.value
        try await log.close()
    }
}
