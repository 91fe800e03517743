import FanOutLink
import SQLite
import SyncModel
import SyncWire

/// A stream file open for reading by one thread.
final class FileReader {
    let connection: Connection
    /// The cursors of the current pull.
    let cursors: CursorSet

    init(path: String) throws {
        guard FileOnDisk.exists(path) else { throw StreamFailure.missing("the file \(path) is missing") }
        do throws(SQLiteError) {
            connection = try Connection(path: path, access: .readOnly, options: Self.options)
        } catch {
            throw StreamFailure(opening: path, error)
        }
        cursors = CursorSet(connection)
    }

    func close() throws(SQLiteError) {
        cursors.removeAll()
        try connection.close()
    }

    /// Rows are read once and sequentially; only inner pages of the B-trees are worth caching.
    private static let options = ConnectionOptions(cacheSize: 2 << 20)

    /// Runs a closure in a snapshot of the file.
    func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.transaction(.deferred, body)
    }

    /// An owner's heads in the current snapshot: the known ones if they are current, otherwise read from the file.
    ///
    /// Every row of an owner raises its head, so an equal head implies equal heads of the devices. The known heads were
    /// committed before: a file with lower ones has lost them.
    ///
    /// - Parameter newest: the heads in memory now, which are mostly those of the snapshot where the known ones are older.
    func heads(of owner: SyncID, known: OwnerHeads, newest: () -> OwnerHeads?) throws -> OwnerHeads {
        var statement = try connection.statement(
            "SELECT owner_no, sync_id, head, checksum FROM owners WHERE sync_id = ?1")
        try statement.bind(id: owner, at: 1)
        guard try statement.step() else {
            guard known.number == 0 else { throw StreamFailure.damaged("owner \(known.number) is missing") }
            return known
        }
        let found = try FileRecords.owner(statement)
        let isKnown = known.number == 0 || (found.number == known.number && found.head >= known.head)
        guard found.id == owner, isKnown else {
            throw StreamFailure.damaged("the record of owner \(found.number) is older than the last commit")
        }
        if found.head == known.head { return known }
        if let newest = newest(), newest.number == found.number, newest.head == found.head { return newest }
        return try heads(found.number, found.head)
    }

    private func heads(_ owner: Int64, _ head: TimeStamp) throws -> OwnerHeads {
        var statement = try connection.statement(
            """
            SELECT owner_no, device_no, knowledge_id, head, checksum, indexed_from FROM knowledge WHERE owner_no = ?1
            """)
        try statement.bind(integer: owner, at: 1)
        var devices: [OwnerHeads.DeviceHead] = []
        while try statement.step() {
            guard try statement.integer(at: 0) == owner else {
                throw StreamFailure.damaged("a device of another owner is among those of owner \(owner)")
            }
            devices.append(try FileRecords.device(statement))
        }
        guard devices.reduce(.zero, { max($0, $1.head) }) == head else {
            throw StreamFailure.damaged("the head of an owner differs from the heads of its devices")
        }
        return OwnerHeads(number: owner, head: head, devices: devices)
    }
}

extension FileReader {
    /// The stored outcome of a device's batch; `nil` when there is none, or not all its pieces yet.
    func keptOutcome(of batch: Int64, for key: DeviceKey) throws -> KeptOutcome? {
        guard let owner = try number(of: key.owner) else { return nil }
        var query = try connection.statement(OutcomeRecord.deviceQuery)
        guard let (device, _) = try OutcomeRecord.device(key.device, owner: owner, &query) else { return nil }
        var statement = try connection.statement(
            """
            SELECT dev_no, slot, piece, batch, is_last, upload_partition, upload_offset, upload_part, checksum, bytes \
            FROM outcomes WHERE dev_no = ?1 AND batch = ?2 ORDER BY slot, piece
            """)
        try statement.bind(integer: device, at: 1)
        try statement.bind(integer: batch, at: 2)
        var records: [OutcomeRecord] = []
        while try statement.step() {
            let record = try OutcomeRecord(statement)
            guard record.device == device else { throw StreamFailure.damaged("an outcome of another device") }
            records.append(record)
        }
        do throws(WireError) {
            return try KeptOutcome(joining: records)
        } catch {
            throw StreamFailure.damaged("a stored outcome cannot be read: \(error)")
        }
    }

    func number(of owner: SyncID) throws -> Int64? {
        var statement = try connection.statement(
            "SELECT owner_no, sync_id, head, checksum FROM owners WHERE sync_id = ?1")
        try statement.bind(id: owner, at: 1)
        guard try statement.step() else { return nil }
        let found = try FileRecords.owner(statement)
        guard found.id == owner else { throw StreamFailure.damaged("the index on owners returned another owner") }
        return found.number
    }

    /// The id of a creating device of an owner.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` when there is none.
    func knowledgeID(of device: Int64, of owner: Int64) throws -> KnowledgeID {
        var statement = try connection.statement(
            "SELECT owner_no, device_no, knowledge_id, head, checksum, indexed_from FROM knowledge WHERE device_no = ?1"
        )
        try statement.bind(integer: device, at: 1)
        guard try statement.step() else { throw StreamFailure.damaged("device \(device) is missing") }
        let found = try FileRecords.device(statement)
        guard found.number == device, try statement.integer(at: 0) == owner else {
            throw StreamFailure.damaged("the table of devices returned another device")
        }
        return found.knowledgeID
    }

    /// The number of a creating device of an owner.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` when there is none.
    func number(of device: KnowledgeID, of owner: Int64) throws -> Int64 {
        var statement = try connection.statement(
            """
            SELECT owner_no, device_no, knowledge_id, head, checksum, indexed_from FROM knowledge \
            WHERE owner_no = ?1 AND knowledge_id = ?2
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(id: device, at: 2)
        guard try statement.step() else { throw StreamFailure.damaged("a device of owner \(owner) is missing") }
        let found = try FileRecords.device(statement)
        guard found.knowledgeID == device, try statement.integer(at: 0) == owner else {
            throw StreamFailure.damaged("the index on devices returned another device")
        }
        return found.number
    }
}
