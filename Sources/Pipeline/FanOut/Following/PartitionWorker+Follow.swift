import AsyncPrimitives
import ChangeLog
import SyncModel
import SyncWire

extension PartitionWorker {
    /// Applies `ordered` from the stream's position on, through failures that may pass.
    ///
    /// - Throws: `CancellationError`.
    /// - Returns: why it cannot go on.
    func follow() async throws(CancellationError) -> ServedPartition.Interruption {
        var backoff = Backoff(RetryPolicy(delays: configuration.retryDelay, clock: clock))
        while true {
            do {
                try await followReader(&backoff)
            } catch {
                if Task.isCancelled { throw CancellationError() }
                switch error {
                case let failure as StreamFailure:
                    switch failure {
                    case .missing, .damaged: return .damage(failure.description)
                    case .foreignWriter:
                        try await pause(&backoff, failure)
                        return .reopen
                    case .unavailable: break
                    }
                case let error as ChangeLogError:
                    if case .outOfRange(let range) = error.code {
                        return .damage(
                            "ordered holds offsets \(range.start) to \(range.end), not \(partition.nextOffset)")
                    }
                default: break
                }
                try await pause(&backoff, error)
            }
        }
    }

    /// Applies what one reader of the log gives, until something fails.
    private func followReader(_ backoff: inout Backoff) async throws {
        let reader = try await reader()
        do {
            while true {
                let records = try await reader.next(maximumBytes: configuration.batchBytes)
                try await apply(records)
                backoff.reset()
            }
        } catch {
            await reader.close()
            throw error
        }
    }

    /// A reader behind the record that was applied last.
    ///
    /// Messages come in order and are repeated from one on to the newest, so nothing is missing behind a record whose message
    /// the stream holds.
    private func reader() async throws -> Log.Reader {
        let place = TopicPartition(.ordered, partition.number)
        let next = partition.nextOffset
        let reader = try await log.reader(of: place, from: next) { [writer] in try await writer.holds($0) }
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
        for record in records {
            do throws(WireError) {
                let piece = try OrderedPiece(decoding: record.value)
                decoded.append(OrderedRecord(offset: record.offset, time: record.time, piece: piece))
            } catch {
                fault = .invalidRecord("offset \(record.offset): \(error)")
                break
            }
        }
        let applied = try await writer.apply(decoded, schemas: schemas())
        if !applied.pieces.isEmpty, let newest = decoded.last {
            record(
                .applied(
                    records: applied.pieces.count, rows: applied.rowCount, nextOffset: applied.position.nextOffset,
                    logTime: newest.time))
            notePassed(applied.position)
        }
        if let fault = applied.fault ?? fault { throw fault }
    }
}
