import SQLite
import SyncModel

/// Reads records of a stream file, each held against its checksum.
enum FileRecords {
    /// The columns `owner_no, sync_id, head, checksum`.
    static func owner(_ row: borrowing Statement) throws -> (number: Int64, id: SyncID, head: TimeStamp) {
        let number = try row.integer(at: 0)
        guard let id = SyncID(utf8: try row.bytes(at: 1)), let head = TimeStamp(rawValue: try row.integer(at: 2)),
            checksum(ofOwner: number, head, id) == (try row.integer(at: 3))
        else { throw StreamFailure.damaged("the record of owner \(number) is damaged") }
        return (number, id, head)
    }

    /// The columns `owner_no, device_no, knowledge_id, head, checksum`.
    static func device(_ row: borrowing Statement) throws -> OwnerHeads.DeviceHead {
        let owner = try row.integer(at: 0)
        let number = try row.integer(at: 1)
        guard let id = KnowledgeID(utf8: try row.bytes(at: 2)), let head = TimeStamp(rawValue: try row.integer(at: 3)),
            checksum(ofDevice: number, owner, head, id) == (try row.integer(at: 4))
        else { throw StreamFailure.damaged("the record of device \(number) is damaged") }
        return OwnerHeads.DeviceHead(knowledgeID: id, number: number, head: head)
    }

    static func checksum(ofOwner number: Int64, _ head: TimeStamp, _ id: SyncID) -> Int64 {
        var checksum = Checksum(.owner, number, head.rawValue)
        checksum.add(text: id.text)
        return checksum.value
    }

    static func checksum(ofDevice number: Int64, _ owner: Int64, _ head: TimeStamp, _ id: KnowledgeID) -> Int64 {
        var checksum = Checksum(.knowledge, number, owner, head.rawValue)
        checksum.add(text: id.text)
        return checksum.value
    }
}

extension Statement {
    /// Gives a parameter an id, as a blob.
    mutating func bind(id: some OpaqueID, at index: Int) throws(SQLiteError) {
        let text = id.text
        try bind(blob: text.utf8.span.bytes, at: index)
    }
}
