import JSONText

/// What happens to all rows of an owner: those of one that is no longer granted are removed, and edits of them kept aside; of one whose
/// history begins again, the versions are forgotten, and then those that have not come again are removed if they may only be read.
///
/// It is done in slices. A process that is killed in between receives the same answer again, since the vector still names the owner.
struct OwnerRows {
    enum End {
        case revoked
        case resync
        /// Of rows that the new history does not have.
        case absence

        /// The code of edits that are kept aside.
        fileprivate var code: String { self == .absence ? "deleted" : "revoked" }
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
        var left =
            try tables
            ?? (end == .absence
                ? file.tables.map { (number: $0.number, table: $0) } : CapturedTable.registered(in: database))
        defer { tables = left }
        while let (number, table) = left.last {
            // That of a table which is no longer listed has not been folded.
            if let table, last == nil { try LogFolding(table: table).foldInSlices(in: database) }
            // Read before the transaction: rows of this table are written by sessions alone.
            let state = "SELECT id FROM \(CapturedTable.state(number)) AS r WHERE owner IS ?1"
            let keys = try database.map(
                end == .absence
                    ? "\(state) AND \(applying.isAbsent(number)) ORDER BY id LIMIT \(applying.slice)"
                    : """
                    SELECT id FROM (\(state)
                    UNION SELECT id FROM weir_owner AS o WHERE tbl = \(number) AND sync_id IS ?1
                    AND NOT \(RowOwners.isKnown("o.id", number, table)))
                    \(last == nil ? "" : "WHERE id > ?2") ORDER BY id LIMIT \(applying.slice)
                    """, [recordedOwner] + (end == .absence ? [] : last.map { [$0] } ?? [])
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
                case .resync:
                    let hasKept = try KeptEdits(database: database).areOpen
                    for key in keys { try forget(key, number, hasKept: hasKept) }
                case .revoked, .absence:
                    // If the owner is granted again before the last slice, all its rows come again.
                    if end == .revoked { try Vector(database: database).forget(owner) }
                    for key in keys {
                        let isRemoved = try table.map { try remove(key, $0) } ?? true
                        // It may be that of a deleted row of the account, whose key was given again.
                        try database.run(
                            "DELETE FROM \(CapturedTable.state(number)) WHERE id = ?1 AND owner IS ?2",
                            [key, recordedOwner])
                        if isRemoved { try RowOwners.forget(key, ofTable: number, in: database) }
                    }
                }
            }
            return true
        }
        file.refusals.forgetRemovals(of: owner)
        return try end == .absence ? false : dropParked()
    }

    /// Rows that the app has added to those of the owner, and that were not sent, are the owner's, too.
    private func recordNewRows() throws {
        try file.foldLogs()
        try database.transaction {
            try file.fold()
            try RowOwners(database: database).recordInherited(from: owner, among: file.tables)
        }
    }

    /// Drops rows that wait: of another history, they come again.
    ///
    /// But an orphan may be nowhere else, if the new history has lost it. It stays, without a version, until everything has come.
    private func dropParked() throws -> Bool {
        try database.transaction(writesRows: false) {
            let isKept = try end == .resync && (owner == applying.account || isWritable)
            if isKept {
                try database.run(
                    "UPDATE weir_parked SET time_stamp = 0 WHERE sync_id = ?1 AND orphan AND time_stamp > 0",
                    [.text(owner)])
            }
            let dropped = try database.run(
                """
                DELETE FROM weir_parked WHERE (name, id, sync_id) IN
                (SELECT name, id, sync_id FROM weir_parked WHERE sync_id = ?1 \(isKept ? "AND time_stamp > 0" : "")
                LIMIT \(applying.slice))
                """, [.text(owner)])
            return dropped == applying.slice
        }
    }

    private var isWritable: Bool {
        get throws { try SessionRecord(database: database).writableOwners.contains(owner) }
    }

    /// The row's version was one of another history.
    private func forget(_ key: SQLValue, _ number: Int, hasKept: Bool) throws {
        for side in [CapturedTable.edit(number), CapturedTable.sent(number)] {
            try database.run("UPDATE \(side) SET base = NULL, seen = NULL WHERE id = ?1", [key])
        }
        if hasKept { try KeptEdits(database: database).forgetServerRow(number, key) }
        // Whose rows these are is remembered until all have come again: the owner may be revoked before, or another's row of this key come first.
        try database.run(
            "UPDATE \(CapturedTable.state(number)) SET time_stamp = 0 WHERE id = ?1 AND owner IS ?2",
            [key, recordedOwner])
    }

    /// - Returns: `false` if the row stays: it is another owner's new row, or a trigger of the app does not let it go. Then it is still the
    ///   owner's, so that changes of it are not sent as the account's.
    private func remove(_ key: SQLValue, _ table: CapturedTable) throws -> Bool {
        let known = applying.schema.table(for: table.name)
        if let pending = try PendingRow(key, of: table, as: known, query: PendingRow.query(table), in: database),
            let change = pending.change
        {
            // It is not the owner's, but has the key of a row that was.
            if try RowOwners(database: database).isReused(pending, of: table, among: file.tables, notFor: owner) {
                return false
            }
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
            try keep(key, table, json, message, whole: whole)
        }
        try keepHeld(key, table)
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
        let row = Refusals.Version(table: table.name, id: "\(key)", owner: owner, timeStamp: Refusals.anyVersion)
        guard try applying.remove(key, from: table, row) else {
            try RowOwners(database: database).record(owner, of: key, table)
            return false
        }
        if file.isParent(table) { try OrphanRows.recordRemoval(of: key, from: table, in: database) }
        return true
    }
}

extension OwnerRows {
    private func keep(
        _ key: SQLValue, _ table: CapturedTable, _ change: [UInt8], _ message: String = "", whole: [UInt8]?
    ) throws {
        var new = KeptEdits.New(table: table.number, key: key, code: end.code, message: message, change: change[...])
        new.whole = whole
        try KeptEdits(database: database).refuse(new, isSent: false)
    }

    /// Keeps the values that wait for columns of the server, which no edit has.
    private func keepHeld(_ key: SQLValue, _ table: CapturedTable) throws {
        let held = HeldColumns(database: database, table: table)
        let columns = try held.values(of: key).map(\.column)
        guard !columns.isEmpty else { return }
        try held.remove(key)
        let names = columns.map { quoted($0.name) }.joined(separator: ", ")
        let values = try database.map(
            "SELECT \(names) FROM \(table.quotedName) WHERE \(RowWriter.isKey(table))", [key]
        ) { row in columns.indices.map { row.value(at: $0) } }.first
        guard let values, let id = table.definition.keyKind.id(of: key) else { return }
        var json = JSONWriter()
        try json.object { json in
            json.member("table", table.name)
            json.name("id")
            json.value(id.span)
            json.member("syncId", owner)
            json.name("values")
            try json.object { json in
                for (column, value) in zip(columns, values) {
                    var text = JSONWriter()
                    do { try WireValue.write(value, as: .holding(value), to: &text) } catch is WireValue.Unsendable {
                        continue
                    }
                    json.name(column.name)
                    json.raw(text.take())
                }
            }
        }
        try keep(key, table, json.take(), whole: nil)
    }
}

extension Applying {
    /// A condition for states `r` of rows that have not come again.
    ///
    /// A row that has come, and waits since the table cannot have it, is the server's.
    fileprivate func isAbsent(_ number: Int) -> String {
        """
        r.time_stamp = 0 AND NOT EXISTS (SELECT 1 FROM weir_parked AS w
        WHERE w.tbl = \(number) AND w.key = r.id AND w.sync_id = coalesce(r.owner, \(literal(account))))
        """
    }

    /// The owners of whose rows some have not come again, and may only be read.
    func ownersOfAbsentRows() throws -> [String] {
        let writable = try SessionRecord(database: database).writableOwners
        // Rows of tables that are not listed come again once these are.
        let owners = try file.tables.flatMap { table in
            try database.map(
                "SELECT DISTINCT owner FROM \(table.state) AS r WHERE \(isAbsent(table.number)) AND owner IS NOT NULL"
            ) { $0.string(at: 0) }
        }
        return Set(owners).subtracting(writable).sorted()
    }

    /// Orphans that have not come again, as JSON of the contract.
    var absentOrphans: [[UInt8]] {
        get throws {
            try database.map("SELECT row FROM weir_parked WHERE orphan AND time_stamp = 0") { $0.bytes(at: 0) }
        }
    }

    /// Writes orphans that have not come again into their tables, in one transaction, and adopts them: the server has lost them.
    ///
    /// One that the table cannot have is kept, and tried again when everything has come the next time.
    func writeAbsent(_ orphans: some Sequence<[UInt8]>) throws {
        try file.foldLogs()
        try file.applying { _ in
            try file.fold()
            for json in orphans {
                var reader = JSONReader(json)
                try writeAbsentOrphan(try ServerRow(&reader))
            }
        }
    }

    private func writeAbsentOrphan(_ row: ServerRow) throws {
        guard let writer = writers[row.table], let key = writer.table.definition.keyKind.key(ofID: row.id),
            try !writer.table.has(key, in: database)
        else { return }
        let version = Refusals.Version(table: row.table, id: row.id, owner: row.syncID, timeStamp: 0)
        do {
            let values = writer.whole(try writer.rowValues(row.values, like: nil))
            try refusable(Refusals.Step(version: version)) { try writer.insert(key, writer.named(values)) }
        } catch is RowWriter.Unwritable {
            return
        } catch is JSONReader.Malformed {
            return
        }
        if row.syncID != account { try RowOwners(database: database).record(row.syncID, of: key, writer.table) }
        try ParkedRows.remove(row, in: database)
        try Seeding(table: writer.table).adopt(key, in: database)
    }

    /// Forgets rows that have not come again, but for whose they are: they are sent again as the owner's.
    ///
    /// Those of a table that is not listed wait until it is: everything is pulled once more then.
    ///
    /// - Parameter isAdopting: whether they are adopted here, and not with all others that the server does not have.
    func forgetAbsentRows(isAdopting: Bool) throws {
        let unlisted = try database.map("SELECT number FROM weir_table WHERE NOT listed") { Int($0.integer(at: 0)) }
        for number in unlisted {
            let state = "SELECT 1 FROM \(CapturedTable.state(number)) WHERE time_stamp = 0"
            try database.run(
                "UPDATE weir_table SET incomplete = 1 WHERE number = ?1 AND EXISTS (\(state))",
                [.integer(Int64(number))])
        }
        for table in file.tables {
            let isAbsent = "\(isAbsent(table.number)) AND NOT r.deleted"
            try file.foldLogs()
            try database.transaction {
                try file.fold()
                // The app's table may have columns of these names.
                let row = "\(table.state) AS r JOIN \(table.quotedName) AS t ON t.\(table.quotedKey) = r.id"
                try database.run(
                    """
                    INSERT OR IGNORE INTO weir_owner (tbl, id, sync_id)
                    SELECT \(table.number), r.id, r.owner FROM \(row) WHERE \(isAbsent) AND r.owner IS NOT NULL
                    """)
                let keys =
                    try isAdopting ? database.map("SELECT r.id FROM \(row) WHERE \(isAbsent)") { $0.value(at: 0) } : []
                try database.run("DELETE FROM \(table.state) AS r WHERE \(self.isAbsent(table.number))")
                for key in keys { try Seeding(table: table).adopt(key, in: database) }
            }
        }
    }
}

extension ColumnType {
    /// The type of a column that the server does not have, in which a value is shown as it is.
    fileprivate static func holding(_ value: SQLValue) -> ColumnType {
        switch value {
        case .integer: .integer
        case .real: .real
        case .blob: .bytes
        case .null, .text: .text
        }
    }
}

extension PendingRow {
    /// A description of a table that the server does not have any more, with which the row's values are shown as they are.
    fileprivate func unknownTable(_ table: CapturedTable) -> ServerSchema.Table {
        let columns = zip(table.columns, values).map { column, value in
            ServerSchema.Table.Column(name: column.name, type: .holding(value))
        }
        return ServerSchema.Table(name: table.name, policy: .lastSyncWins, columns: columns)
    }
}
