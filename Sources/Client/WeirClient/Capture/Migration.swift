import Foundation

/// A change of the schema of synced tables by the app.
///
/// Capturing triggers name the columns of their tables, so SQLite refuses to drop one, and the twelve steps by which a table is created
/// again remove the triggers. While a migration runs, each table has one trigger instead that does nothing and names no column, by which
/// a table that is renamed is found again.
struct Migration {
    let database: Database

    /// Whether the file has Weir's tables; a migration of one that has none is none of Weir's concern.
    var concernsWeir: Bool {
        get throws {
            try database.value("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'weir_table'") != nil
        }
    }

    /// Ends capturing until the file is opened again, as part of the open transaction.
    ///
    /// - Parameter backfill: whether values of added columns are to be captured then, also if the process is killed meanwhile.
    func begin(backfill: Bool) throws {
        if backfill { try database.setMeta("backfill", .integer(1)) }
        let listed = try database.map("SELECT number FROM weir_table WHERE listed") { Int($0.integer(at: 0)) }
        for (number, table) in try CapturedTable.registered(in: database) where listed.contains(number) {
            guard let table else { continue }
            do {
                // What the app has done to a row shows while it is there.
                try LogFolding(table: table).fold(in: database)
            } catch let error as WeirError where error.isOfStatement {
                // The app may not register a collation any more that the migration removes: folded after it.
            }
        }
        for number in listed {
            let triggers = try CaptureTriggers.present(ofTable: number, in: database)
            for trigger in triggers { try database.execute("DROP TRIGGER \(quoted(trigger.name))") }
            guard let table = triggers.first?.table else { continue }
            try database.execute(
                """
                CREATE TRIGGER \(CaptureTriggers.prefix(ofTable: number))insert AFTER INSERT ON \(quoted(table)) WHEN 0
                BEGIN SELECT 1; END
                """)
        }
    }

    /// Captures the values of added columns, of rows that the server has or is sent, as if they were set now.
    ///
    /// Another device may have set them before. So nothing is sent until all rows were pulled, and then only values of columns that the
    /// server has no value of, or its default (``ClientFile/settleBackfills(_:)``).
    func captureBackfill(of columns: [CapturedTable.Column], in table: CapturedTable) throws {
        guard try database.meta("backfill") != nil else { return }
        let words = 0..<table.words
        let masks = words.map { word in
            let bits = columns.filter { $0.word == word }.map { "((t.\(quoted($0.name)) IS NOT NULL) * \($0.bit))" }
            return bits.isEmpty ? "0" : bits.joined(separator: " | ")
        }
        let anyValue = columns.map { "t.\(quoted($0.name)) IS NOT NULL" }.joined(separator: " OR ")
        let now = try database.value("SELECT julianday('now')") ?? .null
        // An edit keeps the time of the app's last change, by which it is known later whether the app has changed the row since.
        try LogFolding(table: table).fold(in: database)
        // The log's columns of values before stay NULL: the server had none.
        let captured = try database.run(
            """
            INSERT INTO \(table.log) (id, kind, at, \(words.map { "m\($0)" }.joined(separator: ", ")))
            SELECT r.id, \(LogKind.update.rawValue), coalesce(e.at, ?1), \(masks.joined(separator: ", "))
            FROM (SELECT id FROM \(table.state) WHERE NOT deleted UNION SELECT id FROM \(table.sent) WHERE NOT deleted) AS r
            JOIN \(table.quotedName) AS t ON t.\(table.quotedKey) = r.id
            LEFT JOIN \(table.edit) AS e ON e.id = r.id
            WHERE \(anyValue)
            """, [now])
        guard captured > 0 else { return }
        for column in columns {
            try database.run(
                "INSERT INTO weir_backfill (tbl, number, at) VALUES (?1, ?2, ?3)",
                [.integer(Int64(table.number)), .integer(Int64(column.number)), now])
        }
        try SessionRecord(database: database).setMustDrain(true)
    }
}

extension ClientFile {
    /// Gives up values of a backfill that the server has others of, and of which the app has changed nothing since; all rows were pulled.
    ///
    /// A default of the server's is what rows have in which nobody has set the column: the backfill comes first.
    ///
    /// - Parameter writers: of the tables that the server has.
    func settleBackfills(_ writers: [RowWriter]) throws {
        let backfills = try database.map("SELECT tbl, number, at FROM weir_backfill") {
            (table: Int($0.integer(at: 0)), column: Int($0.integer(at: 1)), at: $0.value(at: 2))
        }
        if backfills.isEmpty { return }
        try foldLogs()
        for backfill in backfills {
            if let table = tables.first(where: { $0.number == backfill.table }),
                let column = table.columns.first(where: { $0.number == backfill.column })
            {
                let writer = writers.first { $0.table.number == table.number }
                try settle(column, of: table, at: backfill.at, writer)
            }
            try database.run(
                "DELETE FROM weir_backfill WHERE tbl = ?1 AND number = ?2",
                [.integer(Int64(backfill.table)), .integer(Int64(backfill.column))])
        }
    }

    private func settle(
        _ column: CapturedTable.Column, of table: CapturedTable, at: SQLValue, _ writer: RowWriter?
    ) throws {
        var last: SQLValue?
        var refused: Set<SQLValue> = []
        var hasMore = true
        while hasMore {
            do {
                try applying { _ in
                    try LogFolding(table: table).fold(in: database)
                    try settle(column, of: table, at: at, after: &last, besides: refused, writer)
                }
                hasMore = last != nil
            } catch let error as RolledBack {
                // The slice is repeated without the row.
                refused.insert(error.key)
            }
        }
    }

    /// A trigger of the app refuses the server's value of a row, and has rolled back the transaction.
    private struct RolledBack: Error {
        let key: SQLValue
    }

    private func settle(
        _ column: CapturedTable.Column, of table: CapturedTable, at: SQLValue, after last: inout SQLValue?,
        besides refused: Set<SQLValue>, _ writer: RowWriter?
    ) throws {
        let (word, name) = ("m\(column.word)", quoted(column.name))
        let rows = try database.map(
            """
            SELECT id, \(column.side) FROM \(table.edit) AS e
            WHERE e.m0 <> -1 AND e.\(word) & \(column.bit) AND \(LogFolding.isKnown("e", column)) AND e.\(column.side) IS NOT NULL
            AND e.at <= ?1 \(last == nil ? "" : "AND e.id > ?2") ORDER BY e.id LIMIT \(LogFolding.slice)
            """, [at] + (last.map { [$0] } ?? [])
        ) { (key: $0.value(at: 0), value: $0.value(at: 1)) }
        // A value that the table cannot have leaves the app's, which is sent.
        for row in rows where !refused.contains(row.key) {
            if try writer?.isServerDefault(row.value, of: column) ?? false { continue }
            if try !take(row.value, of: name, in: table, for: row.key) { continue }
            try database.run("UPDATE \(table.edit) SET \(word) = \(word) & ~\(column.bit) WHERE id = ?1", [row.key])
        }
        last = rows.count < LogFolding.slice ? nil : rows.last?.key
    }

    /// - Returns: whether the table takes the value; nothing was changed otherwise.
    private func take(_ value: SQLValue, of column: String, in table: CapturedTable, for key: SQLValue) throws -> Bool {
        let update = try database.statement(
            "UPDATE OR IGNORE \(table.quotedName) SET \(column) = ?2 WHERE \(table.quotedKey) = ?1")
        // What a statement has changed before a trigger of the app ends it with RAISE(FAIL) would remain.
        try database.run("SAVEPOINT weir_take")
        do {
            let changed = try update.run([key, value])
            try database.run("RELEASE weir_take")
            return changed > 0
        } catch let error as WeirError where error.refusal != nil {
            guard database.isInTransaction else { throw RolledBack(key: key) }
            try database.run("ROLLBACK TO weir_take")
            try database.run("RELEASE weir_take")
            return false
        }
    }
}

extension Weir {
    /// Runs the app's migrations of synced tables, and opens the database as ``open(_:tables:prepareConnection:)`` does.
    ///
    /// Call it instead of ``open(_:tables:prepareConnection:)`` when there are migrations to run, with no other ``Weir`` open on the file:
    /// GRDB's migrator says so with `hasCompletedMigrations`. All that SQLite permits is possible: adding, renaming and dropping columns,
    /// renaming tables, creating a table again in twelve steps. A renamed column is a new one to the server. What the migrations write is not
    /// captured, since each device runs them; rows that they insert or delete are in ``gaps``. What other connections write meanwhile is not
    /// captured either.
    ///
    /// - Parameters:
    ///   - url: an existing SQLite database.
    ///   - tables: the synced tables, as they are called after the migrations.
    ///   - backfill: whether values that the migrations give to new columns are changes to be sent, for columns that are filled on the devices.
    ///     Rows of which the server has a value get that one with the next pull.
    ///   - prepareConnection: as for ``open(_:tables:prepareConnection:)``.
    ///   - isolation: the caller's, in which the migrations run.
    ///   - migration: runs the migrations, with connections of the app's own.
    /// - Throws: what the migrations throw, after which changes are captured as before; `WeirError`.
    public static func migrate(
        _ url: URL, tables: [String], backfill: Bool = false, prepareConnection: ConnectionPreparation? = nil,
        isolation: isolated (any Actor)? = #isolation, _ migration: () async throws -> Void
    ) async throws -> Weir {
        let weir = Weir(path: url.path, tables: tables, prepareConnection: prepareConnection)
        let before = try await weir.beginMigration(backfill: backfill)
        do {
            try await migration()
        } catch {
            await weir.captureAgain(before)
            throw error
        }
        do {
            try await weir.openTheFile(isMigrated: true)
        } catch {
            await weir.captureAgain(tables)
            throw error
        }
        return weir
    }

    /// - Returns: the tables that were captured.
    private func beginMigration(backfill: Bool) throws -> [String] {
        let database = try Database(path: path, prepare: prepareConnection)
        defer { database.close() }
        return try database.transaction {
            let migration = Migration(database: database)
            guard try migration.concernsWeir else { return [] }
            try migration.begin(backfill: backfill)
            return try database.map("SELECT name FROM weir_table WHERE listed") { $0.string(at: 0) }
        }
    }

    /// Captures changes of the tables again after a failure, but of those that cannot be synced as they are now.
    private func captureAgain(_ tables: [String]) {
        do {
            try ClientFile(
                path: path, tables: tables, isMigrated: true, hasFailed: true, prepare: prepareConnection
            ).database.close()
        } catch WeirError.unsupportedTable(let name, _) {
            let others = tables.filter { foldedName($0) != foldedName(name) }
            if !others.isEmpty, others.count < tables.count { captureAgain(others) }
        } catch {
            // The next call that opens the file captures again, and says in ``gaps`` what may have been missed.
        }
    }
}
