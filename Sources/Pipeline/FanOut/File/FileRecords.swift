import SQLite
import SyncModel

/// Reads records of a stream file and verifies their checksums.
enum FileRecords {
    /// The columns `owner_no, sync_id, head, checksum`.
    static func owner(_ row: borrowing Statement) throws -> (number: Int64, id: SyncID, head: TimeStamp) {
        let number = try row.integer(at: 0)
        guard let id = SyncID(utf8: try row.bytes(at: 1)), let head = TimeStamp(rawValue: try row.integer(at: 2)),
            checksum(ofOwner: number, head, id) == (try row.integer(at: 3))
        else { throw StreamFailure.damaged("the record of owner \(number) is damaged") }
        return (number, id, head)
    }

    /// The columns `owner_no, device_no, knowledge_id, head, checksum, indexed_from`.
    static func device(_ row: borrowing Statement) throws -> OwnerHeads.DeviceHead {
        let owner = try row.integer(at: 0)
        let number = try row.integer(at: 1)
        guard let id = KnowledgeID(utf8: try row.bytes(at: 2)), let head = TimeStamp(rawValue: try row.integer(at: 3)),
            let indexedFrom = TimeStamp(rawValue: try row.integer(at: 5))
        else { throw StreamFailure.damaged("the record of device \(number) is damaged") }
        let device = OwnerHeads.DeviceHead(knowledgeID: id, number: number, head: head, indexedFrom: indexedFrom)
        guard checksum(of: device, owner: owner) == (try row.integer(at: 4)) else {
            throw StreamFailure.damaged("the record of device \(number) is damaged")
        }
        return device
    }

    /// The columns `owner_no, time_stamp, device_no, checksum` of an entry of the index by time, verified.
    static func timeEntry(
        _ row: borrowing Statement
    ) throws -> (owner: Int64, timeStamp: TimeStamp, device: Int64, checksum: Int64) {
        let owner = try row.integer(at: 0)
        let (device, stored) = (try row.integer(at: 2), try row.integer(at: 3))
        guard let timeStamp = TimeStamp(rawValue: try row.integer(at: 1)),
            checksum(ofTimeEntry: owner, timeStamp, device: device) == stored
        else { throw StreamFailure.damaged("an entry of owner \(owner) in the index by time is damaged") }
        return (owner, timeStamp, device, stored)
    }

    static func checksum(ofTimeEntry owner: Int64, _ timeStamp: TimeStamp, device: Int64) -> Int64 {
        Checksum(.timeEntry, owner, timeStamp.rawValue, device).value
    }

    static func checksum(ofOwner number: Int64, _ head: TimeStamp, _ id: SyncID) -> Int64 {
        var checksum = Checksum(.owner, number, head.rawValue)
        checksum.add(text: id.text)
        return checksum.value
    }

    static func checksum(of device: OwnerHeads.DeviceHead, owner: Int64) -> Int64 {
        var checksum = Checksum(
            .knowledge, device.number, owner, device.head.rawValue, device.indexedFrom.rawValue)
        checksum.add(text: device.knowledgeID.text)
        return checksum.value
    }

    /// Checks that a search found the requested row: in a damaged B-tree it may find another one, even of another
    /// owner (I9).
    ///
    /// - Parameter row: the columns `owner_no, device_no, time_stamp, table_no, row_id`, …
    static func requireRow(
        _ row: borrowing Statement, owner: Int64, device: Int64, at timeStamp: TimeStamp, table: Int64, id: RowID
    ) throws {
        let isMeant = try row.withBytes(at: 4) { id.hasBytes($0) }
        guard isMeant, try row.integer(at: 0) == owner, try row.integer(at: 1) == device,
            try row.integer(at: 2) == timeStamp.rawValue, try row.integer(at: 3) == table
        else { throw StreamFailure.damaged("the row at \(timeStamp) of owner \(owner) is a different row") }
    }

    /// A verified row, without its id and JSON.
    struct Row {
        let owner: Int64
        let device: Int64
        let timeStamp: Int64
        let table: Int64
        let isExact: Int64
        let createdAt: Int64
        let columns: Int64
        let checksum: Int64
    }

    /// The columns `owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns`.
    ///
    /// - Returns: the row's verified checksum.
    static func checkRow(_ row: borrowing Statement) throws -> Int64 { try verifiedRow(row).checksum }

    /// The columns of ``checkRow(_:)``.
    ///
    /// - Parameter withID: is lent the row's id.
    static func verifiedRow(
        _ row: borrowing Statement, withID body: (RawSpan) -> Void = { _ in }
    ) throws -> Row {
        let record = Row(
            owner: try row.integer(at: 0), device: try row.integer(at: 1), timeStamp: try row.integer(at: 2),
            table: try row.integer(at: 3), isExact: try row.integer(at: 7), createdAt: try row.integer(at: 8),
            columns: try row.integer(at: 9), checksum: try row.integer(at: 6))
        let content = try row.withBytes(at: 4) { id in
            body(id)
            return try row.withBytes(at: 5) { json in
                Checksum.row(
                    owner: record.owner, device: record.device, timeStamp: record.timeStamp, table: record.table,
                    isExact: record.isExact, createdAt: record.createdAt, columns: record.columns, id: id, json: json)
            }
        }
        guard content == record.checksum else {
            throw StreamFailure.damaged("the row \(record.timeStamp) of owner \(record.owner) is damaged")
        }
        return record
    }
}

extension Statement {
    mutating func bind(id: some OpaqueID, at index: Int) throws(SQLiteError) {
        let text = id.text
        try bind(blob: text.utf8.span.bytes, at: index)
    }
}
