import AsyncPrimitives
import ChangeLog
import FanOutLink
import Metrics
import PartitionSupervision
import RecordStore
import SyncModel
import ThreadExecutor

/// Runs one partition: opens or rebuilds its file, follows `ordered`, and starts again when the file is damaged.
struct PartitionWorker<Log: ChangeLog, Store: RecordStore>: Sendable {
    let context: StageContext<Log>
    let partition: ServedPartition
    let identity: StreamFile.Identity
    let writer: FileWriter
    let readers: ReaderPool
    let store: Store
    let configuration: FanOutConfiguration
    let observer: any FanOutObserver
    let partitionMetrics: FanOutMetrics.Partition

    var log: Log { context.log }
    var ordered: TopicPartition { TopicPartition(.ordered, partition.number) }

    /// Runs until the partition is stopped or the task is cancelled.
    func run() async {
        var start = Start.open(configuration.check)
        var backoff = Backoff(retries)
        var pause: Duration?
        var damagedAt: Int64?
        while let interruption = partition.beginServing() {
            switch await serve(from: start, after: pause.take(), until: interruption) {
            case .stop: partition.stop()
            case .damage(let reason):
                report(.damaged(reason: reason))
                partition.markNotReady("the stream is being rebuilt: \(reason)")
                start = .rebuild
                // A file that is damaged again at the same offset may be damaged after every rebuild.
                if damagedAt == partition.nextOffset { pause = backoff.next() } else { backoff.reset() }
                damagedAt = partition.nextOffset
            case .reopen:
                partition.markNotReady("the stream is being opened again")
                report(.reopening)
                // Its content was checked at the first opening.
                start = .open(.heads)
            }
        }
    }

    /// Closes the file and ends the thread, after the last reader: SQLite then moves its write-ahead log into the file.
    func close() async {
        do {
            try await writer.close()
            report(.stopped(problem: nil))
        } catch {
            report(.stopped(problem: "\(error)"))
        }
        await writer.thread.close()
    }

    /// How serving starts.
    enum Start: Sendable, Hashable {
        /// With the existing file.
        case open(FanOutConfiguration.Check)
        /// With a new file.
        case rebuild
    }

    func report(_ event: FanOutEvent) {
        partitionMetrics.record(event)
        observer.record(event, partition: partition.number)
    }

    /// Reports the parts that the pieces complete, how large the rows are that they touched, and where else uploads of this partition
    /// have parts.
    ///
    /// An owner's records are in the partition of the same number of every topic.
    func reportPassed(_ pieces: [OrderedPiece], _ position: StreamPosition) {
        let partitioning = Partitioning(count: context.history.partitions)
        let large = pieces.filter { $0.isLast && $0.touchedBytes >= StreamReport.LargePart.leastBytes }.map { piece in
            StreamReport.LargePart(
                source: piece.upload.partition,
                progress: UploadProgress(offset: piece.upload.offset, part: piece.uploadPart), device: piece.device,
                touchedBytes: piece.touchedBytes)
        }
        var report = StreamReport(partition: partition.number, largeParts: large)
        for piece in pieces where piece.isLast {
            report.uploads[piece.upload.partition] = position.uploads[piece.upload.partition]
            guard piece.uploadPart == 0 else { continue }
            for owner in piece.summary?.otherOwners ?? [] {
                let other = partitioning.partition(of: owner)
                if other != partition.number { report.partsElsewhere[other] = piece.upload.offset }
            }
        }
        observer.passed(report)
    }

    /// Serves until something interrupts.
    private func serve(
        from start: Start, after pause: Duration?, until interruption: Promise<ServedPartition.Interruption>
    ) async -> ServedPartition.Interruption {
        await withTaskGroup(of: ServedPartition.Interruption.self) { group in
            group.addTask {
                do {
                    if let pause { try await context.clock.sleep(for: pause) }
                    try await openFile(start)
                    return try await follow() ?? .stop
                } catch {
                    // Cancelled: by the other task's end, or by the caller of `run`.
                    return .stop
                }
            }
            group.addTask { await interruption.value(cancelled: .stop) }
            let first = await group.next() ?? .stop
            group.cancelAll()
            return first
        }
    }

    private var retries: RetryPolicy { RetryPolicy(delays: configuration.retryDelay, clock: context.clock) }

    /// Retries every failure that may pass, and waits for a schema version that is not known; otherwise the partition is paused.
    ///
    /// Pulls continue meanwhile: the file holds what was applied so far.
    var supervisor: PartitionSupervisor {
        PartitionSupervisor(
            "fanout of partition \(partition.number)", retries: retries, schemas: context.schemas,
            failures: context.failures, isReadyWhileRetrying: true, metrics: partitionMetrics.supervision
        ) { failure in
            switch failure {
            case let fault as LogFault:
                // No other fan-out can have got past this record either.
                if partition.serveWithoutCatchingUp() { reportReady() }
                return fault.schemaAwaited.map { isKnown in .awaitSchema { isKnown($0.schemas) } } ?? .pausePartition
            case let error as ChangeLogError where error.code == .corrupt: return .pausePartition
            case let error as RecordStoreError where [.incompatibleTables, .corrupt].contains(error.code):
                return .pausePartition
            default: return .retry
            }
        } report: { event in
            switch event {
            case .retrying(let reason, let pause): report(.retrying(reason: "\(reason)", after: pause))
            case .awaitingSchema(let reason): report(.waiting(reason: "\(reason)"))
            case .paused(let reason): report(.paused(reason: "\(reason)"))
            case .resumed: report(.resumed)
            case .schemaKnown, .stageStopped, .cancelled: break
            }
        }
    }

    func reportReady() { report(.ready(owners: partition.ownerCount, nextOffset: partition.nextOffset)) }

    /// How long the end of `ordered` is asked for after a failure: longer than the election of a leader.
    private static var endLimit: Duration { .seconds(30) }

    /// Where `ordered` ends now; `nil` if the log does not report it in time: then the stream is served as it is.
    ///
    /// A stream that was away for long would else be asked for what other fan-outs have.
    private func endOfOrdered() async throws -> Int64? {
        let failure: ChangeLogError
        do throws(ChangeLogError) { return try await log.range(of: ordered).end } catch { failure = error }
        let end = Promise<Int64?>()
        // Not awaited: a call to a log that does not respond cannot be cancelled.
        let retrying = Task { end.fulfil(await endOfOrdered(after: failure)) }
        defer { retrying.cancel() }
        let found = await end.value(within: Self.endLimit, clock: context.clock, late: nil, cancelled: nil)
        try Task.checkCancellation()
        return found
    }

    /// Retries until the log is closed or the task is cancelled.
    private func endOfOrdered(after failure: ChangeLogError) async -> Int64? {
        var (failure, backoff) = (failure, Backoff(retries))
        while failure.code != .closed {
            partitionMetrics.supervision.retries.add()
            do {
                try await backoff.pause { report(.retrying(reason: "\(failure)", after: $0)) }
            } catch {
                return nil
            }
            do throws(ChangeLogError) { return try await log.range(of: ordered).end } catch { failure = error }
        }
        return nil
    }

    /// Opens the file, or rebuilds it, as often as it takes.
    private func openFile(_ start: Start) async throws {
        var mustRebuild = start == .rebuild
        try await supervisor.run { progress in
            var isNew = false
            while true {
                do {
                    if mustRebuild {
                        report(.rebuilt(rows: try await rebuild()))
                        (mustRebuild, isNew) = (false, true)
                    }
                    // A file that was just built needs no full check.
                    let check: FanOutConfiguration.Check =
                        if case .open(let check) = start, !isNew { check } else { .heads }
                    let opened = try await writer.open(check: check)
                    let end = try await endOfOrdered() ?? opened.position.nextOffset
                    partition.markOpened(opened.owners, position: opened.position, servedFrom: end)
                    if partition.isReady { reportReady() }
                    progress.made()
                    return observer.passed(
                        StreamReport(partition: partition.number, uploads: opened.position.uploads))
                } catch let failure as StreamFailure where failure.needsRebuild {
                    mustRebuild = true
                    // Rebuilt again after the supervisor's pause.
                    if isNew { throw failure }
                    report(.damaged(reason: failure.description))
                    partition.markNotReady("the stream is being rebuilt: \(failure)")
                }
            }
        }
        try Task.checkCancellation()
    }
}
