import FanOutLink
import SQLite
import SyncModel
import SyncWire

extension StreamReader {
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

    /// The rows that an answer shows for conflicts and refusals, as they stand, by the changes' positions.
    func rowsShown(for results: [ChangeResult], of owner: SyncID) throws -> [Int: [UInt8]] {
        guard results.contains(where: \.showsRow), let number = try number(of: owner) else { return [:] }
        var statement = try connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum FROM stream \
            WHERE owner_no = ?1 AND table_no = ?2 AND row_id = ?3
            """)
        var rows: [Int: [UInt8]] = [:]
        for result in results where result.showsRow {
            try statement.bind(integer: number, at: 1)
            try statement.bind(integer: Int64(result.table), at: 2)
            try statement.bind(id: result.id, at: 3)
            if try statement.step() {
                _ = try StreamRecords.checkRow(statement)
                // A search in a damaged index may find another row, of another owner even (I9).
                let isAskedFor = try statement.withBytes(at: 4) { result.id.hasBytes($0) }
                guard isAskedFor, try statement.integer(at: 0) == number,
                    try statement.integer(at: 3) == Int64(result.table)
                else { throw StreamFailure.damaged("the index by ids leads to another row") }
                rows[result.index] = try statement.bytes(at: 5)
            }
            statement.reset()
        }
        return rows
    }

    private func number(of owner: SyncID) throws -> Int64? {
        var statement = try connection.statement(
            "SELECT owner_no, sync_id, head, checksum FROM owners WHERE sync_id = ?1")
        try statement.bind(id: owner, at: 1)
        guard try statement.step() else { return nil }
        let found = try StreamRecords.owner(statement)
        guard found.id == owner else { throw StreamFailure.damaged("the index by owners leads to another owner") }
        return found.number
    }
}

extension ChangeResult {
    /// Whether an answer shows the row as it stands.
    var showsRow: Bool {
        switch status {
        case .conflict, .refused: true
        case .applied, .deleted: false
        }
    }
}
