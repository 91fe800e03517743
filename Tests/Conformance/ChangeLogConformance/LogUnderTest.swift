import ChangeLog

/// A place where an adapter keeps a log, and what the suite must be able to do to it; each check gets a new one.
package protocol LogUnderTest: Sendable {
    /// The adapter.
    associatedtype Log: ChangeLog

    /// Opens the log at this place, making it the first time; it is closed before it is opened again.
    func open(_ settings: LogSettings) async throws -> Log

    /// Closes the log.
    func close(_ log: Log) async throws

    /// Runs a body during which nothing that is enqueued is written.
    func whileWritesStall(_ log: Log, _ body: () async throws -> Void) async throws

    /// Runs a body during which the next append to `uploads` partition 0 fails.
    func whileAppendsFail(_ log: Log, _ body: () async throws -> Void) async throws

    /// Applies retention to a topic: records older than a moment may go, where they stand below their partition's floor.
    func removeRecords(of topic: Topic, before time: Int64, floors: [Int: Int64], from log: Log) async throws
}

extension LogUnderTest {
    /// Applies retention where no partition has a floor.
    func removeRecords(of topic: Topic, before time: Int64, from log: Log) async throws {
        try await removeRecords(of: topic, before: time, floors: [:], from: log)
    }
}

/// How a check needs its log.
package struct LogSettings: Sendable {
    /// How many partitions each topic but `control` has when the log is made.
    package var partitions = 4
    /// The largest record in bytes.
    package var maximumRecordSize = 2 << 20
    /// The bound of what waits to be written, in bytes.
    package var queueBytes = 8 << 20

    /// What most checks need.
    package init() {}
}
