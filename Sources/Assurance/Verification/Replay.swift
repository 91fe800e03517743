import ChangeLog
import Observability
import Ordering
import RecordStore
import SyncModel

/// Makes tables anew from `changes`, as the pipeline made them, up to the newest result that `ordered` holds.
///
/// The tables may be those of a process that has ended, or empty: the replay goes on from where they stand. What comes
/// behind that result is left to the ordering stage, which publishes it. Nothing is written to the log; what ordering
/// publishes is held against what `ordered` has.
package struct Replay<Log: ChangeLog, Store: RecordStore>: Sendable {
    private let log: Log
    private let store: Store
    private let history: History
    private let schemas: SchemaHistory
    private let configuration: OrderingConfiguration
    private let logger: Logger
    private let progress: @Sendable (Int) -> Void

    /// Makes a replay.
    ///
    /// - Parameters:
    ///   - log: what holds `changes` whole and, as far as it is kept, `ordered`.
    ///   - store: the tables to write, prepared for every version of `schemas`; nothing else writes them.
    ///   - history: the log's history.
    ///   - schemas: its schema versions.
    ///   - configuration: how large ordering's steps are.
    ///   - logger: says what stops ordering.
    ///   - progress: told how many messages were read, each time.
    package init(
        log: Log, into store: Store, history: History, schemas: SchemaHistory,
        configuration: OrderingConfiguration = OrderingConfiguration(), logger: Logger,
        progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.log = log
        self.store = store
        self.history = history
        self.schemas = schemas
        self.configuration = configuration
        self.logger = logger
        self.progress = progress
    }

    /// Replays every partition.
    ///
    /// - Returns: for each what was made, and how `ordered` compares.
    package func run() async throws -> [Report] {
        try await forEachPartition(Array(0..<history.partitions)) { partition in
            var report = Report(partition: partition)
            let end = try await PartitionReplay<Log, Store>.publishedEnd(of: partition, in: log)
            let replay = try await PartitionReplay(
                partition, log: log, into: store, history: history, schemas: schemas, configuration: configuration,
                logger: logger, progress: progress)
            try await replay.advance(to: end)
            let changes = try await log.range(of: TopicPartition(.changes, partition))
            try await replay.published.finish(at: end, changesEnd: changes.end)
            let position = try await replay.position()
            report.add(
                "tables",
                .equal("made up to offset \(position.state.nextOffset) of changes, which ends at \(changes.end)"))
            report.add("ordered", await replay.published.finding)
            return report
        }
    }
}

/// How many partitions are worked on at once: steps of several share the store's transactions, and each takes memory.
private let partitionsAtOnce = 4

/// Works on partitions, some at a time; the reports in the order of their numbers.
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
