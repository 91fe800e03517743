import SQLite
import SyncModel

extension StreamFile {
    /// Verifies the whole file: pages, indexes against tables, and every record against its checksum and the digest.
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
        try sum(
            "SELECT owner_no, device_no, knowledge_id, head, checksum, indexed_from FROM knowledge", into: &digest
        ) {
            let device = try FileRecords.device($0)
            return FileRecords.checksum(of: device, owner: try $0.integer(at: 0))
        }
        try sum(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns FROM stream
            """, into: &digest
        ) { try FileRecords.checkRow($0) }
        try sum("SELECT owner_no, time_stamp, device_no, checksum FROM time_index", into: &digest) {
            try FileRecords.timeEntry($0).checksum
        }
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
            throw StreamFailure.damaged("the digest of the records does not match")
        }
    }

    /// Adds the checksums of all records of a table.
    private func sum(
        _ sql: StaticString, into digest: inout Int64, _ checksum: (borrowing Statement) throws -> Int64
    ) throws {
        var statement = try connection.statement(sql)
        var count = 0
        while try statement.step() {
            digest &+= try checksum(statement)
            count += 1
            // Stops quickly at negligible cost.
            if count % 4096 == 0 { try Task.checkCancellation() }
        }
    }
}
