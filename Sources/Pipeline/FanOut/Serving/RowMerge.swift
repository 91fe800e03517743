import SQLite
import SyncModel

/// Merges the missing rows of an owner by timeStamp.
///
/// Devices outside the index by time, and named ones, have a search each. The rows of all others are found by one scan of
/// that index. So a page costs the rows read and a bounded number of searches, whatever the number of devices.
///
/// The first devices have a cursor each. The others share one, which searches again for each run of rows of one
/// device.
struct RowMerge {
    struct Row {
        /// The creating device.
        let device: Int64
        let timeStamp: TimeStamp
        let cursor: RowCursor
    }

    /// How many entries of the index a step reads past rows that the device has: some milliseconds.
    static let stepEntries = 10_000

    /// `nil` at the end, or when ``suspendedAt`` is set.
    private(set) var current: Row?
    /// The timeStamp up to which all rows were passed when the scan has read as much as one step may; `nil` unless the
    /// merge stopped there.
    private(set) var suspendedAt: TimeStamp?

    /// The source of ``current``.
    private var currentSource = 0
    private let plan: PullPlan
    private let cursors: CursorSet
    /// The next row of every other source; the scan's number follows those of the sources.
    private var waiting = SourceHeap()
    /// Where the scan stopped before it found its next row.
    private var scanStoppedAt: TimeStamp?
    private var entriesLeft = Self.stepEntries

    init(_ plan: PullPlan, _ cursors: CursorSet) throws {
        self.plan = plan
        self.cursors = cursors
        for (index, source) in plan.sources.enumerated() {
            let cursor = try cursors.cursor(index)
            try start(cursor, source, above: source.from)
            try cursors.checkSearch(
                owner: plan.heads.number, device: source.device, above: source.from, at: cursor)
            waiting.insert(SourceHeap.Entry(timeStamp: cursor.timeStamp, source: index))
        }
        if let scan = plan.scan {
            let cursor = try cursors.timeCursor()
            try cursor.start(owner: plan.heads.number, above: scan.from, upTo: scan.head)
            try continueScan(cursor, hasEntry: true)
        }
        try takeFirst()
    }

    mutating func advance() throws {
        guard let row = current else { return }
        current = nil
        if currentSource == plan.sources.count {
            let cursor = try cursors.timeCursor()
            try continueScan(cursor, hasEntry: try cursor.next())
        } else if try row.cursor.next() {
            let next = SourceHeap.Entry(timeStamp: row.cursor.timeStamp, source: currentSource)
            // The common case of a run of one device's rows.
            if waiting.first.map({ next.timeStamp < $0.timeStamp }) ?? true, scanStoppedAt == nil {
                current = Row(device: row.device, timeStamp: next.timeStamp, cursor: row.cursor)
                return
            }
            waiting.insert(next)
        } else {
            // The head of a device is always a row.
            guard row.timeStamp == plan.sources[currentSource].head else {
                throw StreamFailure.damaged("rows of device \(row.device) are missing")
            }
        }
        try takeFirst()
    }

    private mutating func takeFirst() throws {
        if let scanStoppedAt, waiting.first.map({ $0.timeStamp > scanStoppedAt }) ?? true {
            suspendedAt = scanStoppedAt
            return
        }
        guard let first = waiting.removeFirst() else { return }
        currentSource = first.source
        let device: Int64
        let cursor: RowCursor
        if first.source == plan.sources.count {
            device = try cursors.timeCursor().device
            cursor = try cursors.indexedRow()
            guard
                try cursor.start(
                    owner: plan.heads.number, device: device, above: TimeStamp(first.timeStamp.rawValue - 1),
                    upTo: first.timeStamp)
            else { throw StreamFailure.damaged("the row at \(first.timeStamp) in the index by time is missing") }
        } else {
            let source = plan.sources[first.source]
            device = source.device
            cursor = try cursors.cursor(first.source)
            if first.source >= CursorSet.maximum {
                // The shared cursor is at another device: search this device's next row again.
                try start(cursor, source, above: TimeStamp(first.timeStamp.rawValue - 1))
            }
        }
        guard cursor.timeStamp == first.timeStamp else { throw StreamFailure.damaged("a row is missing") }
        current = Row(device: device, timeStamp: first.timeStamp, cursor: cursor)
    }

    /// Moves the scan to the next missing row, as far as one step may read.
    private mutating func continueScan(_ cursor: TimeCursor, hasEntry: Bool) throws {
        var hasEntry = hasEntry
        while hasEntry, !plan.isScanned(cursor.device, at: cursor.timeStamp) {
            entriesLeft -= 1
            if entriesLeft == 0 {
                scanStoppedAt = cursor.timeStamp
                return
            }
            hasEntry = try cursor.next()
        }
        guard hasEntry else { return }
        waiting.insert(SourceHeap.Entry(timeStamp: cursor.timeStamp, source: plan.sources.count))
    }

    private func start(_ cursor: RowCursor, _ source: PullPlan.Source, above timeStamp: TimeStamp) throws {
        guard
            try cursor.start(owner: plan.heads.number, device: source.device, above: timeStamp, upTo: source.head)
        else { throw StreamFailure.damaged("rows of device \(source.device) are missing") }
    }
}

/// A binary heap of sources by the timeStamp of their next row.
struct SourceHeap {
    struct Entry {
        let timeStamp: TimeStamp
        let source: Int
    }

    private var entries: [Entry] = []

    var first: Entry? { entries.first }

    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].timeStamp < entries[parent].timeStamp else { return }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeFirst() -> Entry? {
        guard let first = entries.first, let last = entries.popLast() else { return nil }
        if entries.isEmpty { return first }
        entries[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].timeStamp < entries[least].timeStamp {
                least = child
            }
            if least == parent { return first }
            entries.swapAt(least, parent)
            parent = least
        }
    }
}
