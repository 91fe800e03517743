/// Makes a list of tables the synced ones: gives numbers to new tables and columns, and creates or replaces triggers.
///
/// It compares the file's schema with what was registered before and writes only where they differ, so that opening a file
/// that has not changed changes nothing. All of it runs in one transaction.
struct Registration {
    let database: Database
    /// Whether a migration of the app's has just ended.
    let isMigrated: Bool
    /// Whether it has failed: what it has done to columns is found by the next call, which may have the rest of it.
    let hasFailed: Bool
    private(set) var tables: [CapturedTable] = []
    private(set) var gaps: [CaptureGap] = []
    private var causes: [(cause: CaptureGap.Cause, table: CapturedTable)] = []

    /// A column that is gone.
    private typealias RemovedColumn = (name: String, number: Int)

    init(of names: [String], isMigrated: Bool = false, hasFailed: Bool = false, in database: Database) throws {
        self.database = database
        self.isMigrated = isMigrated
        self.hasFailed = hasFailed
        try SideTables.create(in: database)
        for name in names {
            let definition = try TableDefinition(named: name, in: database)
            if tables.contains(where: { $0.name == definition.name }) { continue }
            try register(definition)
        }
        try stopCapturingOthers()
        for table in tables { try TableRequirements(table: table).check(in: database) }
        for (cause, table) in causes { try recordGap(cause, of: table) }
        if try !hasFailed && database.meta("backfill") != nil { try database.setMeta("backfill", nil) }
    }

    // MARK: One table

    private mutating func register(_ definition: TableDefinition) throws {
        let known = try number(of: definition)
        let wasListed = try known.map {
            try database.integer("SELECT listed FROM weir_table WHERE number = ?1", [.integer(Int64($0))]) == 1
        }
        let number = try known ?? addTable(definition.name)
        let (table, added, removed) = try columns(of: definition, number: number, isNew: known == nil)
        if !removed.isEmpty { try recordGap(of: removed, from: table) }
        // The server has values of the new columns, or of rows that could not be taken back: they come when all is pulled again.
        let isIncomplete =
            try database.run("UPDATE weir_table SET incomplete = 0 WHERE number = \(number) AND incomplete") > 0
        if known != nil, !added.isEmpty || isIncomplete { try Vector(database: database).forget() }
        // Its rows may be of another history: edits of them are based on nothing until they have come.
        if isIncomplete { try SessionRecord(database: database).setMustDrain(true) }
        if known != nil, !added.isEmpty {
            try PendingReplacements.begin(adding: added, to: table, in: database)
        }
        if known != nil { try captureBackfill(of: added, in: table) }
        let mended = try updateTriggers(of: table)
        let cause: CaptureGap.Cause? =
            switch wasListed {
            case nil: .new
            case false: .notListed
            default: mended ? .triggersMissing : added.isEmpty ? nil : .columnsAdded(added.map(\.name))
            }
        try database.run(
            "UPDATE weir_table SET name = ?2, listed = 1 WHERE number = ?1 AND (name <> ?2 OR NOT listed)",
            [.integer(Int64(number)), .text(definition.name)])
        try StateView(of: table).update(in: database)
        tables.append(table)
        if isMigrated, wasListed == true {
            causes.append((.migrated, table))
        } else if let cause {
            causes.append((cause, table))
        }
    }

    /// The number of a table that was registered before, under its name, or under another one before it was renamed.
    private func number(of definition: TableDefinition) throws -> Int? {
        // ALTER TABLE … RENAME keeps a table's triggers, whose names have its number; another table may have got the name.
        try database.integer(
            """
            SELECT t.number FROM weir_table AS t LEFT JOIN sqlite_schema AS s
            ON \(CaptureTriggers.isOfTable)
            WHERE s.tbl_name = ?1 OR s.name IS NULL AND lower(t.name) = lower(?1)
            ORDER BY s.name IS NULL, t.listed DESC, t.number DESC LIMIT 1
            """, [.text(definition.name)]
        ).map { Int($0) }
    }

    private func addTable(_ name: String) throws -> Int {
        try database.run("INSERT INTO weir_table (name, listed, columns) VALUES (?1, 1, 0)", [.text(name)])
        return Int(try database.integer("SELECT max(number) FROM weir_table") ?? 0)
    }

    /// Gives numbers to columns that have none, and marks those that are gone.
    private func columns(
        of definition: TableDefinition, number: Int, isNew: Bool
    ) throws -> (table: CapturedTable, added: [CapturedTable.Column], removed: [RemovedColumn]) {
        let key: SQLValue = .integer(Int64(number))
        let before = Int(try database.integer("SELECT columns FROM weir_table WHERE number = ?1", [key]) ?? 0)
        var numbers = Dictionary(
            try database.map("SELECT name, number FROM weir_column WHERE tbl = ?1 AND NOT dropped", [key]) {
                (foldedName($0.string(at: 0)), (name: $0.string(at: 0), number: Int($0.integer(at: 1))))
            }, uniquingKeysWith: { first, _ in first })
        var count = before
        var added: [CapturedTable.Column] = []
        let columns = try definition.columns.map { column in
            if let known = numbers.removeValue(forKey: foldedName(column.name)) {
                return CapturedTable.Column(number: known.number, definition: column)
            }
            count += 1
            added.append(CapturedTable.Column(number: count, definition: column))
            try database.run(
                "INSERT INTO weir_column (tbl, number, name, dropped) VALUES (?1, ?2, ?3, 0)",
                [key, .integer(Int64(count)), .text(column.name)])
            return added[added.count - 1]
        }
        let removed = try (hasFailed ? [] : Array(numbers.values)).sorted { $0.number < $1.number }.map { column in
            try database.run(
                "UPDATE weir_column SET dropped = 1 WHERE tbl = ?1 AND number = ?2",
                [key, .integer(Int64(column.number))])
            return column
        }
        let table = CapturedTable(number: number, definition: definition, columns: columns, columnNumbers: count)
        if isNew {
            try SideTables.create(for: table, columns: count, in: database)
        } else {
            try SideTables.takeKeyType(of: table, columns: before, in: database)
            try SideTables.extend(table, from: before, to: count, in: database)
        }
        if count > before {
            try database.run("UPDATE weir_table SET columns = ?2 WHERE number = ?1", [key, .integer(Int64(count))])
        }
        return (table, added, removed)
    }

    /// Captures values of columns that a migration has added, also before it failed the last time.
    private func captureBackfill(of added: [CapturedTable.Column], in table: CapturedTable) throws {
        let key = "backfill_from \(table.number)"
        let owed = try database.integer("SELECT value FROM weir_meta WHERE key = ?1", [.text(key)])
        if hasFailed {
            guard owed == nil, let first = added.map(\.number).min() else { return }
            return try database.setMeta(key, .integer(Int64(first - 1)))
        }
        let columns = owed.map { owed in table.columns.filter { $0.number > owed } } ?? added
        if !columns.isEmpty { try Migration(database: database).captureBackfill(of: columns, in: table) }
        if owed != nil { try database.setMeta(key, nil) }
    }

    // MARK: Triggers

    /// Replaces the triggers unless they are as they must be.
    ///
    /// - Returns: whether any was missing.
    private func updateTriggers(of table: CapturedTable) throws -> Bool {
        let expected = CaptureTriggers(table: table).statements
        let present = try CaptureTriggers.present(ofTable: table.number, in: database)
        let onTable = present.filter { $0.table == table.name }
        if onTable.count == present.count, onTable.count == expected.count,
            expected.allSatisfy({ trigger in onTable.contains { $0.name == trigger.name && $0.sql == trigger.sql } })
        {
            return false
        }
        for trigger in present { try database.execute("DROP TRIGGER \(quoted(trigger.name))") }
        for trigger in expected { try database.execute(trigger.sql) }
        return !expected.allSatisfy { trigger in onTable.contains { $0.name == trigger.name } }
    }

    /// What was captured of tables that are no longer listed stays, and waits until they are listed again.
    private func stopCapturingOthers() throws {
        let listed = try database.map("SELECT number FROM weir_table WHERE listed") { Int($0.integer(at: 0)) }
        for number in listed where !tables.contains(where: { $0.number == number }) {
            for trigger in try CaptureTriggers.present(ofTable: number, in: database) {
                try database.execute("DROP TRIGGER \(quoted(trigger.name))")
            }
            try StateView.drop(number, in: database)
            try database.run("UPDATE weir_table SET listed = 0 WHERE number = ?1", [.integer(Int64(number))])
        }
    }

    // MARK: Gaps

    private mutating func recordGap(_ cause: CaptureGap.Cause, of table: CapturedTable) throws {
        try LogFolding(table: table).fold(in: database)
        try forgetEditsOfAbsentRows(of: table)
        let (key, name) = (table.quotedKey, table.quotedName)
        let unknown = try database.integer("SELECT count(*) FROM \(name) AS t WHERE \(Seeding.isUnknown(in: table))")
        let absent = try database.integer(
            """
            SELECT count(*) FROM \(table.state) AS r WHERE NOT r.deleted
            AND NOT EXISTS (SELECT 1 FROM \(name) AS t WHERE t.\(key) = r.id)
            AND NOT EXISTS (SELECT 1 FROM \(table.edit) AS e WHERE e.id = r.id)
            AND NOT EXISTS (SELECT 1 FROM \(table.sent) AS s WHERE s.id = r.id)
            """)
        let gap = CaptureGap(
            table: table.name, cause: cause, unknownRows: Int(unknown ?? 0), absentRows: Int(absent ?? 0))
        // A new table without rows has missed nothing, and a migration that has left all rows neither.
        let isCounted = cause == .new || cause == .migrated
        if !isCounted || gap.unknownRows + gap.absentRows > 0 { gaps.append(gap) }
    }

    /// Forgets edits of rows that are gone without a captured deletion, of which all values before would be known.
    ///
    /// They would be sent as deletions. Those of the batch have their outcome.
    private func forgetEditsOfAbsentRows(of table: CapturedTable) throws {
        let gone = try database.map(
            """
            SELECT id FROM \(table.edit) AS e WHERE v0 <> -1
            AND NOT EXISTS (SELECT 1 FROM \(table.quotedName) AS t WHERE \(PendingRow.join(table)))
            """
        ) { $0.value(at: 0) }
        for key in gone {
            try forgetEdit(of: key, table)
            try HeldColumns(database: database, table: table).remove(key)
            try RowOwners.forget(key, ofTable: table.number, in: database)
            try forgetKeyChanges(to: key, table)
        }
    }

    private func forgetEdit(of key: SQLValue, _ table: CapturedTable) throws {
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
    }

    /// The row is gone under all keys that it had, and the app has deleted it under none.
    private func forgetKeyChanges(to key: SQLValue, _ table: CapturedTable) throws {
        var last = key
        while let change = try database.map(
            "SELECT number, old FROM weir_key_change WHERE tbl = \(table.number) AND new = ?1 AND NOT sent", [last],
            { (number: $0.value(at: 0), old: $0.value(at: 1)) }
        ).first {
            try database.run("DELETE FROM weir_key_change WHERE number = ?1", [change.number])
            // Another row may have got the key since.
            if try table.has(change.old, in: database) { return }
            try forgetEdit(of: change.old, table)
            last = change.old
        }
    }

    /// The values that were to be sent are gone with their columns: those of rows that are there, and that the server has, since a new row
    /// is sent with what it has now.
    private mutating func recordGap(of removed: [RemovedColumn], from table: CapturedTable) throws {
        try LogFolding(table: table).fold(in: database)
        let unsent = try removed.map { column in
            let (word, bit) = (CapturedTable.word(ofColumn: column.number), CapturedTable.bit(ofColumn: column.number))
            let held = "FROM weir_held WHERE tbl = \(table.number) AND col = \(column.number)"
            // A replaced row has changed all columns.
            let rows = try database.integer(
                """
                SELECT count(*) FROM \(table.quotedName) AS t JOIN \(table.state) AS r ON r.id = t.\(table.quotedKey)
                WHERE NOT r.deleted AND t.\(table.quotedKey) IN (SELECT id \(held) UNION
                SELECT id FROM \(table.edit) WHERE m0 = -1 OR m\(word) & \(bit) <> 0)
                """)
            try database.run("DELETE \(held)")
            return (name: column.name, rows: Int(rows ?? 0))
        }.filter { $0.rows > 0 }
        if unsent.isEmpty { return }
        let cause = CaptureGap.Cause.columnsRemoved(
            unsent.map(\.name), unsentValues: unsent.reduce(0) { $0 + $1.rows })
        gaps.append(CaptureGap(table: table.name, cause: cause, unknownRows: 0, absentRows: 0))
    }
}

/// Changes of a table that may not have been captured before ``Weir/open(_:tables:prepareConnection:)`` or
/// ``Weir/migrate(_:tables:backfill:prepareConnection:_:)`` was called, or whose values are gone.
public struct CaptureGap: Equatable, Sendable {
    /// Why they may have been missed.
    public enum Cause: Equatable, Sendable {
        /// The table is synced for the first time; its rows were there before.
        case new
        /// The table was not among those of the last call.
        case notListed
        /// The table was created again, as the twelve steps of a schema change do, and had lost its triggers.
        case triggersMissing
        /// Columns were added; what was written to them since then was not captured.
        case columnsAdded([String])
        /// Columns were removed, or have another name, with at most so many values of rows of the server that were changed and not sent. They are
        /// not sent any more, unless a backfill sends those of the new name. It is said once, by the call that finds the columns gone; there
        /// are no unknown or absent rows for it.
        case columnsRemoved([String], unsentValues: Int)
        /// A migration with ``Weir/migrate(_:tables:backfill:prepareConnection:_:)`` has inserted or deleted rows.
        case migrated
    }

    /// The table's name.
    public let table: String
    /// Why changes may have been missed.
    public let cause: Cause
    /// Rows that were neither captured nor received, which ``Weir/seed(_:)`` adopts.
    public let unknownRows: Int
    /// Rows that the server has, and that are gone from the table without a captured deletion.
    public let absentRows: Int
}
