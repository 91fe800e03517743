import SQLite
import SyncModel

/// Merges the rows of several creating devices by timeStamp.
///
/// Costs the rows read, and one search per device.
///
/// The first devices have a cursor each. The others share one, which searches again for each run of rows of one
/// device.
struct RowMerge {
    struct Row {
        /// The index in the plan's sources.
        let source: Int
        let timeStamp: TimeStamp
        let cursor: RowCursor
    }

    /// `nil` at the end.
    private(set) var current: Row?

    private let plan: PullPlan
    private let cursors: CursorSet
    /// The next row of every other source.
    private var waiting = SourceHeap()

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

    mutating func advance() throws {
        guard let row = current else { return }
        guard try row.cursor.next() else {
            // The head of a device is always a row.
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
            // The shared cursor is at another device: search this device's next row again.
            try start(cursor, first.source, above: TimeStamp(first.timeStamp.rawValue - 1))
        }
        guard cursor.timeStamp == first.timeStamp else { throw StreamFailure.damaged("a row is missing") }
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

/// The rows of one creating device of an owner in a range of timeStamps, in order.
final class RowCursor {
    private var statement: Statement
    private(set) var timeStamp = TimeStamp.zero
    private var owner: Int64 = 0
    private var device: Int64 = 0

    init(_ connection: Connection) throws(SQLiteError) {
        statement = try connection.prepare(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum FROM stream \
            WHERE owner_no = ?1 AND device_no = ?2 AND time_stamp > ?3 AND time_stamp <= ?4 ORDER BY time_stamp
            """)
    }

    /// Moves to the first row above `from`, up to `head`; false when there is none.
    func start(owner: Int64, device: Int64, above from: TimeStamp, upTo head: TimeStamp) throws -> Bool {
        statement.reset()
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: from.rawValue, at: 3)
        try statement.bind(integer: head.rawValue, at: 4)
        timeStamp = from
        (self.owner, self.device) = (owner, device)
        return try next()
    }

    /// Moves to the next row; false at the end.
    func next() throws -> Bool {
        guard try statement.step() else { return false }
        // SQLite compares rows only with the end of a range: in a damaged B-tree a search may start at another owner's
        // rows (I9).
        guard try statement.integer(at: 0) == owner, try statement.integer(at: 1) == device else {
            throw StreamFailure.damaged("a row of another device is among those of device \(device)")
        }
        guard let next = TimeStamp(rawValue: try statement.integer(at: 2)), next > timeStamp else {
            throw StreamFailure.damaged("rows are out of order")
        }
        timeStamp = next
        return true
    }

    /// Resets the statement, so that the snapshot can end.
    func reset() { statement.reset() }

    /// Verifies the current row's checksum.
    func check() throws { _ = try FileRecords.checkRow(statement) }

    /// Lends the current row's JSON after verifying its checksum.
    func withJSON<Result>(_ body: (RawSpan) throws -> Result) throws -> Result {
        _ = try FileRecords.checkRow(statement)
        return try statement.withBytes(at: 5, body)
    }
}

/// The cursors of a reader: one for each of the first sources of a pull, and one shared by all others.
final class CursorSet {
    /// Most pulls have no more sources; a prepared statement takes a few kilobytes.
    static let maximum = 8

    private let connection: Connection
    private var cursors: [RowCursor] = []

    init(_ connection: Connection) { self.connection = connection }

    /// The cursor of the source at an index.
    func cursor(_ position: Int) throws(SQLiteError) -> RowCursor {
        while cursors.count <= min(position, Self.maximum) { cursors.append(try RowCursor(connection)) }
        return cursors[min(position, Self.maximum)]
    }

    /// Verifies that a search in the B-tree, which has set the cursor, was not misled by a damaged key: the rows on
    /// both sides of the position must match their checksums.
    ///
    /// A search that skips rows has compared with a damaged key and ends next to it, since all keys between that key
    /// and the skipped rows are on the same side.
    func checkSearch(owner: Int64, device: Int64, above timeStamp: TimeStamp, at cursor: RowCursor) throws {
        try cursor.check()
        var statement = try connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum FROM stream \
            WHERE (owner_no, device_no, time_stamp) <= (?1, ?2, ?3) \
            ORDER BY owner_no DESC, device_no DESC, time_stamp DESC LIMIT 1
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        if try statement.step() { _ = try FileRecords.checkRow(statement) }
    }

    func reset() {
        for cursor in cursors { cursor.reset() }
    }

    func removeAll() { cursors = [] }
}
