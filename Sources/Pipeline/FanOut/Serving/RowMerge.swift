import SyncModel

/// Merges the rows of the devices that moved into timeStamp order: costs the rows read, and one search for each device.
///
/// The first devices keep a cursor each. The others share one, which goes back to a device for each run of its rows that
/// no other device's row interrupts.
struct RowMerge {
    /// The row that is next.
    struct Row {
        /// The position of its device among the plan's sources.
        let source: Int
        /// Its timeStamp.
        let timeStamp: TimeStamp
        /// Stands on it.
        let cursor: RowCursor
    }

    /// The next row, `nil` at the end.
    private(set) var current: Row?

    private let plan: PullPlan
    private let cursors: CursorSet
    /// The next row of every other device.
    private var waiting = SourceHeap()

    /// Goes to the first row.
    init(_ plan: PullPlan, _ cursors: CursorSet) throws {
        self.plan = plan
        self.cursors = cursors
        for (index, source) in plan.sources.enumerated() {
            let cursor = try cursors.cursor(index)
            try start(cursor, index, above: source.from)
            try cursors.checkSearch(
                owner: plan.heads.number, device: source.device, above: source.from, at: cursor)
            waiting.insert(SourceHeap.Entry(timeStamp: cursor.timeStamp, source: index))
        }
        try takeFirst()
    }

    /// Goes to the next row.
    mutating func advance() throws {
        guard let row = current else { return }
        guard try row.cursor.next() else {
            // The head of a device is a row, always.
            guard row.timeStamp == plan.sources[row.source].head else {
                throw StreamFailure.damaged("rows of device \(plan.sources[row.source].device) are missing")
            }
            return try takeFirst()
        }
        let next = SourceHeap.Entry(timeStamp: row.cursor.timeStamp, source: row.source)
        if let other = waiting.first, other.timeStamp < next.timeStamp {
            waiting.insert(next)
            try takeFirst()
        } else {
            current = Row(source: next.source, timeStamp: next.timeStamp, cursor: row.cursor)
        }
    }

    private mutating func takeFirst() throws {
        guard let first = waiting.removeFirst() else {
            current = nil
            return
        }
        let cursor = try cursors.cursor(first.source)
        if first.source >= CursorSet.maximum {
            // The shared cursor stands elsewhere: back to this device's next row, which starts above the one before it.
            try start(cursor, first.source, above: TimeStamp(first.timeStamp.rawValue - 1))
        }
        guard cursor.timeStamp == first.timeStamp else { throw StreamFailure.damaged("a row is gone") }
        current = Row(source: first.source, timeStamp: first.timeStamp, cursor: cursor)
    }

    private func start(_ cursor: RowCursor, _ index: Int, above timeStamp: TimeStamp) throws {
        let source = plan.sources[index]
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

    /// The entry with the least timeStamp.
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
