import ChangeLog
import Observability
import Ordering
import RecordStore
import SyncModel

/// A log that is ordered again, with what ordering needs.
package struct ReplaySource<Log: ChangeLog>: Sendable {
    let log: Log
    let history: History
    let schemas: SchemaHistory
    let skipped: SkippedRecords
    let configuration: OrderingConfiguration
    let logger: Logger
    let progress: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - log: holds `changes` from its start and, as far as retention left it, `ordered`.
    ///   - skipped: the records that are left out.
    ///   - configuration: the size of ordering's steps.
    ///   - logger: gets the errors that stop ordering.
    ///   - progress: called with the number of records of each read.
    package init(
        log: Log, history: History, schemas: SchemaHistory, leavingOut skipped: SkippedRecords = SkippedRecords(),
        configuration: OrderingConfiguration = OrderingConfiguration(), logger: Logger,
        progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.log = log
        self.history = history
        self.schemas = schemas
        self.skipped = skipped
        self.configuration = configuration
        self.logger = logger
        self.progress = progress
    }

    var partitions: [Int] { Array(0..<history.partitions) }

    func range(_ topic: Topic, _ partition: Int) async throws -> LogRange {
        try await log.range(of: TopicPartition(topic, partition))
    }
}

/// Rebuilds tables from `changes` up to the newest result in `ordered`.
///
/// The tables may be empty, or those of a process that has ended: the replay resumes at their position. Results after that
/// one are left to the ordering stage, which publishes them. Nothing is written to the log; what ordering would publish is
/// compared with `ordered`.
package struct Replay<Log: ChangeLog, Store: RecordStore>: Sendable {
    private let source: ReplaySource<Log>
    private let store: Store

    /// - Parameter store: the tables to write, prepared for every version of the schemas; nothing else writes them.
    package init(_ source: ReplaySource<Log>, into store: Store) {
        self.source = source
        self.store = store
    }

    /// Replays every partition; each report says what was written and how `ordered` compares.
    package func run() async throws -> [Report] {
        try await forEachPartition(source.partitions) { partition in
            var report = Report(partition: partition)
            let end = try await PartitionReplay<Log, Store>.publishedEnd(of: partition, in: source.log)
            let replay = try await PartitionReplay(partition, source, into: store)
            try await replay.advance(to: end)
            let changes = try await source.range(.changes, partition)
            try await replay.published.finish(at: end, changesEnd: changes.end)
            let position = try await replay.position()
            report.add(
                "tables",
                .equal("written up to offset \(position.state.nextOffset) of changes, which ends at \(changes.end)"))
            report.add("ordered", await replay.published.finding)
            return report
        }
    }
}

/// Partitions that are replayed at the same time: their steps share the store's transactions, and each needs memory.
private let partitionsAtOnce = 4

/// Runs a body for partitions, some at a time; returns the reports in the order of the partitions.
func forEachPartition(
    _ partitions: [Int], _ body: @escaping @Sendable (Int) async throws -> Report
) async throws -> [Report] {
    try await withThrowingTaskGroup(of: Report.self) { group in
        var waiting = partitions[...]
        var reports: [Report] = []
        for partition in waiting.prefix(partitionsAtOnce) { group.addTask { try await body(partition) } }
        waiting = waiting.dropFirst(partitionsAtOnce)
        while let report = try await group.next() {
            reports.append(report)
            guard let partition = waiting.popFirst() else { continue }
            group.addTask { try await body(partition) }
        }
        return reports.sorted { ($0.partition ?? -1) < ($1.partition ?? -1) }
    }
}
