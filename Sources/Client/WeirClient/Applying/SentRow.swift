/// An edit of the batch.
struct SentRow {
    let position: Int
    let key: SQLValue
    let isDeletion: Bool
    /// Whether the app has inserted the row where it had none.
    let isNew: Bool
    /// The values that the app has seen where others were pulled since, as JSON.
    let seen: [UInt8]?
    /// The values before that are known, which pulled rows replace by the server's.
    let image: [(column: CapturedTable.Column, value: SQLValue)]

    static func all(of table: CapturedTable, in database: Database) throws -> [SentRow] {
        let before = ValuesBefore(table: table)
        // Rows that were adopted were there before.
        let isNew = "m0 = -1 AND v0 <> -1 AND was_there IS NOT 1"
        let columns = (["position", "id", "deleted", "seen", isNew] + before.columns).joined(separator: ", ")
        return try database.map("SELECT \(columns) FROM \(table.sent) ORDER BY position") { row in
            SentRow(
                position: Int(row.integer(at: 0)), key: row.value(at: 1), isDeletion: row.integer(at: 2) == 1,
                isNew: row.integer(at: 4) == 1,
                seen: row.isNull(at: 3) ? nil : row.bytes(at: 3), image: before.read(row, from: 5))
        }
    }
}

extension Applying {
    /// Makes an insertion pending again that has met the tombstone of a row which the app does not have: bringing that row back overwrites
    /// nothing, and is what follows where the tombstone is pulled first.
    ///
    /// - Parameters:
    ///   - tombstone: its timeStamp.
    ///   - known: the row's version that the file has.
    ///   - owners: those whose rows the file may have.
    /// - Returns: whether it is pending again.
    func insertsAgain(
        _ sent: SentRow, _ outcome: ChangeResult.Status, over tombstone: Int64, _ change: ChangeContent,
        _ known: KnownVersion?, _ writer: RowWriter, owners: Set<String>
    ) throws -> Bool {
        guard sent.isNew, change.base != PendingRow.anyVersion,
            known.map({ $0.isDeleted || $0.timeStamp < tombstone }) ?? true
        else { return false }
        // Of rows that changes of keys connect, none was stored where one is in conflict.
        if try outcome == .conflict && database.value("SELECT 1 FROM weir_key_change WHERE sent LIMIT 1") != nil {
            return false
        }
        let owner = owner(of: change)
        if let owner, !owners.contains(owner) { return false }
        let table = writer.table
        try Thawing(database: database).thaw(table.number, columns: table.columnNumbers, sent.key)
        try database.run("UPDATE \(table.edit) SET base = NULL, seen = NULL WHERE id = ?1", [sent.key])
        if known.map({ $0.timeStamp < tombstone }) ?? true {
            try writer.record(sent.key, tombstone, isDeleted: true, owner: owner, writer: .null)
        }
        return true
    }
}

/// The changes of a batch as they were sent.
enum SentChange {
    static func all(in batch: Batch) throws -> [ArraySlice<UInt8>] {
        var changes: [ArraySlice<UInt8>] = []
        var reader = JSONReader(batch.body)
        try reader.object { reader, name in
            if name == "changes" { try reader.array { changes.append(try $0.text()) } } else { try reader.skip() }
        }
        return changes
    }
}
