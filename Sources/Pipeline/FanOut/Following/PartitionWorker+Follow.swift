import AsyncPrimitives
import ChangeLog
import PartitionSupervision
import SyncModel
import SyncWire

extension PartitionWorker {
    /// Applies `ordered` from the stream's position on, through failures that may pass.
    ///
    /// - Returns: why it cannot continue; `nil` when the task was cancelled.
    func follow() async throws -> ServedPartition.Interruption? {
        var mustReopen = false
        return try await supervisor.run { progress in
            if mustReopen { return .reopen }
            do {
                try await applyRecords(progress)
            } catch {
                if Task.isCancelled { throw error }
                switch error {
                case StreamFailure.missing(let reason), StreamFailure.damaged(let reason): return .damage(reason)
                // Thrown, so that the file is reopened after the supervisor's pause: its other writer may still run.
                case StreamFailure.foreignWriter: mustReopen = true
                case let failure as ChangeLogError:
                    if case .outOfRange(let range) = failure.code {
                        return .damage(
                            "the next offset is \(partition.nextOffset), and ordered holds \(range.start) to \(range.end)"
                        )
                    }
                default: break
                }
                throw error
            }
        }
    }

    /// Applies what one reader of the log returns, until something fails.
    private func applyRecords(_ progress: PartitionProgress) async throws -> Never {
        let reader = try await openReader()
        do {
            while true {
                let records = try await reader.next(maximumBytes: configuration.batchBytes)
                try await apply(records)
                progress.made()
            }
        } catch {
            await reader.close()
            throw error
        }
    }

    /// A reader after the record that was applied last.
    ///
    /// After a crash, ordering appends its newest results once more, from one of them on. So nothing is missing between the
    /// stream and the reader if the record before the next offset is the one applied last, which the log is asked to verify.
    private func openReader() async throws -> Log.Reader {
        let next = partition.nextOffset
        let reader = try await log.reader(of: ordered, from: next) { [writer] in try await writer.holds($0) }
        guard let reader else {
            throw StreamFailure.damaged(
                "the record before offset \(next) of ordered is not the one that was applied last")
        }
        return reader
    }

    private func apply(_ records: [LogRecord]) async throws {
        var decoded: [OrderedRecord] = []
        decoded.reserveCapacity(records.count)
        var fault: LogFault?
        decoding: for record in records {
            do throws(WireError) {
                let piece = try OrderedPiece(decoding: record.value)
                decoded.append(OrderedRecord(offset: record.offset, time: record.time, piece: piece))
            } catch {
                fault = .invalidRecord("offset \(record.offset): \(error)")
                break decoding
            }
        }
        let wasReady = partition.isReady
        let (applied, isLogFull) = try await writer.apply(decoded, schemas: context.schemas.now)
        if !applied.pieces.isEmpty, let newest = decoded.last {
            report(
                .applied(
                    records: applied.pieces.count, rows: applied.rowCount, nextOffset: applied.position.nextOffset,
                    logTime: newest.time))
            reportPassed(applied.pieces, applied.position)
        }
        // Also after records that repeat earlier results.
        if !wasReady, partition.isReady { reportReady() }
        if isLogFull { try await readers.withoutReads(of: partition.number) { try await writer.truncateLog() } }
        // A fault found when applying has the lower offset.
        if let fault = applied.fault ?? fault { throw fault }
    }
}
