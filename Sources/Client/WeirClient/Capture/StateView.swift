/// The view with the sync state of each row of a table, `weir_<table>_state`, as a CREATE VIEW statement.
///
/// It names none of the app's tables: SQLite refuses to rename a table while a view names one that is missing, as the twelve steps of a
/// schema change do in between. docs/adr/0042 describes its columns.
struct StateView {
    let number: Int
    let name: String

    init(of table: CapturedTable) {
        number = table.number
        name = Self.name(forTable: table.name)
    }

    /// The view's name for a table of this name.
    static func name(forTable table: String) -> String { "weir_\(table)_state" }

    /// A query for some rows looks up these alone, if SQLite can make the view's two halves part of the query: for that, their columns must
    /// have the same affinities.
    var sql: String {
        """
        CREATE VIEW \(quoted(name)) (id, state, is_pending, is_sent, is_seen, kept, code, parked, time_stamp, is_deleted, owner,
            written_by, written_by_owner, written_at) AS
        SELECT r.id, 'synced', 0, 0, \(isSeen), CAST(NULL AS INTEGER), CAST(NULL AS TEXT), CAST(NULL AS TEXT), r.time_stamp,
            CAST(0 AS INTEGER), r.owner,
            \(writer("knowledge_id")), \(writer("sync_id")), \(writtenAt)
        FROM \(state) AS r WHERE NOT r.deleted AND NOT (\(isTouched))
        UNION ALL
        SELECT k.id, \(stateOfTouched), \(isPending), \(isSent), 0, \(kept("number")), \(kept("code")), \(parked("reason")),
            \(version("r.time_stamp")), \(version("r.deleted")), \(version("r.owner")),
            \(version(writer("knowledge_id"))), \(version(writer("sync_id"))), \(version(writtenAt))
        FROM (\(touched)) AS k
        """
    }

    private var state: String { CapturedTable.state(number) }

    // MARK: The rows that the app or the server waits for

    private var touched: String {
        let sources = [
            "SELECT id FROM \(CapturedTable.edit(number))", "SELECT id FROM \(CapturedTable.sent(number))",
            "SELECT id FROM weir_log_\(number) WHERE id IS NOT NULL",
            "SELECT id FROM weir_aside WHERE tbl = \(number) AND resolution IS NULL",
            "SELECT key FROM weir_parked WHERE tbl = \(number) AND key IS NOT NULL",
        ]
        return sources.joined(separator: " UNION ")
    }

    /// Each of them is looked up by an index, but for the log, whose keys are read once in a query.
    private var isTouched: String {
        let indexed = [
            "\(CapturedTable.edit(number)) AS e WHERE e.id = r.id",
            "\(CapturedTable.sent(number)) AS s WHERE s.id = r.id",
            "weir_aside AS a WHERE a.tbl = \(number) AND a.id = r.id AND a.resolution IS NULL",
            "weir_parked AS p WHERE p.tbl = \(number) AND p.key = r.id AND p.key IS NOT NULL",
        ]
        return
            (indexed.map { "EXISTS (SELECT 1 FROM \($0))" } + [
                "r.id IN (SELECT id FROM weir_log_\(number) WHERE id IS NOT NULL)"
            ])
            .joined(separator: " OR ")
    }

    private var stateOfTouched: String {
        """
        CASE WHEN \(kept("code = 'conflict'")) THEN 'conflict' WHEN \(kept("1")) THEN 'refused'
            WHEN \(isPending) THEN 'pending' WHEN \(isSent) THEN 'sent' ELSE 'parked' END
        """
    }

    private var isPending: String {
        """
        (EXISTS (SELECT 1 FROM \(CapturedTable.edit(number)) AS e WHERE e.id = k.id)
            OR k.id IN (SELECT id FROM weir_log_\(number) WHERE id IS NOT NULL))
        """
    }

    private var isSent: String { "EXISTS (SELECT 1 FROM \(CapturedTable.sent(number)) AS s WHERE s.id = k.id)" }

    /// Of the newest change that is kept and not resolved; a conflict comes before a refusal.
    private func kept(_ column: String) -> String {
        """
        (SELECT \(column) FROM weir_aside AS a WHERE a.tbl = \(number) AND a.id = k.id AND a.resolution IS NULL
            ORDER BY a.code <> 'conflict', a.number DESC LIMIT 1)
        """
    }

    private func parked(_ column: String) -> String {
        """
        (SELECT \(column) FROM weir_parked AS p WHERE p.tbl = \(number) AND p.key = k.id AND p.key IS NOT NULL LIMIT 1)
        """
    }

    // MARK: The server's version

    private func version(_ value: String) -> String { "(SELECT \(value) FROM \(state) AS r WHERE r.id = k.id)" }

    private func writer(_ column: String) -> String {
        "(SELECT w.\(column) FROM weir_writer AS w WHERE w.number = r.writer)"
    }

    /// The server's timeStamps are microseconds since 1970, but of a server in tests.
    private var writtenAt: String { "strftime('%Y-%m-%dT%H:%M:%fZ', r.time_stamp / 1000000.0, 'unixepoch')" }

    /// An owner's rows come in the order of their timeStamps, so a vector that has come as far has everything before.
    private var isSeen: String {
        """
        ifnull(r.time_stamp <= (SELECT max(v.last_time_stamp) FROM weir_vector AS v
            WHERE v.sync_id = coalesce(r.owner, (SELECT value FROM weir_meta WHERE key = 'sync_id'))), 0)
        """
    }

    // MARK: Registration

    /// Creates the view, or replaces it unless it is as it must be.
    func update(in database: Database) throws {
        let key: [SQLValue] = [.integer(Int64(number))]
        let old = try database.value("SELECT state_view FROM weir_table WHERE number = ?1", key)?.string
        if old == name, try Self.text(of: name, in: database) == sql { return }
        try Self.drop(number, in: database)
        // It may be that of a table which was renamed, and whose view is replaced later.
        if let other = try database.integer("SELECT number FROM weir_table WHERE state_view = ?1", [.text(name)]) {
            try Self.drop(Int(other), in: database)
        }
        try database.execute(sql)
        try database.run("UPDATE weir_table SET state_view = ?2 WHERE number = ?1", key + [.text(name)])
    }

    /// Removes the view of a table, if it has one.
    static func drop(_ number: Int, in database: Database) throws {
        let key: [SQLValue] = [.integer(Int64(number))]
        guard let name = try database.value("SELECT state_view FROM weir_table WHERE number = ?1", key)?.string else {
            return
        }
        try database.execute("DROP VIEW IF EXISTS \(quoted(name))")
        try database.run("UPDATE weir_table SET state_view = NULL WHERE number = ?1", key)
    }

    private static func text(of name: String, in database: Database) throws -> String? {
        try database.value("SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?1", [.text(name)])?.string
    }
}
