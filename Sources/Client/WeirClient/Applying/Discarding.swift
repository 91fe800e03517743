/// Takes back what the app has written and the server has not received.
struct Discarding {
    let writer: RowWriter

    private var table: CapturedTable { writer.table }
    private var database: Database { writer.database }

    /// Removes the edit of a row and gives the row the server's newest values, as part of the open transaction, whose changes are not
    /// captured.
    ///
    /// Rows that changes of keys connect are discarded together: the deletion under an old key, left alone, would remove the row.
    ///
    /// - Returns: whether there was an edit that is not being sent.
    func discard(_ key: SQLValue) throws -> Bool {
        try LogFolding(table: table).fold(in: database)
        let member = KeyChanges.Member(table: table.number, key: key)
        let group = try KeyChanges.group(of: member, in: database)
        if let group { try KeyChanges.remove(group, in: database) }
        let rows = try (group?.members.map(\.key) ?? [key]).compactMap { try take($0) }
        for row in rows {
            if !row.exists {
                try writer.delete(row.key)
            } else if rows.count > 1, row.image.count == table.columns.count {
                // They may have each other's unique values.
                try writer.deleteRow(row.key)
            }
        }
        for row in rows where row.exists { try writer.restore(row.key, row.image, isDeletion: row.isEdited) }
        return !rows.isEmpty
    }

    /// A row whose edit was removed.
    private struct DiscardedRow {
        let key: SQLValue
        let image: [(column: CapturedTable.Column, value: SQLValue)]
        /// Whether it had more than what waits for columns of the server.
        let isEdited: Bool
        /// Whether the server has it, as far as is known.
        let exists: Bool
    }

    /// Removes the edit of a row.
    ///
    /// - Returns: `nil` if it has none.
    private func take(_ key: SQLValue) throws -> DiscardedRow? {
        let before = ValuesBefore(table: table)
        let edit = try database.map(
            "SELECT \(before.columns.joined(separator: ", ")) FROM \(table.edit) WHERE id = ?1", [key]
        ) { before.read($0, from: 0) }.first
        // It was changed before the edit.
        let held = HeldColumns(database: database, table: table)
        let first = try held.values(of: key)
        guard edit != nil || !first.isEmpty else { return nil }
        try held.remove(key)
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
        try TrackedOutcomes(database: database).complete(
            table.number, key, isSent: false, TrackedOutcomes.Result(status: .discarded))
        // What is being sent counts as the server's.
        let exists = try database.value(
            """
            SELECT coalesce((SELECT NOT deleted FROM \(table.sent) WHERE id = ?1),
                (SELECT NOT deleted FROM \(table.state) WHERE id = ?1), 0)
            """, [key])
        if exists != .integer(1) { try RowOwners.forget(key, ofTable: table.number, in: database) }
        let others = (edit ?? []).filter { edited in !first.contains { $0.column.number == edited.column.number } }
        return DiscardedRow(
            key: key, image: others + first, isEdited: edit != nil, exists: edit == nil || exists == .integer(1))
    }
}

extension Weir {
    /// Takes back the changes of a row that the server has not received: the row becomes what the server has, in its newest version
    /// that was received.
    ///
    /// After a change of the row's key, the changes under its other keys are taken back as well, and those of rows that have had the same
    /// keys. Changes that are being sent are not taken back.
    ///
    /// - Parameters:
    ///   - table: one of those that were opened.
    ///   - key: the row's primary key.
    /// - Returns: whether the row had such changes.
    /// - Throws: `WeirError`, also if another row has a unique value that the row would get again.
    @discardableResult
    public func discard(_ table: String, _ key: SQLValue) async throws -> Bool {
        let file = try openFile
        let record = SessionRecord(database: file.database)
        guard let captured = file.tables.first(where: { foldedName($0.name) == foldedName(table) }) else {
            return false
        }
        // What is written has the app's columns, so nothing of the server's is needed: it may not be known yet.
        let server =
            try record.schema()?.schema.table(for: captured.name)
            ?? ServerSchema.Table(name: captured.name, policy: .lastSyncWins, columns: [])
        let writer = try RowWriter(captured, server, account: record.account?.syncID ?? "", in: file)
        let wasPending: Bool
        do {
            wasPending = try file.applying { _ in try Discarding(writer: writer).discard(key) }
        } catch let error as RowWriter.Unwritable {
            throw WeirError.taken(reason: error.reason)
        }
        if wasPending { await wrote() }
        return wasPending
    }
}
