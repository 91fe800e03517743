import ChangeLog

/// A log of an adapter, and what the suite needs to do with it; each test gets a new one.
package protocol LogUnderTest: Sendable {
    associatedtype Log: ChangeLog

    /// Opens the log, and creates it the first time; it is closed before it is opened again.
    func open(_ settings: LogSettings) async throws -> Log

    func close(_ log: Log) async throws

    /// Runs a body while enqueued records are not written.
    func whileWritesStall(_ log: Log, _ body: () async throws -> Void) async throws

    /// Runs a body while the next append to partition 0 of `uploads` fails.
    func whileAppendsFail(_ log: Log, _ body: () async throws -> Void) async throws

    /// Applies retention to a topic: deletes records older than a time and below their partition's floor.
    func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String], from log: Log
    ) async throws
}

extension LogUnderTest {
    /// Applies retention to a topic whose groups the log knows.
    func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64] = [:], from log: Log
    ) async throws {
        try await removeRecords(of: topic, before: time, floors: floors, consumers: [], from: log)
    }
}

/// The settings of a test's log.
package struct LogSettings: Sendable {
    /// The number of partitions of each topic except `control`, when the log is created.
    package var partitions = 4
    /// In bytes, key and value together.
    package var maximumRecordSize = 2 << 20
    /// The size of the queue of records to be written.
    package var queueBytes = 8 << 20

    package init() {}
}
