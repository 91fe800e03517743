/// Takes back what the app has written and the server has not received.
struct Discarding {
    let writer: RowWriter

    /// Removes the edit of a row and gives the row the server's newest values, as part of the open transaction, whose changes are not
    /// captured.
    ///
    /// - Returns: whether the row had an edit that is not being sent.
    func discard(_ key: SQLValue) throws -> Bool {
        let (table, database) = (writer.table, writer.database)
        try LogFolding(table: table).fold(in: database)
        let words = (0..<table.words).map { "v\($0)" }
        let edit = try database.map(
            "SELECT \((words + table.columns.map(\.side)).joined(separator: ", ")) FROM \(table.edit) WHERE id = ?1",
            [key]
        ) { row in
            let known = RowWriter.Masks(words: words.indices.map { row.integer(at: $0) })
            return table.columns.enumerated().filter { known.contains($0.element) }
                .map { (column: $0.element, value: row.value(at: words.count + $0.offset)) }
        }.first
        let held = HeldColumns(database: database, table: table)
        let values = try held.values(of: key)
        guard edit != nil || !values.isEmpty else { return false }
        try held.remove(key)
        guard let edit else {
            try writer.restore(key, values, isDeletion: false)
            return true
        }
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
        // What is being sent counts as the server's.
        let exists = try database.value(
            """
            SELECT coalesce((SELECT NOT deleted FROM \(table.sent) WHERE id = ?1),
                (SELECT NOT deleted FROM \(table.state) WHERE id = ?1), 0)
            """, [key])
        if exists == .integer(1) {
            // What is held was changed before.
            let others = edit.filter { edited in !values.contains { $0.column.number == edited.column.number } }
            try writer.restore(key, others + values, isDeletion: true)
        } else {
            try writer.delete(key)
        }
        return true
    }
}

extension Weir {
    /// Takes back the changes of a row that the server has not received: the row becomes what the server has, in its newest version
    /// that was received.
    ///
    /// Changes that are being sent are not taken back.
    ///
    /// - Parameters:
    ///   - table: one of those that were opened.
    ///   - key: the row's primary key.
    /// - Returns: whether the row had such changes.
    /// - Throws: `WeirError`, also if another row has a unique value that the row would get again.
    @discardableResult
    public func discard(_ table: String, _ key: SQLValue) throws -> Bool {
        let file = try openFile
        let record = SessionRecord(database: file.database)
        guard let captured = file.tables.first(where: { foldedName($0.name) == foldedName(table) }),
            let account = try record.account?.syncID,
            let server = try record.schema()?.schema.table(for: captured.name)
        else { return false }
        defer { changes.update { $0 += 1 } }
        let writer = try RowWriter(captured, server, account: account, in: file.database)
        do {
            return try file.applying { _ in try Discarding(writer: writer).discard(key) }
        } catch let error as RowWriter.Unwritable {
            throw WeirError.taken(reason: error.reason)
        }
    }
}
