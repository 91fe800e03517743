/// Whose the rows are that the server does not have yet.
///
/// A row that it has is its owner's permanently. A new row is the account's, unless the app says otherwise (``Weir/setOwner(_:of:_:)``), or the row names a parent by a foreign key that is
/// of a linked owner whose rows the account may write: an item that is added to somebody's list is the list's owner's.
struct RowOwners {
    let database: Database
    /// Linked owners whose rows the account may write.
    private let writable: Set<String>
    /// Whether rows have other keys than before.
    private let hasKeyChanges: Bool

    init(database: Database) throws {
        self.database = database
        writable = try SessionRecord(database: database).writableOwners
        hasKeyChanges = try KeyChanges.exist(in: database)
    }

    /// The owner that a new row has by its parents; `nil` for the account.
    func inherited(_ key: SQLValue, of table: CapturedTable, among tables: [CapturedTable]) throws -> String? {
        if !hasKeyChanges && (writable.isEmpty || table.definition.foreignKeys.isEmpty) { return nil }
        // The account's own, since it is known or was said to be.
        let isDecided = """
            SELECT 1 WHERE \(Self.isKnown("?1", table.number, table))
            UNION ALL SELECT 1 FROM weir_owner WHERE tbl = ?2 AND id = ?1
            """
        if try database.value(isDecided, [key, .integer(Int64(table.number))]) != nil { return nil }
        if hasKeyChanges, let owner = try formerOwner(key, of: table) { return owner }
        for (foreign, parent) in Self.parents(of: table, among: tables) {
            let name = "t.\(quoted(foreign.columns[0]))"
            // The parent is the row that the table has, before one that waits under the same key.
            let owner = try database.value(
                """
                SELECT CASE WHEN \(Self.isKnown(name, parent.number, parent)) THEN r.owner
                    WHEN o.id IS NOT NULL THEN o.sync_id
                    WHEN NOT EXISTS (SELECT 1 FROM \(parent.quotedName) AS p WHERE p.\(parent.quotedKey) = \(name))
                        THEN coalesce(r.owner, w.sync_id) END
                FROM \(table.quotedName) AS t
                LEFT JOIN \(parent.state) AS r ON r.id = \(name)
                LEFT JOIN weir_parked AS w ON w.tbl = \(parent.number) AND w.key = \(name)
                LEFT JOIN weir_owner AS o ON o.tbl = \(parent.number) AND o.id = \(name)
                WHERE t.\(table.quotedKey) = ?1
                """, [key])
            if let owner = owner?.string, writable.contains(owner) { return owner }
        }
        return nil
    }

    /// A condition for keys of rows that the server has, whose owners are decided.
    ///
    /// - Parameter table: `nil` for one that is no longer there.
    static func isKnown(_ key: String, _ number: Int, _ table: CapturedTable?) -> String {
        "EXISTS (SELECT 1 FROM \(CapturedTable.state(number)) AS r WHERE r.id = \(key)\(isLive(table)))"
    }

    /// A further condition for the server's rows `r` that say whose the rows under their keys are.
    ///
    /// The key of a deleted row says nothing of a new one where it is an integer, since SQLite gives these again.
    private static func isLive(_ table: CapturedTable?) -> String {
        table?.definition.keyKind == .integer ? " AND NOT r.deleted" : ""
    }

    /// Whether a row that the app has inserted under the key of a deleted one is another row, since SQLite gives integers again.
    ///
    /// That is so if it is not that one's owner's, by its parents or by what the app has said.
    func isReused(_ row: PendingRow, of table: CapturedTable, among tables: [CapturedTable]) throws -> Bool {
        let deleted = try database.value("SELECT owner FROM \(table.state) WHERE id = ?1", [row.key])?.string
        return try isReused(row, of: table, among: tables, notFor: deleted)
    }

    /// Whether a row that the app has inserted under the integer of a deleted one is not this owner's.
    func isReused(
        _ row: PendingRow, of table: CapturedTable, among tables: [CapturedTable], notFor owner: String?
    ) throws -> Bool {
        guard row.isOverTombstone, table.definition.keyKind == .integer else { return false }
        return try (said(row.key, table) ?? inherited(row.key, of: table, among: tables)) != owner
    }

    /// The owner that the app has said a row has; `nil` for the account, and if it has said nothing.
    func said(_ key: SQLValue, _ table: CapturedTable) throws -> String? {
        try database.value(
            "SELECT sync_id FROM weir_owner WHERE tbl = ?1 AND id = ?2", [.integer(Int64(table.number)), key])?.string
    }

    /// The owner of the row under the keys that it had before: a changed key does not make it the account's.
    private func formerOwner(_ key: SQLValue, of table: CapturedTable) throws -> String? {
        try database.map(
            """
            WITH RECURSIVE former (id) AS (
                SELECT old FROM weir_key_change WHERE tbl = ?1 AND new = ?2
                UNION SELECT c.old FROM weir_key_change AS c JOIN former AS f ON c.tbl = ?1 AND c.new = f.id)
            SELECT coalesce(r.owner, o.sync_id) FROM former AS f LEFT JOIN \(table.state) AS r ON r.id = f.id
            LEFT JOIN weir_owner AS o ON o.tbl = ?1 AND o.id = f.id
            WHERE coalesce(r.owner, o.sync_id) IS NOT NULL LIMIT 1
            """, [.integer(Int64(table.number)), key]
        ) { $0.string(at: 0) }.first
    }

    /// Records the owner of a row that was not sent, as the app says it; `nil` is the account.
    ///
    /// - Returns: whether it is so; a row that was sent keeps its owner.
    static func set(_ owner: String?, of key: SQLValue, _ table: CapturedTable, in database: Database) throws -> Bool {
        let known = """
            SELECT 1 WHERE \(isKnown("?1", table.number, table)) UNION ALL SELECT 1 FROM \(table.sent) WHERE id = ?1
            """
        if try database.value(known, [key]) != nil { return false }
        let account = try SessionRecord(database: database).account?.syncID
        try RowOwners(database: database).record(owner == account ? nil : owner, of: key, table)
        return true
    }

    /// Records the owner of a row that the server does not have; `nil` is the account.
    func record(_ owner: String?, of key: SQLValue, _ table: CapturedTable) throws {
        try database.run(
            "INSERT OR REPLACE INTO weir_owner (tbl, id, sync_id) VALUES (?1, ?2, ?3)",
            [.integer(Int64(table.number)), key, owner.map { .text($0) } ?? .null])
    }

    /// The row is at the server, or is gone.
    static func forget(_ key: SQLValue, ofTable number: Int, in database: Database) throws {
        try database.run("DELETE FROM weir_owner WHERE tbl = ?1 AND id = ?2", [.integer(Int64(number)), key])
    }

    /// Records which new rows have this owner by their parents, or by the keys that they had before, before those rows are removed.
    func recordInherited(from owner: String, among tables: [CapturedTable]) throws {
        var found: Int
        repeat {
            found = 0
            for table in tables {
                found += try database.run(
                    """
                    INSERT OR IGNORE INTO weir_owner (tbl, id, sync_id)
                    SELECT ?2, c.new, ?1 FROM weir_key_change AS c WHERE c.tbl = ?2
                    AND (c.old IN (SELECT id FROM \(table.state) WHERE owner = ?1)
                        OR c.old IN (SELECT id FROM weir_owner WHERE tbl = ?2 AND sync_id = ?1))
                    AND NOT \(Self.isKnown("c.new", table.number, table))
                    """, [.text(owner), .integer(Int64(table.number))])
                guard writable.contains(owner) else { continue }
                for (foreign, parent) in Self.parents(of: table, among: tables) {
                    let column = "t.\(quoted(foreign.columns[0]))"
                    found += try database.run(
                        """
                        INSERT OR IGNORE INTO weir_owner (tbl, id, sync_id)
                        SELECT \(table.number), e.id, ?1 FROM \(table.edit) AS e
                        JOIN \(table.quotedName) AS t ON \(PendingRow.join(table))
                        WHERE NOT \(Self.isKnown("e.id", table.number, table))
                        AND (\(column) IN (SELECT r.id FROM \(parent.state) AS r WHERE r.owner = ?1\(Self.isLive(parent)))
                            OR \(column) IN (SELECT id FROM weir_owner WHERE tbl = \(parent.number) AND sync_id = ?1))
                        """, [.text(owner)])
                }
            }
            // Rows whose parents are new themselves.
        } while found > 0
    }

    /// The foreign keys that name the primary key of a synced table.
    private static func parents(
        of table: CapturedTable, among tables: [CapturedTable]
    ) -> [(ForeignKey, CapturedTable)] {
        table.definition.foreignKeys.compactMap { foreign in
            tables.first { foreign.namesKey(of: $0) }.map { (foreign, $0) }
        }
    }
}

/// An owner whose rows the account has: itself, or one that it is linked to.
public struct Owner: Hashable, Sendable {
    /// The owner's syncId.
    public let syncID: String
    /// What the account may do with the owner's rows.
    public let access: Access

    /// Makes an owner.
    public init(syncID: String, access: Access) {
        self.syncID = syncID
        self.access = access
    }
}

extension Weir {
    /// Says whose a new row is, before it is sent: a linked owner whose rows the account may write (``SyncStatus/owners``).
    ///
    /// Without it a row belongs to the owner of the row that it names by a foreign key, if the account may write that owner's rows, and else to the account.
    /// Call it right after the insertion, before the next session, or within a write of Weir's, where the row and its owner are written together:
    /// ``WriteConnection/setOwner(_:of:_:)``.
    ///
    /// - Parameters:
    ///   - owner: the owner's syncId; `nil` for the account itself.
    ///   - table: one of the tables that were opened.
    ///   - key: the row's primary key.
    /// - Returns: whether it is so; a row that was sent keeps its owner. A new row under the integer key of a deleted one is another row.
    /// - Throws: `WeirError`.
    @discardableResult
    public func setOwner(_ owner: String?, of table: String, _ key: SQLValue) throws -> Bool {
        let database = try openFile.database
        let captured = try captured([table])[0]
        return try database.transaction { try RowOwners.set(owner, of: key, captured, in: database) }
    }
}
