import AsyncPrimitives
import ChangeLog
import RecordStore
import SyncModel
import ThreadExecutor

/// Runs one partition: opens or rebuilds its file, follows `ordered`, and begins again when the file is damaged.
struct PartitionWorker<Log: ChangeLog, Store: RecordStore>: Sendable {
    let partition: ServedPartition
    let identity: StreamFile.Identity
    let writer: FileWriter
    let readers: ReaderPool
    let log: Log
    let store: Store
    let schemas: @Sendable () -> SchemaHistory
    let schemaWait: SchemaWait
    let configuration: FanOutConfiguration
    let clock: any Clock<Duration>
    let observer: any FanOutObserver
    let partitionMetrics: FanOutMetrics.Partition

    /// Runs until the partition is stopped or the task is cancelled.
    func run() async {
        var start = Start.open(configuration.check)
        var backoff = Backoff(RetryPolicy(delays: configuration.retryDelay, clock: clock))
        var pause: Duration?
        var damagedAt: Int64?
        while let interruption = partition.beginServing() {
            switch await serve(from: start, after: pause.take(), until: interruption) {
            case .stop: partition.stop()
            case .damage(let reason):
                record(.damaged(reason: reason))
                partition.markNotReady("the stream is being rebuilt: \(reason)")
                start = .rebuild
                // One that is damaged again where it was before may be so however often it is made.
                if damagedAt == partition.nextOffset { pause = backoff.next() } else { backoff.reset() }
                damagedAt = partition.nextOffset
            case .reopen:
                partition.markNotReady("the stream is being opened again")
                partitionMetrics.stopServing()
                // Its content was checked when it was opened first.
                start = .open(.heads)
            }
        }
    }

    /// Closes the file and ends the thread, once nobody reads any more: what is in the log of pages then goes into the file.
    func close() async {
        do {
            try await writer.close()
            record(.stopped(problem: nil))
        } catch {
            record(.stopped(problem: "\(error)"))
        }
        await writer.thread.close()
    }

    /// How a round of serving begins.
    enum Start: Sendable, Hashable {
        /// With the file that there is.
        case open(FanOutConfiguration.Check)
        /// With a new one.
        case rebuild
    }

    func record(_ event: FanOutEvent) {
        partitionMetrics.record(event)
        observer.record(event, partition: partition.number)
    }

    /// Tells how far the callers' own uploads have come: their own parts go through the partition of the same number.
    func notePassed(_ position: StreamPosition) {
        guard let progress = position.uploads[partition.number] else { return }
        observer.passed(UploadReference(partition: partition.number, offset: progress.offset))
    }

    /// Serves until something interrupts.
    private func serve(
        from start: Start, after pause: Duration?, until interruption: Promise<ServedPartition.Interruption>
    ) async -> ServedPartition.Interruption {
        await withTaskGroup(of: ServedPartition.Interruption.self) { group in
            group.addTask {
                do {
                    if let pause { try await clock.sleep(for: pause) }
                    try await openFile(start)
                    return try await follow()
                } catch {
                    // Only cancellation gets here: by the other task's end, or by the caller of `run`.
                    return .stop
                }
            }
            group.addTask { await interruption.value(cancelled: .stop) }
            let first = await group.next() ?? .stop
            group.cancelAll()
            return first
        }
    }

    /// Opens the file, or makes it anew, as often as it takes.
    private func openFile(_ start: Start) async throws(CancellationError) {
        var mustRebuild = start == .rebuild
        var backoff = Backoff(RetryPolicy(delays: configuration.retryDelay, clock: clock))
        while true {
            do {
                if mustRebuild { record(.rebuilt(rows: try await rebuild())) }
                // What was made just now needs no full check.
                let check: FanOutConfiguration.Check =
                    if case .open(let check) = start, !mustRebuild { check } else { .heads }
                let opened = try await writer.open(check: check)
                partition.markReady(opened.owners, position: opened.position)
                record(.ready(owners: opened.owners.count, nextOffset: opened.position.nextOffset))
                notePassed(opened.position)
                return
            } catch let failure as StreamFailure where failure.needsRebuild && !mustRebuild {
                record(.damaged(reason: failure.description))
                partition.markNotReady("the stream is being rebuilt: \(failure)")
                mustRebuild = true
            } catch {
                if Task.isCancelled { throw CancellationError() }
                try await pause(&backoff, error)
            }
        }
    }

    /// Waits before another attempt: for a schema version that is lacking, else for a while.
    func pause(_ backoff: inout Backoff, _ reason: any Error) async throws(CancellationError) {
        if let isKnown = (reason as? LogFault)?.schemaAwaited {
            record(.waiting(reason: "\(reason)"))
            do {
                try await schemaWait(isKnown)
            } catch {
                throw CancellationError()
            }
            return partitionMetrics.resumed()
        }
        try await backoff.pause { record(.retrying(reason: "\(reason)", after: $0)) }
    }
}
