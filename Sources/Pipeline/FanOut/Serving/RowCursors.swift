import SQLite
import SyncModel

/// The rows of one creating device of an owner in a range of timeStamps, in order.
final class RowCursor {
    private var statement: Statement
    private(set) var timeStamp = TimeStamp.zero
    private var owner: Int64 = 0
    private var device: Int64 = 0
    private let count: ReadCount

    init(_ connection: Connection, _ count: ReadCount) throws(SQLiteError) {
        self.count = count
        statement = try connection.prepare(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns FROM stream \
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
        count.records += 1
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

    /// Lends the current row's record after verifying its checksum.
    func withRow<Result>(_ body: (FileRecords.Row, borrowing Statement) throws -> Result) throws -> Result {
        try body(try FileRecords.verifiedRow(statement), statement)
    }

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
    private var byTime: TimeCursor?
    private var indexed: RowCursor?
    let count = ReadCount()

    init(_ connection: Connection) { self.connection = connection }

    /// The cursor of the source at an index.
    func cursor(_ position: Int) throws(SQLiteError) -> RowCursor {
        while cursors.count <= min(position, Self.maximum) { cursors.append(try RowCursor(connection, count)) }
        return cursors[min(position, Self.maximum)]
    }

    /// The cursor of the index by time.
    func timeCursor() throws(SQLiteError) -> TimeCursor {
        if let byTime { return byTime }
        let cursor = try TimeCursor(connection, count)
        byTime = cursor
        return cursor
    }

    /// The cursor of the rows that are found by the index by time.
    func indexedRow() throws(SQLiteError) -> RowCursor {
        if let indexed { return indexed }
        let cursor = try RowCursor(connection, count)
        indexed = cursor
        return cursor
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
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns FROM stream \
            WHERE (owner_no, device_no, time_stamp) <= (?1, ?2, ?3) \
            ORDER BY owner_no DESC, device_no DESC, time_stamp DESC LIMIT 1
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: device, at: 2)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        if try statement.step() {
            count.records += 1
            _ = try FileRecords.checkRow(statement)
        }
    }

    func reset() {
        for cursor in cursors { cursor.reset() }
        byTime?.reset()
        indexed?.reset()
    }

    func removeAll() {
        cursors = []
        byTime = nil
        indexed = nil
    }
}

/// Counts the records that a pull reads.
final class ReadCount {
    var records = 0
}
