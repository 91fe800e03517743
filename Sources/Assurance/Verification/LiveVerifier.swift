import ChangeLog
import Observability
import Ordering
import RecordStore
import SyncModel

/// Recomputes partitions from the log while the pipeline runs, and compares `ordered` and the tables (I4).
///
/// A replay follows the tables until it is close, reads them in one snapshot, advances to the snapshot's position, and
/// compares. Memory holds one chunk at a time; the replay's tables are in a store of their own.
package struct LiveVerifier<Log: ChangeLog, Tables: SnapshotReads, Scratch: RecordStore>: Sendable {
    /// Runs a body with empty, prepared tables for a partition's replay, and removes them afterwards.
    package typealias WithScratch =
        @Sendable (_ partition: Int, _ body: @Sendable (Scratch) async throws -> Report) async throws -> Report

    private let source: ReplaySource<Log>
    private let tables: Tables
    private let withScratch: WithScratch

    /// Records that a replay may have left when the snapshot is taken: some seconds' work.
    private static var shortDistance: Int64 { 10_000 }
    private static var pause: Duration { .seconds(1) }

    /// - Parameter tables: the tables to verify, prepared.
    package init(_ source: ReplaySource<Log>, tables: Tables, withScratch: @escaping WithScratch) {
        self.source = source
        self.tables = tables
        self.withScratch = withScratch
    }

    /// About how many records will be read.
    package func work(on partitions: [Int]) async throws -> Int {
        var count: Int64 = 0
        for partition in partitions {
            let changes = try await source.range(.changes, partition)
            count += changes.end - changes.start
        }
        return Int(count)
    }

    package func run(_ partitions: [Int]) async throws -> [Report] {
        try await forEachPartition(partitions) { try await verify($0) }
    }

    // MARK: A partition

    private func verify(_ partition: Int) async throws -> Report {
        let changes = try await source.range(.changes, partition)
        guard changes.start == 0 else {
            var report = Report(partition: partition)
            report.add(
                "changes", .unknown("starts at offset \(changes.start): restore the log, which must hold it whole"))
            return report
        }
        return try await withScratch(partition) { scratch in try await verify(partition, scratch) }
    }

    private func verify(_ partition: Int, _ scratch: Scratch) async throws -> Report {
        var report = Report(partition: partition)
        let replay = try await PartitionReplay(partition, source, into: scratch)
        do {
            try await follow(partition, replay)
            report = try await readingAgain {
                try await tables.withSnapshot(of: partition) { snapshot in try await compare(snapshot, replay) }
            }
            let end = try await PartitionReplay<Log, Scratch>.publishedEnd(of: partition, in: source.log)
            try await replay.published.extend()
            try await replay.advance(to: end)
            // The records of results that were published meanwhile are in `changes`.
            let changes = try await source.range(.changes, partition)
            let made = try await replay.position().state.nextOffset
            try await replay.published.finish(at: made, changesEnd: changes.end)
            report.add("ordered", await replay.published.finding)
        } catch let error as OrderingError {
            report.add("changes", .unknown("\(error)"))
        }
        return report
    }

    /// Repeats a read of the tables that gave way to a migration, from a later snapshot.
    private func readingAgain(_ read: () async throws -> Report) async throws -> Report {
        while true {
            do {
                return try await read()
            } catch let error as RecordStoreError where error.code == .givesWay {
                try await Task.sleep(for: Self.pause)
            }
        }
    }

    /// Advances until the replay is close behind the tables, or no longer gets closer.
    private func follow(_ partition: Int, _ replay: PartitionReplay<Log, Scratch>) async throws {
        var before = Int64.max
        while true {
            let offset = try await tables.position(of: partition)?.state.nextOffset ?? 0
            let left = offset - (try await replay.position().state.nextOffset)
            let changes = try await source.range(.changes, partition)
            guard left > Self.shortDistance, left < before, offset <= changes.end else { return }
            before = left
            try await replay.published.extend()
            try await replay.advance(to: offset)
        }
    }

    private func compare(_ snapshot: Tables.Snapshot, _ replay: PartitionReplay<Log, Scratch>) async throws -> Report {
        let partition = replay.partition
        var report = Report(partition: partition)
        let position: StoredPosition
        do throws(RecordStoreError) {
            position = try await snapshot.position(of: partition) ?? StoredPosition()
        } catch {
            report.add("tables", .unreadable(error))
            return report
        }
        let changes = try await source.range(.changes, partition)
        if let finding = PositionComparison.beyond(changes, position) {
            report.add("tables", finding)
            return report
        }
        guard position.state.nextOffset >= (try await replay.position().state.nextOffset) else {
            report.add(
                "tables", .unknown("their position went back while they were read, as after a failover: verify again"))
            return report
        }
        // What the tables have was published before (I5).
        try await replay.published.extend()
        try await replay.advance(to: position.state.nextOffset)
        try await replay.compare(position, of: snapshot, &report)
        return report
    }
}
