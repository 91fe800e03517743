import ChangeLog
import ChangeLogConformance
import MemoryChangeLog
import Synchronization

/// A log in memory for the suite; what it holds outlives the log.
final class MemoryLogHarness: LogUnderTest {
    private let contents = Mutex<MemoryLogContents?>(nil)

    func open(_ settings: LogSettings) async throws -> MemoryChangeLog {
        let contents = contents.withLock { $0 } ?? MemoryLogContents(partitionCount: settings.partitions)
        return MemoryChangeLog(
            contents, maximumRecordSize: settings.maximumRecordSize, queueBytes: settings.queueBytes)
    }

    func close(_ log: MemoryChangeLog) async throws {
        await log.close()
        let left = await log.contents()
        contents.withLock { $0 = left }
    }

    func whileWritesStall(_ log: MemoryChangeLog, _ body: () async throws -> Void) async throws {
        log.pause()
        defer { log.resume() }
        try await body()
    }

    func whileAppendsFail(_ log: MemoryChangeLog, _ body: () async throws -> Void) async throws {
        log.failNextAppend(ChangeLogError(.inputOutput, message: "a fault that the test asked for"))
        try await body()
    }

    func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String], from log: MemoryChangeLog
    ) async throws {
        try await log.removeRecords(of: topic, before: time, floors: floors, consumers: consumers)
    }
}
