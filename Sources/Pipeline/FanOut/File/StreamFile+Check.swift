import SQLite
import SyncModel

extension StreamFile {
    /// Reads the whole file: its pages, whether its indexes agree with its tables, and every record against its checksum and
    /// the digest.
    ///
    /// - Throws: ``StreamFailure``; `CancellationError` when the task is cancelled.
    func checkContent() throws {
        try connection.withCancellation {
            var integrity = try connection.prepare("PRAGMA integrity_check(10)")
            while try integrity.step() {
                let fault = try integrity.text(at: 0)
                guard fault.utf8.elementsEqual("ok".utf8) else { throw StreamFailure.damaged(fault) }
            }
        }
        var digest: Int64 = 0
        for (partition, progress) in state.position.uploads {
            digest &+= Self.checksum(ofUpload: Int64(partition), progress.offset, Int64(progress.part))
        }
        try sum("SELECT owner_no, sync_id, head, checksum FROM owners", into: &digest) {
            let owner = try FileRecords.owner($0)
            return FileRecords.checksum(ofOwner: owner.number, owner.head, owner.id)
        }
        try sum("SELECT owner_no, device_no, knowledge_id, head, checksum FROM knowledge", into: &digest) {
            let device = try FileRecords.device($0)
            return FileRecords.checksum(
                ofDevice: device.number, try $0.integer(at: 0), device.head, device.knowledgeID)
        }
        try sum(
            "SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum FROM stream", into: &digest
        ) { try FileRecords.checkRow($0) }
        try sum("SELECT dev_no, owner_no, count, caller, knowledge_id, checksum FROM devices", into: &digest) {
            var checksum = Checksum(.device, try $0.integer(at: 0), try $0.integer(at: 1), try $0.integer(at: 2))
            try $0.withBytes(at: 3) { checksum.add(bytes: $0) }
            try $0.withBytes(at: 4) { checksum.add(bytes: $0) }
            guard checksum.value == (try $0.integer(at: 5)) else {
                throw StreamFailure.damaged("the record of an uploading device is damaged")
            }
            return checksum.value
        }
        try sum(
            """
            SELECT dev_no, slot, piece, batch, is_last, upload_partition, upload_offset, upload_part, checksum, bytes \
            FROM outcomes
            """, into: &digest
        ) { try OutcomeRecord($0).checksum }
        guard digest == state.digest else {
            throw StreamFailure.damaged("the records are not those that were written: their digest differs")
        }
    }

    /// Adds up the checksums of all records of a table.
    private func sum(
        _ sql: StaticString, into digest: inout Int64, _ checksum: (borrowing Statement) throws -> Int64
    ) throws {
        var statement = try connection.statement(sql)
        var count = 0
        while try statement.step() {
            digest &+= try checksum(statement)
            count += 1
            // Often enough that a stop takes no time, seldom enough that asking costs none.
            if count % 4096 == 0 { try Task.checkCancellation() }
        }
    }
}

extension FileRecords {
    /// Makes sure that a row is the one that a search by its place was for: in a damaged tree it may find another, of another
    /// owner even (I9).
    ///
    /// The columns `owner_no, device_no, time_stamp, table_no, row_id`, and any behind.
    static func requireRow(
        _ row: borrowing Statement, owner: Int64, device: Int64, at timeStamp: TimeStamp, table: Int64, id: RowID
    ) throws {
        let isMeant = try row.withBytes(at: 4) { id.hasBytes($0) }
        guard isMeant, try row.integer(at: 0) == owner, try row.integer(at: 1) == device,
            try row.integer(at: 2) == timeStamp.rawValue, try row.integer(at: 3) == table
        else { throw StreamFailure.damaged("another row stands at \(timeStamp) of owner \(owner)") }
    }

    /// The columns `owner_no, device_no, time_stamp, table_no, row_id, json, checksum`.
    ///
    /// - Returns: the row's checksum, which is that of its content.
    static func checkRow(_ row: borrowing Statement) throws -> Int64 {
        let stored = try row.integer(at: 6)
        let (owner, device) = (try row.integer(at: 0), try row.integer(at: 1))
        let (timeStamp, table) = (try row.integer(at: 2), try row.integer(at: 3))
        let content = try row.withBytes(at: 4) { id in
            try row.withBytes(at: 5) { json in
                Checksum.row(owner: owner, device: device, timeStamp: timeStamp, table: table, id: id, json: json)
            }
        }
        guard content == stored else {
            throw StreamFailure.damaged("the row \(timeStamp) of owner \(owner) is damaged")
        }
        return content
    }
}
