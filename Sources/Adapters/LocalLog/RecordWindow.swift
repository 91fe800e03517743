import ChangeLog

/// The newest records of a partition, without gaps between their offsets, up to a size in bytes.
struct RecordWindow {
    /// The records, behind `head` places of records that were dropped.
    private var records: [LogRecord] = []
    private var head = 0
    private var bytes = 0
    private let maximumBytes: Int

    init(_ records: [LogRecord] = [], maximumBytes: Int) {
        self.maximumBytes = maximumBytes
        append(records)
    }

    /// The oldest record's offset.
    var start: Int64? { head < records.count ? records[head].offset : nil }

    /// All records.
    var all: ArraySlice<LogRecord> { records[head...] }

    /// Adds records and drops the oldest while all are larger than the bound.
    mutating func append(_ newer: [LogRecord]) {
        records += newer
        bytes += newer.reduce(0) { $0 + $1.size }
        while bytes > maximumBytes, head < records.count { dropFirst() }
        compact()
    }

    /// Drops the records before an offset.
    mutating func drop(before offset: Int64) {
        while let start, start < offset { dropFirst() }
        compact()
    }

    /// The records from an offset on, up to the one that reaches a size; `nil` where the window starts later.
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
        // Gives the bytes back now; the place goes with the next compaction.
        records[head] = LogRecord(offset: 0, time: 0, key: [], value: [])
        head += 1
    }

    /// Moves the rest down once half of the places are empty, which is constant work for each record dropped.
    private mutating func compact() {
        guard head * 2 >= records.count else { return }
        records.removeFirst(head)
        head = 0
    }
}
