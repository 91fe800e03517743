/// Takes back what the app has written and the server has not received.
struct Discarding {
    let writer: RowWriter
    /// Whether the file is attached to an account, with which rows that the server does not have are pending, also those that stay.
    let isAttached: Bool

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
        for row in rows where row.exists {
            try writer.restore(row.key, row.image, isDeletion: row.isEdited)
            // Its parent may have been deleted meanwhile.
            try writer.recordIfOrphan(row.key)
            if row.isLocal, isAttached { try Seeding(table: table).adopt(row.key, in: database) }
        }
        return !rows.isEmpty
    }

    /// A row whose edit was removed.
    private struct DiscardedRow {
        let key: SQLValue
        let image: [(column: CapturedTable.Column, value: SQLValue)]
        /// Whether it had more than what waits for columns of the server.
        let isEdited: Bool
        /// Whether the server has it, as far as is known, or the file had it before Weir.
        let exists: Bool
        /// Whether the server does not have it.
        let isLocal: Bool
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
        // What is being sent counts as the server's.
        let isRemote = try database.value(
            """
            SELECT coalesce((SELECT NOT deleted FROM \(table.sent) WHERE id = ?1),
                (SELECT NOT deleted FROM \(table.state) WHERE id = ?1))
            """, [key])
        let isLocal = try isRemote == .null && wasThere(key)
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
        try TrackedOutcomes(database: database).complete(
            table.number, key, isSent: false, TrackedOutcomes.Result(status: .discarded))
        let exists = isRemote == .integer(1) || isLocal
        if !exists { try RowOwners.forget(key, ofTable: table.number, in: database) }
        let others = (edit ?? []).filter { edited in !first.contains { $0.column.number == edited.column.number } }
        return DiscardedRow(
            key: key, image: others + first, isEdited: edit != nil, exists: edit == nil || exists, isLocal: isLocal)
    }

    /// Whether a row that the server does not have was there before its edit: the app had it before Weir, or the server has refused it.
    ///
    /// Where an earlier version has recorded the edit, one that has an insertion counts as that of a new row.
    private func wasThere(_ key: SQLValue) throws -> Bool {
        try database.value(
            "SELECT 1 FROM \(table.edit) WHERE id = ?1 AND coalesce(was_there, m0 <> -1)", [key]) != nil
    }
}

extension Weir {
    /// Takes back the changes of a row that the server has not received: the row becomes what the server has, in its newest version
    /// that was received.
    ///
    /// A row that the server does not have is removed if the app has inserted it since Weir captures changes, and otherwise becomes what
    /// it was.
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
        let account = try record.account
        let writer = try RowWriter(captured, server, account: account?.syncID ?? "", in: file)
        let discarding = Discarding(writer: writer, isAttached: account != nil)
        let wasPending: Bool
        do {
            wasPending = try file.applying { _ in try discarding.discard(key) }
        } catch let error as RowWriter.Unwritable {
            throw WeirError.taken(reason: error.reason)
        }
        if wasPending { await wrote() }
        return wasPending
    }
}
