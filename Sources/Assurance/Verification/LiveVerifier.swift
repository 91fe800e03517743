import ChangeLog
import Observability
import Ordering
import RecordStore
import SyncModel

/// Recomputes partitions from the log while the pipeline goes on, and compares what is published and the tables (I4).
///
/// A replay follows the tables until it is close behind them; then they are held at one moment, the replay goes on to where
/// they stand there, and both are compared. Memory holds pieces; the replay's tables lie in a store of their own.
package struct LiveVerifier<Log: ChangeLog, Tables: SnapshotReads, Scratch: RecordStore>: Sendable {
    /// Opens empty tables for a partition's replay, prepared, for a body, and removes them afterwards.
    package typealias WithScratch =
        @Sendable (_ partition: Int, _ body: @Sendable (Scratch) async throws -> Report) async throws -> Report

    private let log: Log
    private let tables: Tables
    private let withScratch: WithScratch
    private let history: History
    private let schemas: SchemaHistory
    private let configuration: OrderingConfiguration
    private let logger: Logger
    private let progress: @Sendable (Int) -> Void

    /// How many messages a replay may have left when the tables are held: some seconds' work.
    private static var shortWay: Int64 { 10_000 }

    /// Makes a verifier, which writes nothing but its scratch tables.
    ///
    /// - Parameters:
    ///   - log: the log.
    ///   - tables: the tables to judge, prepared.
    ///   - history: the log's history.
    ///   - schemas: its schema versions.
    ///   - configuration: how large ordering's steps are.
    ///   - logger: says what stops ordering.
    ///   - progress: told how many messages were read, each time; see ``work(on:)``.
    ///   - withScratch: makes the tables of each replay.
    package init(
        log: Log, tables: Tables, history: History, schemas: SchemaHistory,
        configuration: OrderingConfiguration = OrderingConfiguration(), logger: Logger,
        progress: @escaping @Sendable (Int) -> Void = { _ in }, withScratch: @escaping WithScratch
    ) {
        self.log = log
        self.tables = tables
        self.history = history
        self.schemas = schemas
        self.configuration = configuration
        self.logger = logger
        self.progress = progress
        self.withScratch = withScratch
    }

    /// How many messages will be read, about.
    package func work(on partitions: [Int]) async throws -> Int {
        var count: Int64 = 0
        for partition in partitions {
            let changes = try await log.range(of: TopicPartition(.changes, partition))
            count += changes.end - changes.start
        }
        return Int(count)
    }

    /// Compares some partitions; a report for each.
    package func run(_ partitions: [Int]) async throws -> [Report] {
        try await forEachPartition(partitions) { try await verify($0) }
    }

    // MARK: A partition

    private func verify(_ partition: Int) async throws -> Report {
        let changes = try await log.range(of: TopicPartition(.changes, partition))
        guard changes.start == 0 else {
            var report = Report(partition: partition)
            report.add(
                "changes", .unknown("begins at offset \(changes.start): restore the log, which must hold it whole"))
            return report
        }
        return try await withScratch(partition) { scratch in try await verify(partition, scratch) }
    }

    private func verify(_ partition: Int, _ scratch: Scratch) async throws -> Report {
        var report = Report(partition: partition)
        let replay = try await PartitionReplay(
            partition, log: log, into: scratch, history: history, schemas: schemas, configuration: configuration,
            logger: logger, progress: progress)
        do {
            try await follow(partition, replay)
            report = try await tables.withSnapshot(of: partition) { moment in try await judge(moment, replay) }
            let end = try await PartitionReplay<Log, Scratch>.publishedEnd(of: partition, in: log)
            try await replay.published.extend()
            try await replay.advance(to: end)
            // Of results that came meanwhile, too, there are messages.
            let changes = try await log.range(of: TopicPartition(.changes, partition))
            let made = try await replay.position().state.nextOffset
            try await replay.published.finish(at: made, changesEnd: changes.end)
            report.add("ordered", await replay.published.finding)
        } catch let error as OrderingError {
            report.add("changes", .unknown("\(error)"))
        }
        return report
    }

    /// Comes close behind the tables, or as close as they let.
    private func follow(_ partition: Int, _ replay: PartitionReplay<Log, Scratch>) async throws {
        var before = Int64.max
        while true {
            let place = try await tables.position(of: partition)?.state.nextOffset ?? 0
            let left = place - (try await replay.position().state.nextOffset)
            let changes = try await log.range(of: TopicPartition(.changes, partition))
            guard left > Self.shortWay, left < before, place <= changes.end else { return }
            before = left
            try await replay.published.extend()
            try await replay.advance(to: place)
        }
    }

    /// Compares the tables of a moment.
    private func judge(_ moment: Tables.Snapshot, _ replay: PartitionReplay<Log, Scratch>) async throws -> Report {
        let partition = replay.partition
        var report = Report(partition: partition)
        let position: StoredPosition
        do throws(RecordStoreError) {
            position = try await moment.position(of: partition) ?? StoredPosition()
        } catch {
            report.add("tables", .unreadable(error))
            return report
        }
        let changes = try await log.range(of: TopicPartition(.changes, partition))
        if let finding = PositionComparison.beyond(changes, position) {
            report.add("tables", finding)
            return report
        }
        guard position.state.nextOffset >= (try await replay.position().state.nextOffset) else {
            report.add(
                "tables", .unknown("they went back while they were read, as after a server's failure: verify again"))
            return report
        }
        // What the tables hold was published before (I5).
        try await replay.published.extend()
        try await replay.advance(to: position.state.nextOffset)
        try await replay.compare(position, of: moment, &report)
        return report
    }
}
