import ChangeLog
import FanOut
import Observability
import Ordering
import RecordStore
import SyncModel

/// Recomputes from the log what the pipeline made, and compares: `changes`, `ordered`, the tables and the streams (I4).
///
/// Tables and streams may lag: each is compared with what a replay makes up to the message where it stands. Memory holds
/// pieces; the replay's tables lie in a store of their own.
package struct Verifier<Log: ChangeLog, Tables: RecordStore, Scratch: RecordStore>: Sendable {
    private let log: Log
    private let tables: Tables?
    private let scratch: Scratch
    private let streams: String
    private let history: History
    private let schemas: SchemaHistory
    private let limits: SyncLimits
    private let configuration: OrderingConfiguration
    private let logger: Logger
    private let progress: @Sendable (Int) -> Void

    /// Makes a verifier; nothing else writes any of this until it has ended.
    ///
    /// - Parameters:
    ///   - log: the log.
    ///   - tables: the tables to judge, prepared; `nil` where there are none.
    ///   - scratch: empty tables for the replay, prepared.
    ///   - streams: the folder of the stream files.
    ///   - history: the log's history.
    ///   - schemas: its schema versions.
    ///   - limits: those that ingest works with.
    ///   - configuration: how large ordering's steps are.
    ///   - logger: says what stops ordering.
    ///   - progress: told how many messages were read, each time; see ``work``.
    package init(
        log: Log, tables: Tables?, scratch: Scratch, streams: String, history: History, schemas: SchemaHistory,
        limits: SyncLimits, configuration: OrderingConfiguration = OrderingConfiguration(), logger: Logger,
        progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.log = log
        self.tables = tables
        self.scratch = scratch
        self.streams = streams
        self.history = history
        self.schemas = schemas
        self.limits = limits
        self.configuration = configuration
        self.logger = logger
        self.progress = progress
    }

    /// How many messages will be read, about.
    package var work: Int {
        get async throws {
            var count: Int64 = 0
            for partition in 0..<history.partitions {
                let changes = try await log.range(of: TopicPartition(.changes, partition))
                let uploads = try await log.range(of: TopicPartition(.uploads, partition))
                count += 2 * (changes.end - changes.start) + uploads.end - uploads.start
            }
            return Int(count)
        }
    }

    /// Compares everything.
    ///
    /// - Returns: one report on what spans all partitions, and one for each.
    package func run() async throws -> [Report] {
        var whole = Report(partition: nil)
        let changes = ChangesComparison(
            log: log, history: history, schemas: schemas, limits: limits, progress: progress)
        whole.add("changes", try await changes.run())
        return [whole] + (try await forEachPartition(Array(0..<history.partitions)) { try await verify($0) })
    }

    // MARK: A partition

    /// What is to be judged at a message.
    private enum Subject {
        case tables(StoredPosition)
        case stream(StreamAudit)
    }

    private func verify(_ partition: Int) async throws -> Report {
        var report = Report(partition: partition)
        let changes = try await log.range(of: TopicPartition(.changes, partition))
        guard changes.start == 0 else {
            report.add(
                "changes", .unknown("begins at offset \(changes.start): restore the log, which must hold it whole"))
            return report
        }
        var subjects: [(end: Int64, subject: Subject)] = []
        if let subject = try await tablesToJudge(partition, changes, &report) { subjects.append(subject) }
        let stream = try await openStream(partition, &report)
        if let stream, let subject = streamToJudge(stream, changes, &report) { subjects.append(subject) }
        let result: Result<Report, any Error>
        do {
            result = .success(try await judge(subjects, partition, changes, report))
        } catch {
            result = .failure(error)
        }
        try await stream?.close()
        return try result.get()
    }

    /// Replays from one subject's message to the next.
    private func judge(
        _ subjects: [(end: Int64, subject: Subject)], _ partition: Int, _ changes: LogRange, _ before: Report
    ) async throws -> Report {
        var report = before
        let replay = try await PartitionReplay(
            partition, log: log, into: scratch, history: history, schemas: schemas, configuration: configuration,
            logger: logger, progress: progress)
        var end = try await PartitionReplay<Log, Scratch>.publishedEnd(of: partition, in: log)
        do {
            for (place, subject) in subjects.sorted(by: { $0.end < $1.end }) {
                try await replay.advance(to: place)
                end = max(end, place)
                switch subject {
                case .tables(let position):
                    if let tables { try await replay.compare(position, of: tables, &report) }
                case .stream(let stream):
                    let ordinal = try await replay.position().state.schemaOrdinal
                    let comparison = StreamComparison(
                        partition: partition, schemas: schemas, expected: scratch, stream: stream)
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

    private func tablesToJudge(
        _ partition: Int, _ changes: LogRange, _ report: inout Report
    ) async throws -> (Int64, Subject)? {
        guard let tables else {
            report.add("tables", .unknown("there are none; they are made again at the next start, or by weir replay"))
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
            return try await StreamAudit.open(directory: streams, partition: partition, epoch: history.epoch)
        } catch let failure as StreamAudit.Failure {
            if failure.isMissing {
                report.add("stream", .equal("there is none; it is made at the next start"))
            } else {
                let difference = Difference("the file", expected: "whole", found: failure.description)
                report.add("stream", .different(difference, count: 1))
            }
            return nil
        }
    }

    private func streamToJudge(
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
                    "it holds the result of offset \(end - 1) in part, as after a crash: start the process, stop it, and "
                        + "verify again"))
            return nil
        }
        return (end, .stream(stream))
    }
}
