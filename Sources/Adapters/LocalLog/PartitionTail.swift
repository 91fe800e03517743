import AsyncPrimitives
import ChangeLog

/// A partition in memory: its range, its newest records, and the readers that wait for more.
///
/// The writer adds records after they are durable, so a reader never sees one that a crash could lose.
package final class PartitionTail: Sendable {
    enum Lookup {
        case records([LogRecord])
        /// The records are only in the log's storage.
        case older(end: Int64)
        /// The offset is the partition's end.
        case nothing
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

    package init(range: LogRange, records: [LogRecord] = [], maximumBytes: Int) {
        state = AwaitableState(State(range: range, newest: RecordWindow(records, maximumBytes: maximumBytes)))
    }

    package var range: LogRange { state.read { $0.range } }

    /// The records in memory.
    package var newest: [LogRecord] { state.read { Array($0.newest.all) } }

    /// The records in memory from an offset on.
    package func newest(from offset: Int64) -> [LogRecord] {
        state.read { $0.newest.records(from: offset, maximumBytes: .max) ?? [] }
    }

    /// Adds durable records and wakes the readers.
    package func append(_ records: [LogRecord]) {
        guard let last = records.last else { return }
        state.update { state in
            state.range = LogRange(start: state.range.start, end: last.offset + 1)
            state.newest.append(records)
        }
    }

    /// Sets the oldest offset that readers may read.
    package func setStart(_ start: Int64) {
        state.update { state in
            state.range = LogRange(start: start, end: state.range.end)
            state.newest.drop(before: start)
        }
    }

    /// Makes every read fail as closed.
    package func close() { state.update { $0.isClosed = true } }

    func find(_ offset: Int64, maximumBytes: Int) -> Lookup {
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

    /// Suspends until the partition's end exceeds an offset, or the log or the reader is closed.
    func wait(past offset: Int64, _ reader: ReaderState) async throws(CancellationError) {
        try await state.wait { $0.isClosed || $0.range.end > offset || reader.isClosed }
    }

    /// Resumes the waits of readers that were closed.
    func wakeReaders() { state.update { _ in } }
}

/// The newest records of a partition, without gaps between their offsets, up to a size in bytes.
struct RecordWindow {
    /// Empty before `head`, where records were dropped.
    private var records: [LogRecord] = []
    private var head = 0
    private var bytes = 0
    private let maximumBytes: Int

    init(_ records: [LogRecord] = [], maximumBytes: Int) {
        self.maximumBytes = maximumBytes
        append(records)
    }

    /// The offset of the oldest record.
    var start: Int64? { head < records.count ? records[head].offset : nil }

    var all: ArraySlice<LogRecord> { records[head...] }

    /// Adds records, and drops the oldest above the size limit.
    mutating func append(_ newer: [LogRecord]) {
        records += newer
        bytes += newer.reduce(0) { $0 + $1.size }
        while bytes > maximumBytes, head < records.count { dropFirst() }
        compact()
    }

    mutating func drop(before offset: Int64) {
        while let start, start < offset { dropFirst() }
        compact()
    }

    /// The records from an offset on, up to the one that reaches a size; `nil` if the window starts later.
    func records(from offset: Int64, maximumBytes: Int) -> [LogRecord]? {
        guard let start, start <= offset, offset <= records[records.count - 1].offset else { return nil }
        let first = head + Int(offset - start)
        var end = first
        var size = 0
        repeat {
            size += records[end].size
            end += 1
        } while end < records.count && size < maximumBytes
        return Array(records[first..<end])
    }

    private mutating func dropFirst() {
        bytes -= records[head].size
        // Frees the bytes now, and the array element at the next compaction.
        records[head] = LogRecord(offset: 0, time: 0, key: [], value: [])
        head += 1
    }

    /// Removes the empty elements once they are half of the array: amortized constant work for each dropped record.
    private mutating func compact() {
        guard head * 2 >= records.count else { return }
        records.removeFirst(head)
        head = 0
    }
}
