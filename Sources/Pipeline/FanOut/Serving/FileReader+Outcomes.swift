import FanOutLink
import SQLite
import SyncModel
import SyncWire

extension FileReader {
    /// The outcome kept for a device's batch, `nil` where there is none, or not all of it yet.
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
            throw StreamFailure.damaged("a kept outcome cannot be read: \(error)")
        }
    }

    /// The number of an owner in the file, if it has one.
    func number(of owner: SyncID) throws -> Int64? {
        var statement = try connection.statement(
            "SELECT owner_no, sync_id, head, checksum FROM owners WHERE sync_id = ?1")
        try statement.bind(id: owner, at: 1)
        guard try statement.step() else { return nil }
        let found = try FileRecords.owner(statement)
        guard found.id == owner else { throw StreamFailure.damaged("the index by owners leads to another owner") }
        return found.number
    }

    /// The number of a device that made rows of an owner.
    ///
    /// - Throws: ``StreamFailure/damaged(_:)`` where there is none.
    func number(of device: KnowledgeID, of owner: Int64) throws -> Int64 {
        var statement = try connection.statement(
            """
            SELECT owner_no, device_no, knowledge_id, head, checksum FROM knowledge \
            WHERE owner_no = ?1 AND knowledge_id = ?2
            """)
        try statement.bind(integer: owner, at: 1)
        try statement.bind(id: device, at: 2)
        guard try statement.step() else { throw StreamFailure.damaged("a device of owner \(owner) is gone") }
        let found = try FileRecords.device(statement)
        guard found.knowledgeID == device, try statement.integer(at: 0) == owner else {
            throw StreamFailure.damaged("the index by devices leads to another device")
        }
        return found.number
    }
}
