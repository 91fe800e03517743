/// An edit of the batch.
struct SentRow {
    let position: Int
    let key: SQLValue
    let isDeletion: Bool
    /// Whether the app has inserted the row where it had none; rows that were adopted were there before.
    let isNew: Bool
    /// The values that the app has seen where others were pulled since, as JSON.
    let seen: [UInt8]?
    /// The values before that are known, which pulled rows replace by the server's.
    let image: [(column: CapturedTable.Column, value: SQLValue)]

    static func all(of table: CapturedTable, in database: Database) throws -> [SentRow] {
        let before = ValuesBefore(table: table)
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
    /// Makes the app's insertion pending again where it has met a version that it has not seen: with the base that it would have had if that
    /// had been pulled first.
    ///
    /// Bringing a deleted row back overwrites nothing. It is sent on condition of the tombstone, so that of several devices which insert
    /// the row one does it, and the others are based on its row.
    ///
    /// - Parameters:
    ///   - known: the row's version that the file has.
    ///   - owners: those whose rows the file may have.
    /// - Returns: whether it is pending again.
    func insertsAgain(
        _ sent: SentRow, _ outcome: BatchOutcome, _ change: ArraySlice<UInt8>, _ known: KnownVersion?,
        _ writer: RowWriter, owners: Set<String>
    ) throws -> Bool {
        let (result, row) = (outcome.results[sent.position], outcome.row(of: sent.position))
        // Most changes are applied, and are not read here.
        guard sent.isNew, result.status == .deleted || result.status == .conflict else { return false }
        let change = try ChangeContent(change)
        // The app has seen no version but a tombstone, which the file still has.
        let isRevival = known.map { $0.isDeleted && $0.timeStamp == change.base } ?? false
        let owner = owner(of: change)
        guard change.isCreation || isRevival, owner.map(owners.contains) ?? true else { return false }
        if result.status == .conflict {
            // Of rows that changes of keys connect, none was stored where one is in conflict.
            let isAtomic = try database.value("SELECT 1 FROM weir_key_change WHERE sent LIMIT 1") != nil
            // A version that the change has named is in conflict for another reason, and would be again.
            guard !isAtomic, let row, row.isDeleted || isRevival, row.timeStamp > change.base else { return false }
        }
        let tombstone = result.status == .deleted ? result.timeStamp : row.flatMap { $0.isDeleted ? $0.timeStamp : nil }
        // A version that was pulled since is live, and the app has not seen it.
        if let known, let tombstone, !known.isDeleted, known.timeStamp > tombstone { return false }
        let table = writer.table
        try Thawing(database: database).thaw(table.number, columns: table.columnNumbers, sent.key)
        let rebase = "UPDATE \(table.edit) SET base = ?2, seen = ?3 WHERE id = ?1"
        if let tombstone {
            try database.run(rebase, [sent.key, .null, .null])
            if known.map({ $0.timeStamp < tombstone }) ?? true {
                try writer.record(sent.key, tombstone, isDeleted: true, owner: owner, writer: .null)
            }
        } else if let row {
            // The app has never seen the row that is there.
            try database.run(rebase, [sent.key, .integer(0), .blob(writer.json(of: []))])
            try write(row, try WriteState(file))
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
