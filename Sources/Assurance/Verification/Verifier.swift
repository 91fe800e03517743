import ChangeLog
import FanOut
import Observability
import Ordering
import RecordStore
import SyncModel

/// Recomputes from the log what the pipeline wrote, and compares: `changes`, `ordered`, the tables and the streams (I4).
///
/// Tables and streams may lag: each is compared at its own position. Memory holds one chunk at a time; the replay's tables
/// are in a store of their own.
package struct Verifier<Log: ChangeLog, Tables: RecordStore, Scratch: RecordStore>: Sendable {
    private let source: ReplaySource<Log>
    private let tables: Tables?
    private let scratch: Scratch
    private let streams: String

    /// Nothing else may write log, tables or streams during the verification.
    ///
    /// - Parameters:
    ///   - tables: the tables to verify, prepared; `nil` where there are none.
    ///   - scratch: empty tables for the replay, prepared.
    ///   - streams: the folder of the stream files.
    package init(
        _ source: ReplaySource<Log>, tables: Tables?, scratch: Scratch, streams: String
    ) {
        self.source = source
        self.tables = tables
        self.scratch = scratch
        self.streams = streams
    }

    /// About how many records will be read.
    package var work: Int {
        get async throws {
            var count: Int64 = 0
            for partition in source.partitions {
                let changes = try await source.range(.changes, partition)
                let uploads = try await source.range(.uploads, partition)
                count += 2 * (changes.end - changes.start) + uploads.end - uploads.start
            }
            return Int(count)
        }
    }

    /// Compares everything; returns a report for all partitions together, and one for each.
    package func run() async throws -> [Report] {
        var whole = Report(partition: nil)
        whole.add("changes", try await ChangesComparison(source: source).run())
        return [whole] + (try await forEachPartition(source.partitions) { try await verify($0) })
    }

    // MARK: A partition

    /// What is compared at a position.
    private enum Subject {
        case tables(StoredPosition)
        case stream(StreamAudit)
    }

    private func verify(_ partition: Int) async throws -> Report {
        var report = Report(partition: partition)
        let changes = try await source.range(.changes, partition)
        guard changes.start == 0 else {
            report.add(
                "changes", .unknown("starts at offset \(changes.start): restore the log, which must hold it whole"))
            return report
        }
        var subjects: [(end: Int64, subject: Subject)] = []
        if let subject = try await tablesToCompare(partition, changes, &report) { subjects.append(subject) }
        let stream = try await openStream(partition, &report)
        if let stream, let subject = streamToCompare(stream, changes, &report) { subjects.append(subject) }
        let result: Result<Report, any Error>
        do {
            result = .success(try await compare(subjects, partition, changes, report))
        } catch {
            result = .failure(error)
        }
        try await stream?.close()
        return try result.get()
    }

    /// Replays from one subject's position to the next.
    private func compare(
        _ subjects: [(end: Int64, subject: Subject)], _ partition: Int, _ changes: LogRange, _ before: Report
    ) async throws -> Report {
        var report = before
        let replay = try await PartitionReplay(partition, source, into: scratch)
        var end = try await PartitionReplay<Log, Scratch>.publishedEnd(of: partition, in: source.log)
        do {
            for (position, subject) in subjects.sorted(by: { $0.end < $1.end }) {
                try await replay.advance(to: position)
                end = max(end, position)
                switch subject {
                case .tables(let position):
                    if let tables { try await replay.compare(position, of: tables, &report) }
                case .stream(let stream):
                    let ordinal = try await replay.position().state.schemaOrdinal
                    let comparison = StreamComparison(
                        partition: partition, schemas: source.schemas, expected: scratch, stream: stream)
                    report.add("stream", try await comparison.run(ordinal: ordinal))
                }
            }
            try await replay.advance(to: end)
            try await replay.published.finish(at: end, changesEnd: changes.end)
            report.add("ordered", await replay.published.finding)
        } catch let error as OrderingError {
            report.add("changes", .unknown("\(error)"))
        }
        return report
    }

    // MARK: Tables

    private func tablesToCompare(
        _ partition: Int, _ changes: LogRange, _ report: inout Report
    ) async throws -> (Int64, Subject)? {
        guard let tables else {
            report.add("tables", .unknown("there are none; the next start or weir replay rebuilds them"))
            return nil
        }
        do throws(RecordStoreError) {
            let position = try await tables.position(of: partition) ?? StoredPosition()
            if let difference = PositionComparison.beyond(changes, position) {
                report.add("tables", difference)
                return nil
            }
            return (position.state.nextOffset, .tables(position))
        } catch {
            report.add("tables", .unreadable(error))
            return nil
        }
    }

    // MARK: Streams

    private func openStream(_ partition: Int, _ report: inout Report) async throws -> StreamAudit? {
        do {
            return try await StreamAudit.open(directory: streams, partition: partition, epoch: source.history.epoch)
        } catch let failure as StreamAudit.Failure {
            if failure.isMissing {
                report.add("stream", .equal("there is none; the next start builds it"))
            } else {
                let difference = Difference("the file", expected: "whole", found: failure.description)
                report.add("stream", .different(difference, count: 1))
            }
            return nil
        }
    }

    private func streamToCompare(
        _ stream: StreamAudit, _ changes: LogRange, _ report: inout Report
    ) -> (Int64, Subject)? {
        let end = stream.changesOffset + 1
        guard end <= changes.end else {
            let difference = Difference(
                "the stream's offset in changes", expected: "below \(changes.end)", found: "\(end - 1)")
            report.add("stream", .different(difference, count: 1))
            return nil
        }
        guard stream.isComplete else {
            report.add(
                "stream",
                .unknown(
                    "it has a part of the result of offset \(end - 1), as after a crash: start the process, stop it, and "
                        + "verify again"))
            return nil
        }
        return (end, .stream(stream))
    }
}
