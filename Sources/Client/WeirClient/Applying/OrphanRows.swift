import JSONText

/// What becomes of a row whose foreign key names a row that is not there, after everything of an answer was applied: another device has
/// deleted the parent, or the server has never had it.
///
/// Weir's connection enforces no foreign keys, since rows come before their parents. A row with an edit that is pending stays until the edit
/// has its outcome, as does one that has values which the server does not have: in its columns that the server lacks. One that a trigger of
/// the app does not let go stays as well.
public enum OrphanPolicy: Sendable {
    /// The row is removed from the table and kept, shown by ``Weir/parkedRows()``: it is written again as soon as its parent is there.
    case park
    /// The row is deleted, as by the app: on all devices.
    case delete
    /// The row stays in the table without a parent, for apps whose connections enforce no foreign keys.
    case keep
}

/// The rows whose parents are missing: recorded as they are written and as parents are removed, and settled once nothing is left to pull.
struct OrphanRows {
    /// How often a small answer, which is one transaction, looks for more.
    private static let mostRounds = 8

    private let applying: Applying
    /// The record after which the next ones follow.
    private var last: Record?

    private struct Record {
        let table: Int
        let key: SQLValue
    }

    init(applying: Applying) { self.applying = applying }

    private var file: ClientFile { applying.file }
    private var database: Database { applying.database }

    // MARK: Recording

    /// Records a row that was written and has no parent, as part of the open transaction.
    static func record(_ key: SQLValue, of table: CapturedTable, in database: Database) throws {
        try database.run(
            "INSERT OR IGNORE INTO weir_orphan (tbl, id) VALUES (?1, ?2)", [.integer(Int64(table.number)), key])
    }

    /// Records a row that was removed and may be a parent, as part of the open transaction.
    static func recordRemoval(of key: SQLValue, from table: CapturedTable, in database: Database) throws {
        try database.run(
            "INSERT OR IGNORE INTO weir_removed (tbl, id) VALUES (?1, ?2)", [.integer(Int64(table.number)), key])
    }

    // MARK: Settling

    /// Settles the next rows, in one transaction.
    ///
    /// - Returns: whether others follow.
    mutating func next() throws -> Bool {
        if try !exist { return false }
        try file.foldLogs()
        if applying.orphans == .delete {
            // Captured, as the app's own deletions are.
            return try database.transaction {
                try file.fold()
                return try step()
            }
        }
        return try file.applying { _ in
            try file.fold()
            return try step()
        }
    }

    /// Settles all rows if they are few, as part of the open transaction, in which nothing is captured.
    ///
    /// - Returns: whether none are left.
    mutating func settleFew() throws -> Bool {
        if try !exist { return true }
        if applying.orphans == .delete { return false }
        for _ in 0..<Self.mostRounds where try !step() { return true }
        return false
    }

    private var exist: Bool {
        get throws { try hasRemovals || database.value("SELECT 1 FROM weir_orphan LIMIT 1") != nil }
    }

    private var hasRemovals: Bool { get throws { try database.value("SELECT 1 FROM weir_removed LIMIT 1") != nil } }

    private mutating func step() throws -> Bool {
        if try hasRemovals {
            try findChildren()
            last = nil
            return true
        }
        let records = try database.map(
            "SELECT tbl, id FROM weir_orphan WHERE (tbl, id) > (?1, ?2) ORDER BY tbl, id LIMIT \(applying.slice)",
            [.integer(Int64(last?.table ?? 0)), last?.key ?? .null]
        ) { Record(table: Int($0.integer(at: 0)), key: $0.value(at: 1)) }
        for record in records {
            let table = file.tables.first { $0.number == record.table }
            if let table, try settle(record.key, of: table) { continue }
            try database.run(
                "DELETE FROM weir_orphan WHERE tbl = ?1 AND id = ?2", [.integer(Int64(record.table)), record.key])
        }
        last = records.last
        return try !records.isEmpty || hasRemovals
    }

    /// Records the children of rows that were removed.
    private func findChildren() throws {
        let removed = try database.map("SELECT DISTINCT tbl FROM weir_removed") { Int($0.integer(at: 0)) }
        for parent in file.tables where removed.contains(parent.number) {
            for child in file.tables {
                for foreign in child.definition.foreignKeys where foreign.isReference(to: parent) {
                    // By an index of the child's where it has one; else the table is read once.
                    let isChild =
                        foreign.namesKey(of: parent) && !parent.definition.hasKeyCollation
                        ? "t.\(quoted(foreign.columns[0])) IN (SELECT id FROM weir_removed WHERE tbl = \(parent.number))"
                        : foreign.isUnmet
                    try database.run(
                        """
                        INSERT OR IGNORE INTO weir_orphan (tbl, id)
                        SELECT \(child.number), t.\(child.quotedKey) FROM \(child.quotedName) AS t WHERE \(isChild)
                        """)
                }
            }
        }
        try database.run("DELETE FROM weir_removed")
    }

    // MARK: One row

    /// A row without a parent, as it is in the table.
    private struct Orphan {
        let values: [SQLValue]
        let timeStamp: Int64
        let owner: String?
    }

    /// - Returns: whether it is to be looked at again with the next answer.
    private func settle(_ key: SQLValue, of table: CapturedTable) throws -> Bool {
        guard let condition = table.isOrphan, let server = applying.schema.table(for: table.name),
            let writer = applying.writers[server.name], applying.orphans != .keep || writer.mayDifferInCase
        else { return false }
        if try table.hasEdit(key, in: database) { return true }
        if writer.mayDifferInCase { try respell(key, writer) }
        if applying.orphans == .keep { return false }
        let columns = ["r.time_stamp", "r.owner"] + table.columns.map { "t.\(quoted($0.name))" }
        // Not one that the server does not know: the app has not adopted it.
        let found = try database.map(
            """
            SELECT \(columns.joined(separator: ", ")) FROM \(table.quotedName) AS t JOIN \(table.state) AS r ON r.id = ?1
            WHERE t.\(table.quotedKey) = ?1 AND NOT r.deleted AND r.time_stamp > 0 AND (\(condition))
            """, [key]
        ) { row in
            Orphan(
                values: table.columns.indices.map { row.value(at: 2 + $0) }, timeStamp: row.integer(at: 0),
                owner: row.isNull(at: 1) ? nil : row.string(at: 1))
        }.first
        guard let orphan = found else { return false }
        // They are nowhere else.
        if try !HeldColumns(database: database, table: table).values(of: key).isEmpty { return false }
        let version = applying.version(orphan.timeStamp, of: key, orphan.owner, writer)
        if applying.orphans == .delete {
            // The server would refuse it.
            let writable = try SessionRecord(database: database).writableOwners
            guard orphan.owner.map(writable.contains) ?? true else { return false }
            guard try applying.remove(key, from: table, version) else { return false }
        } else {
            guard let row = try json(of: orphan, key, table, server) else { return false }
            let reason = try missingParent(of: key, table)
            guard try applying.remove(key, from: table, version) else { return false }
            try park(row, reason, table)
            try database.run("DELETE FROM \(table.state) WHERE id = ?1", [key])
        }
        if file.isParent(table) { try Self.recordRemoval(of: key, from: table, in: database) }
        return false
    }

    /// Spells what the row names as its parents' keys, which may have come after it.
    private func respell(_ key: SQLValue, _ writer: RowWriter) throws {
        guard let known = try KnownVersion(key, of: writer.table, in: database) else { return }
        let isCaptured = applying.orphans == .delete
        if isCaptured { try database.run("INSERT INTO weir_applying (active) VALUES (1)") }
        let version = applying.version(known.timeStamp, of: key, known.owner, writer)
        do {
            try applying.refusable(Refusals.Step(version: version)) { try writer.respellReferences(of: key) }
        } catch is RowWriter.Unwritable {
            // It stays a row without a parent.
        }
        if isCaptured { try database.run("DELETE FROM weir_applying") }
    }

    /// The row as the server sends it; `nil` if it has values that the server does not have.
    private func json(
        of orphan: Orphan, _ key: SQLValue, _ table: CapturedTable, _ server: ServerSchema.Table
    ) throws -> [UInt8]? {
        guard let id = table.definition.keyKind.id(of: key) else { return nil }
        var json = JSONWriter()
        json.beginObject()
        json.member("table", server.name)
        json.name("id")
        json.value(id.span)
        json.member("syncId", orphan.owner ?? applying.account)
        json.member("timeStamp", orphan.timeStamp)
        json.member("deleted", false)
        json.name("values")
        json.beginObject()
        for (column, value) in zip(table.columns, orphan.values) {
            guard let target = server.column(for: column.name), target.type != .unknown else {
                if value == .null { continue }
                return nil
            }
            json.name(target.name)
            do {
                try WireValue.write(value, as: target.type, to: &json)
            } catch is WireValue.Unsendable {
                return nil
            }
        }
        json.endObject()
        json.endObject()
        return json.take()
    }

    private func missingParent(of key: SQLValue, _ table: CapturedTable) throws -> String {
        let unmet = try table.definition.foreignKeys.first { foreign in
            try database.value(
                "SELECT 1 FROM \(table.quotedName) AS t WHERE t.\(table.quotedKey) = ?1 AND \(foreign.isUnmet)", [key])
                != nil
        }
        let parent = unmet.map { "\($0.columns.joined(separator: ", ")) names no row of \($0.parent)" }
        return "its parent is missing: \(parent ?? table.name)"
    }

    private func park(_ row: [UInt8], _ reason: String, _ table: CapturedTable) throws {
        var reader = JSONReader(row)
        try ParkedRows.park(try ServerRow(&reader), reason, of: table, isOrphan: true, in: database)
    }
}
