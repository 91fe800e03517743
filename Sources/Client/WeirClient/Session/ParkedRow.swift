/// A row of the server that is not in the app's table, since the table cannot have it as it is.
public struct ParkedRow: Equatable, Sendable {
    /// The server's table.
    public let table: String
    /// The row's id.
    public let id: String
    /// The syncId of the row's owner.
    public let owner: String
    /// The timeStamp of the version that waits.
    ///
    /// 0 for a row without a parent that a server which was restored may have lost, and that is sent again once everything has come.
    public let version: Int64
    /// Why it cannot be written: a table that the app does not have, a unique value that another row has.
    public let reason: String
    /// The row as it came, with what this device has changed since: JSON with `values`.
    public let row: String
}

extension Weir {
    /// Rows that came and cannot be written; each answer of the server tries it again.
    ///
    /// Those of tables that the app does not have are among them: they are written once it has them, and nobody has to do anything about it.
    public func parkedRows() throws -> [ParkedRow] {
        let query = "SELECT name, id, sync_id, time_stamp, reason, row FROM weir_parked ORDER BY sync_id, time_stamp"
        return try openFile.database.map(query) {
            ParkedRow(
                table: $0.string(at: 0), id: $0.string(at: 1), owner: $0.string(at: 2), version: $0.integer(at: 3),
                reason: $0.string(at: 4), row: String(decoding: $0.bytes(at: 5), as: UTF8.self))
        }
    }

    /// Deletes a row that cannot be written, on all devices: one whose parent is gone, or one of two with the same unique value.
    ///
    /// The deletion is sent with the next session as if the app had deleted the row from its table, based on the version that waits. An
    /// earlier version of it that the table has is deleted, too. If the server does not store the deletion, the row waits again.
    ///
    /// - Parameter row: one of ``parkedRows()``.
    /// - Returns: whether this version was still waiting, and the rows that were deleted; if not, nothing was changed.
    /// - Throws: `WeirError.unsupportedTable` if the app does not have the row's table; `WeirError.notGranted` if the rows of its owner
    ///   may not be written; `WeirError.taken` if its id is that of another owner's row, or a foreign key of the app forbids the deletion.
    @discardableResult
    public func delete(_ row: ParkedRow) async throws -> SavedChanges<Bool> {
        let file = try openFile
        let saved = try captured(in: file, foreignKeys: true) { database in
            let found = try database.map(
                """
                SELECT tbl, key, row FROM weir_parked WHERE name = ?1 AND id = ?2 AND sync_id = ?3 AND time_stamp = ?4
                """, [.text(row.table), .text(row.id), .text(row.owner), .integer(row.version)]
            ) { (table: $0.value(at: 0), key: $0.value(at: 1), json: $0.bytes(at: 2)) }.first
            guard let found else { return false }
            var reader = JSONReader(found.json)
            let parked = try ServerRow(&reader)
            // The server does not have it.
            if row.version == 0 {
                try ParkedRows.remove(parked, in: database)
                return true
            }
            guard case .integer(let number) = found.table, found.key != .null,
                let writer = try file.writer(ofTable: Int(number))
            else {
                throw WeirError.unsupportedTable(name: row.table, reason: "the app has no such table")
            }
            try writer.deleteParked(parked, found.key)
            return true
        }
        await wrote()
        return saved
    }
}

extension RowWriter {
    /// Deletes a row that waits, as the app would: what is captured is sent.
    fileprivate func deleteParked(_ row: ServerRow, _ key: SQLValue) throws {
        let owner = row.syncID == account ? nil : row.syncID
        if let owner, try !SessionRecord(database: database).writableOwners.contains(owner) {
            throw WeirError.notGranted(owner: owner)
        }
        let others = try database.value(
            "SELECT 1 FROM \(table.state) WHERE id = ?1 AND time_stamp > 0 AND owner IS NOT ?2",
            [key, owner.map { .text($0) } ?? .null])
        if others != nil { throw WeirError.taken(reason: "another owner has a row of this id") }
        // It is the version that is deleted.
        try record(key, row.timeStamp, isDeleted: false, owner: owner, writer: try writer(of: row))
        try ParkedRows.remove(row, in: database)
        let deletion = try database.statement("DELETE FROM \(table.quotedName) WHERE \(Self.isKey(table))")
        if try deletion.runOrTaken([key]) > 0 { return }
        try recordDeletion(of: row, key)
    }

    /// Records the deletion of a row that is not in the table, as if it had been there.
    func recordDeletion(of row: ServerRow, _ key: SQLValue) throws {
        let values = try values(of: Array(row.values), like: key, isWhole: true)
        let columns = (["id", "kind", "at"] + values.map(\.column.side)).joined(separator: ", ")
        let places = values.indices.map { ", ?\($0 + 2)" }.joined()
        try database.run(
            "INSERT INTO \(table.log) (\(columns)) VALUES (?1, \(LogKind.delete.rawValue), julianday('now')\(places))",
            [key] + values.map(\.value))
    }
}
