/// What happens to all rows of an owner: those of one that is no longer granted are removed, and edits of them kept aside; of one whose
/// history begins again, the versions are forgotten.
///
/// It is done in slices. A process that is killed in between receives the same answer again, since the vector still names the owner.
struct OwnerRows {
    enum End {
        case revoked
        case resync
    }

    let applying: Applying
    let owner: String
    let end: End
    /// The tables that are left; `nil` before the first slice.
    private var tables: [(number: Int, table: CapturedTable?)]?
    /// The key after which the table is continued.
    private var last: SQLValue?

    init(applying: Applying, owner: String, end: End) {
        self.applying = applying
        self.owner = owner
        self.end = end
    }

    private var file: ClientFile { applying.file }
    private var database: Database { applying.database }
    /// Rows of the account itself name no owner.
    private var recordedOwner: SQLValue { end == .resync && owner == applying.account ? .null : .text(owner) }

    /// Handles the next rows, in one transaction of some milliseconds.
    ///
    /// - Returns: whether others follow.
    mutating func next() throws -> Bool {
        // Also of tables that are no longer listed.
        if tables == nil, end == .revoked { try recordNewRows() }
        var left = try tables ?? CapturedTable.registered(in: database)
        defer { tables = left }
        while let (number, table) = left.last {
            // That of a table which is no longer listed has not been folded.
            if let table, last == nil { try LogFolding(table: table).foldInSlices(in: database) }
            // Read before the transaction: rows of this table are written by sessions alone.
            let keys = try database.map(
                """
                SELECT id FROM (SELECT id FROM \(CapturedTable.state(number)) WHERE owner IS ?1
                UNION SELECT id FROM weir_owner AS o WHERE tbl = \(number) AND sync_id IS ?1
                AND NOT EXISTS (SELECT 1 FROM \(CapturedTable.state(number)) AS r WHERE r.id = o.id))
                \(last == nil ? "" : "WHERE id > ?2") ORDER BY id LIMIT \(applying.slice)
                """, [recordedOwner] + (last.map { [$0] } ?? [])
            ) { $0.value(at: 0) }
            last = keys.last
            if keys.isEmpty {
                left.removeLast()
                continue
            }
            try file.foldLogs()
            try file.applying { _ in
                try file.fold()
                switch end {
                case .resync: for key in keys { try forget(key, number) }
                case .revoked:
                    // If the owner is granted again before the last slice, all its rows come again.
                    try Vector(database: database).forget(owner)
                    for key in keys {
                        if let table { try remove(key, table) }
                        try database.run("DELETE FROM \(CapturedTable.state(number)) WHERE id = ?1", [key])
                        try RowOwners.forget(key, ofTable: number, in: database)
                    }
                }
            }
            return true
        }
        return try dropParked()
    }

    /// Rows that the app has added to those of the owner, and that were not sent, are the owner's, too.
    private func recordNewRows() throws {
        try file.foldLogs()
        try database.transaction {
            try file.fold()
            try RowOwners(database: database).recordInherited(from: owner, among: file.tables)
        }
    }

    private func dropParked() throws -> Bool {
        let dropped = try database.run(
            """
            DELETE FROM weir_parked WHERE (name, id, sync_id) IN
            (SELECT name, id, sync_id FROM weir_parked WHERE sync_id = ?1 LIMIT \(applying.slice))
            """, [.text(owner)])
        return dropped == applying.slice
    }

    /// The row's version was one of another history.
    private func forget(_ key: SQLValue, _ number: Int) throws {
        for side in [CapturedTable.edit(number), CapturedTable.sent(number)] {
            try database.run("UPDATE \(side) SET base = NULL, seen = NULL WHERE id = ?1", [key])
        }
        // Whose rows these are is remembered until all have come again: the owner may be revoked before.
        let state = CapturedTable.state(number)
        try database.run(
            owner == applying.account
                ? "DELETE FROM \(state) WHERE id = ?1" : "UPDATE \(state) SET time_stamp = 0 WHERE id = ?1", [key])
    }

    private func remove(_ key: SQLValue, _ table: CapturedTable) throws {
        let known = applying.schema.table(for: table.name)
        if let pending = try PendingRow(key, of: table, as: known, query: PendingRow.query(table), in: database),
            let change = pending.change
        {
            let server = known ?? pending.unknownTable(table)
            let writer = applying.writers[server.name]
            let whole = change.isDeletion ? nil : try writer?.row(key).map { writer?.json(of: $0) ?? [] }
            var (json, message): ([UInt8], String)
            do {
                (json, message) = (try pending.json(change, of: table, as: server), "")
            } catch let error as WireValue.Unsendable {
                // What can be sent of it.
                (json, message) = (
                    Array(#"{"values":"#.utf8) + (whole ?? Array("{}".utf8)) + Array("}".utf8), error.reason
                )
            }
            var new = KeptEdits.New(
                table: table.number, key: key, code: "revoked", message: message, change: json[...])
            new.whole = whole
            let kept = try KeptEdits(database: database).keep(new)
            try TrackedOutcomes(database: database).complete(
                table.number, key, isSent: false, TrackedOutcomes.Result(status: .refused, code: "revoked", kept: kept))
        }
        try database.run("DELETE FROM \(table.quotedName) WHERE \(RowWriter.isKey(table))", [key])
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
        if file.isParent(table) { try OrphanRows.recordRemoval(of: key, from: table, in: database) }
    }
}

extension Applying {
    /// Forgets rows of other owners that have not come again.
    func forgetAbsentRows() throws {
        for (number, _) in try CapturedTable.registered(in: database) {
            try database.transaction {
                _ = try database.run("DELETE FROM \(CapturedTable.state(number)) WHERE time_stamp = 0")
            }
        }
    }
}

extension PendingRow {
    /// A description of a table that the server does not have any more, with which the row's values are shown as they are.
    fileprivate func unknownTable(_ table: CapturedTable) -> ServerSchema.Table {
        let columns = zip(table.columns, values).map { column, value in
            let type: ColumnType =
                switch value {
                case .integer: .integer
                case .real: .real
                case .blob: .bytes
                case .null, .text: .text
                }
            return ServerSchema.Table.Column(name: column.name, type: type)
        }
        return ServerSchema.Table(name: table.name, policy: .lastSyncWins, columns: columns)
    }
}
