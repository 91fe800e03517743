import SQLite
import SyncModel

/// The entries of the index by time in a range of an owner's timeStamps, in order.
final class TimeCursor {
    private let connection: Connection
    private var statement: Statement
    private let count: ReadCount
    private var owner: Int64 = 0
    private(set) var timeStamp = TimeStamp.zero
    /// The creating device of the row at ``timeStamp``.
    private(set) var device: Int64 = 0

    init(_ connection: Connection, _ count: ReadCount) throws(SQLiteError) {
        self.connection = connection
        self.count = count
        statement = try connection.prepare(
            """
            SELECT owner_no, time_stamp, device_no, checksum FROM time_index \
            WHERE owner_no = ?1 AND time_stamp > ?2 AND time_stamp <= ?3 ORDER BY time_stamp
            """)
    }

    /// Moves to the first entry above `from`, and verifies that the search was not misled by a damaged key: the entries on
    /// both sides must match their checksums, as in ``CursorSet/checkSearch(owner:device:above:at:)``.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)``, also when there is no entry.
    func start(owner: Int64, above from: TimeStamp, upTo head: TimeStamp) throws {
        statement.reset()
        try statement.bind(integer: owner, at: 1)
        try statement.bind(integer: from.rawValue, at: 2)
        try statement.bind(integer: head.rawValue, at: 3)
        (self.owner, timeStamp) = (owner, from)
        guard try next() else {
            throw StreamFailure.damaged("entries of owner \(owner) are missing in the index by time")
        }
        var before = try connection.statement(
            """
            SELECT owner_no, time_stamp, device_no, checksum FROM time_index \
            WHERE (owner_no, time_stamp) <= (?1, ?2) ORDER BY owner_no DESC, time_stamp DESC LIMIT 1
            """)
        try before.bind(integer: owner, at: 1)
        try before.bind(integer: from.rawValue, at: 2)
        guard try before.step() else { return }
        count.records += 1
        _ = try FileRecords.timeEntry(before)
    }

    /// Moves to the next entry and verifies it; false at the end.
    func next() throws -> Bool {
        guard try statement.step() else { return false }
        count.records += 1
        let entry = try FileRecords.timeEntry(statement)
        // SQLite compares only with the end of the range (I9).
        guard entry.owner == owner, entry.timeStamp > timeStamp else {
            throw StreamFailure.damaged("the index by time of owner \(owner) is out of order")
        }
        (timeStamp, device) = (entry.timeStamp, entry.device)
        return true
    }

    /// Resets the statement, so that the snapshot can end.
    func reset() { statement.reset() }
}
