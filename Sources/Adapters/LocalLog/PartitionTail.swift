import AsyncPrimitives
import ChangeLog

/// What memory knows of a partition: its range, its newest records, and the readers that wait for more.
///
/// The writer adds records after they are durable, so a reader never sees one that a crash could take back.
package final class PartitionTail: Sendable {
    /// What a reader finds at an offset.
    enum Finding {
        /// The records, from memory.
        case records([LogRecord])
        /// They are older than what memory holds.
        case older(end: Int64)
        /// Nothing yet.
        case nothing
        /// The partition does not hold the offset.
        case outOfRange(LogRange)
        /// The log is closed.
        case closed
    }

    private struct State {
        var range: LogRange
        var newest: RecordWindow
        var isClosed = false
    }

    private let state: AwaitableState<State>

    /// What a partition holds, and those of its newest records that are known.
    package init(range: LogRange, records: [LogRecord] = [], maximumBytes: Int) {
        state = AwaitableState(State(range: range, newest: RecordWindow(records, maximumBytes: maximumBytes)))
    }

    /// The offsets that the partition holds.
    package var range: LogRange { state.read { $0.range } }

    /// The newest records, as far as memory has them.
    package var newest: [LogRecord] { state.read { Array($0.newest.all) } }

    /// The records from an offset on, as far as memory has them.
    package func newest(from offset: Int64) -> [LogRecord] {
        state.read { $0.newest.records(from: offset, maximumBytes: .max) ?? [] }
    }

    /// Adds records that are durable now and wakes the readers.
    package func append(_ records: [LogRecord]) {
        guard let last = records.last else { return }
        state.update { state in
            state.range = LogRange(start: state.range.start, end: last.offset + 1)
            state.newest.append(records)
        }
    }

    /// Sets the oldest offset that readers may ask for.
    package func setStart(_ start: Int64) {
        state.update { state in
            state.range = LogRange(start: start, end: state.range.end)
            state.newest.drop(before: start)
        }
    }

    /// Lets every reader, waiting or not, find that the log is closed.
    package func close() { state.update { $0.isClosed = true } }

    /// What there is at an offset.
    func find(_ offset: Int64, maximumBytes: Int) -> Finding {
        state.read { state in
            if state.isClosed { return .closed }
            guard offset >= state.range.start, offset <= state.range.end else { return .outOfRange(state.range) }
            if offset == state.range.end { return .nothing }
            guard let records = state.newest.records(from: offset, maximumBytes: maximumBytes) else {
                return .older(end: state.range.end)
            }
            return .records(records)
        }
    }

    /// Suspends until there is more than up to an offset, or the log or the reader is closed.
    func wait(past offset: Int64, _ reader: ReaderState) async throws(CancellationError) {
        try await state.wait { $0.isClosed || $0.range.end > offset || reader.isClosed }
    }

    /// Ends the waits of readers that were closed.
    func wakeReaders() { state.update { _ in } }
}
