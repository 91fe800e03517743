import FanOutLink
import SQLite
import SyncModel

/// A stream file open for reading, by one thread.
final class FileReader {
    /// The connection, which this reader closes.
    let connection: Connection
    /// Where rows are read; a device that has more to give than there are cursors shares the last one.
    let cursors: CursorSet

    /// Opens a file that is served.
    init(path: String) throws {
        guard FileOnDisk.exists(path) else { throw StreamFailure.missing("the file \(path) is gone") }
        do throws(SQLiteError) {
            connection = try Connection(path: path, access: .readOnly, options: Self.options)
        } catch {
            throw StreamFailure(opening: path, error)
        }
        cursors = CursorSet(connection)
    }

    /// Ends the reader.
    func close() throws(SQLiteError) {
        cursors.removeAll()
        try connection.close()
    }

    /// Streams are read once from end to end: pages of the tree's inner nodes are what is worth keeping.
    private static let options = ConnectionOptions(cacheSize: 2 << 20)

    /// Runs a closure over one state of the file.
    func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.transaction(.deferred, body)
    }

    /// An owner's heads in the snapshot that is read: those given when they are of the same moment, else its own.
    ///
    /// Every row of an owner raises its head, so equal heads mean equal devices' heads, too. What memory has was committed
    /// before: a file that has less has lost it.
    func heads(of owner: SyncID, known: OwnerHeads) throws -> OwnerHeads {
        var statement = try connection.statement(
            "SELECT owner_no, sync_id, head, checksum FROM owners WHERE sync_id = ?1")
        try statement.bind(id: owner, at: 1)
        guard try statement.step() else {
            guard known.number == 0 else { throw StreamFailure.damaged("owner \(known.number) is gone") }
            return known
        }
        let found = try FileRecords.owner(statement)
        let isKnown = known.number == 0 || (found.number == known.number && found.head >= known.head)
        guard found.id == owner, isKnown else {
            throw StreamFailure.damaged("the record of owner \(found.number) is not the one that was written last")
        }
        return found.head == known.head ? known : try heads(found.number, found.head)
    }

    private func heads(_ owner: Int64, _ head: TimeStamp) throws -> OwnerHeads {
        var statement = try connection.statement(
            "SELECT owner_no, device_no, knowledge_id, head, checksum FROM knowledge WHERE owner_no = ?1")
        try statement.bind(integer: owner, at: 1)
        var devices: [OwnerHeads.DeviceHead] = []
        while try statement.step() {
            guard try statement.integer(at: 0) == owner else {
                throw StreamFailure.damaged("a device of another owner stands among those of owner \(owner)")
            }
            devices.append(try FileRecords.device(statement))
        }
        guard devices.reduce(.zero, { max($0, $1.head) }) == head else {
            throw StreamFailure.damaged("the head of an owner is not that of its devices")
        }
        return OwnerHeads(number: owner, head: head, devices: devices)
    }
}

/// The rows of one device of an owner, from one timeStamp to another, in order.
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

    /// Goes to the first row above `from`, up to `head`; false when there is none.
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

    /// Goes to the next row; false at the end.
    func next() throws -> Bool {
        guard try statement.step() else { return false }
        // SQLite compares a range's rows with its end alone: a search in a damaged tree may begin with anybody's (I9).
        guard try statement.integer(at: 0) == owner, try statement.integer(at: 1) == device else {
            throw StreamFailure.damaged("a row of another device stands among those of device \(device)")
        }
        guard let next = TimeStamp(rawValue: try statement.integer(at: 2)), next > timeStamp else {
            throw StreamFailure.damaged("rows are out of order")
        }
        timeStamp = next
        return true
    }

    /// Leaves the row, so that the snapshot can end.
    func reset() { statement.reset() }

    /// Makes sure that the current row is what was written.
    func check() throws { _ = try FileRecords.checkRow(statement) }

    /// Lends the current row's JSON, once it is known to be what was written.
    func withJSON<Result>(_ body: (RawSpan) throws -> Result) throws -> Result {
        _ = try FileRecords.checkRow(statement)
        return try statement.withBytes(at: 5, body)
    }
}

/// The cursors of a reader: one for each of the first devices of a pull, and one that all others share.
final class CursorSet {
    /// Most owners have no more devices that moved; statements cost some kilobytes each.
    static let maximum = 8

    private let connection: Connection
    private var cursors: [RowCursor] = []

    init(_ connection: Connection) { self.connection = connection }

    /// The cursor of the device at a position in the pull.
    func cursor(_ position: Int) throws(SQLiteError) -> RowCursor {
        while cursors.count <= min(position, Self.maximum) { cursors.append(try RowCursor(connection)) }
        return cursors[min(position, Self.maximum)]
    }

    /// Makes sure that the search for a device's rows above a timeStamp, at whose first row a cursor stands, has not gone
    /// astray: the rows on both sides of the place are what was written.
    ///
    /// What leads a search past rows is a key that is not what it was, and the search ends beside it: all keys between that
    /// one and the rows lie on the same side.
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

    /// Leaves all rows.
    func reset() {
        for cursor in cursors { cursor.reset() }
    }

    /// Gives the statements back.
    func removeAll() { cursors = [] }
}
