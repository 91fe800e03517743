import ChangeLog
import Synchronization

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

    private struct Waiting {
        let number: Int
        let reader: ReaderState
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var range: LogRange
        var newest: RecordWindow
        var isClosed = false
        /// One for each reader that waits.
        var waiting: [Waiting] = []
        var lastNumber = 0
    }

    private let state: Mutex<State>

    /// What a partition holds, and those of its newest records that are known.
    package init(range: LogRange, records: [LogRecord] = [], maximumBytes: Int) {
        state = Mutex(State(range: range, newest: RecordWindow(records, maximumBytes: maximumBytes)))
    }

    /// The offsets that the partition holds.
    package var range: LogRange { state.withLock { $0.range } }

    /// The newest records, as far as memory has them.
    package var newest: [LogRecord] { state.withLock { Array($0.newest.all) } }

    /// The records from an offset on, as far as memory has them.
    package func newest(from offset: Int64) -> [LogRecord] {
        state.withLock { $0.newest.records(from: offset, maximumBytes: .max) ?? [] }
    }

    /// Adds records that are durable now and wakes the readers.
    package func append(_ records: [LogRecord]) {
        guard let last = records.last else { return }
        wakeAll { state in
            state.range = LogRange(start: state.range.start, end: last.offset + 1)
            state.newest.append(records)
        }
    }

    /// Sets the oldest offset that readers may ask for.
    package func setStart(_ start: Int64) {
        state.withLock { state in
            state.range = LogRange(start: start, end: state.range.end)
            state.newest.drop(before: start)
        }
    }

    /// Lets every reader, waiting or not, find that the log is closed.
    package func close() { wakeAll { $0.isClosed = true } }

    /// What there is at an offset.
    func find(_ offset: Int64, maximumBytes: Int) -> Finding {
        state.withLock { state in
            if state.isClosed { return .closed }
            guard offset >= state.range.start, offset <= state.range.end else { return .outOfRange(state.range) }
            if offset == state.range.end { return .nothing }
            guard let records = state.newest.records(from: offset, maximumBytes: maximumBytes) else {
                return .older(end: state.range.end)
            }
            return .records(records)
        }
    }

    /// Suspends until there is more than up to an offset, the log or the reader is closed, or the task is cancelled.
    func wait(past offset: Int64, _ reader: ReaderState) async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // All of these are set before those who wait are woken, under the same lock: none is missed.
                    if state.isClosed || state.range.end > offset || reader.isClosed || Task.isCancelled { return true }
                    state.waiting.append(Waiting(number: number, reader: reader, continuation: continuation))
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            wake { $0.number == number }
        }
    }

    /// Ends the waits of a reader that is closed.
    func wake(_ reader: ReaderState) { wake { $0.reader === reader } }

    private func wake(_ isMeant: (Waiting) -> Bool) {
        let woken = state.withLock { state in
            let woken = state.waiting.filter(isMeant)
            state.waiting.removeAll(where: isMeant)
            return woken
        }
        for waiting in woken { waiting.continuation.resume() }
    }

    private func wakeAll(_ change: (inout State) -> Void) {
        let woken = state.withLock { state in
            change(&state)
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiting in woken { waiting.continuation.resume() }
    }
}
