/// The app's database file with what Weir keeps in it.
///
/// It is not `Sendable`: it stays on the queue that opened it. Every method is a transaction, or several short ones.
package final class ClientFile {
    package let database: Database
    package let tables: [CapturedTable]
    package let gaps: [CaptureGap]
    private let columns: RegisteredColumns
    /// By the server's table, after which of the rows that could not be written the next ones are tried; `nil` to begin with the first.
    var lastTried: [String: ParkedRows.Position] = [:]
    /// What triggers of the app have refused, and is not tried again: after an answer, of rows alone that wait in the file.
    package internal(set) var refusals = Refusals()
    /// The schema of the server as it was read last.
    var serverSchema: CachedSchema?
    /// How many resets there must be at the beginning of a transaction; `nil` while no session runs one.
    var requiredResets: Int64?

    /// Opens the file and captures the changes of these tables from now on.
    ///
    /// - Parameters:
    ///   - isMigrated: whether a migration of the app's has just ended.
    ///   - hasFailed: whether that has failed.
    ///   - prepare: gets the connection before it is used.
    package init(
        path: String, tables names: [String], isMigrated: Bool = false, hasFailed: Bool = false,
        prepare: ((_ connection: OpaquePointer) throws -> Void)? = nil
    ) throws {
        let database = try Database(path: path, prepare: prepare)
        // What a transaction of Weir's keeps aside is little, as its transactions are.
        try database.run("PRAGMA temp_store = MEMORY")
        // SQLite may be compiled with other defaults. Rows come before their parents, and a parent that is deleted must not take rows of
        // the app with it whose deletion nothing captures. Triggers of the app that write their own table would not end.
        try database.run("PRAGMA foreign_keys = OFF")
        try database.run("PRAGMA recursive_triggers = OFF")
        let (registration, columns) = try database.transaction {
            let registration = try Registration(of: names, isMigrated: isMigrated, hasFailed: hasFailed, in: database)
            return (registration, try RegisteredColumns(of: registration.tables, in: database))
        }
        self.database = database
        self.columns = columns
        tables = registration.tables
        gaps = registration.gaps
        database.began = { [unowned database, weak self] in
            if try !columns.areCurrent(in: database) { throw WeirError.staleFile }
            if let required = self?.requiredResets, try Resets(database: database).count != required {
                throw WeirError.staleFile
            }
        }
        database.willCommit = { [unowned database, weak self] in
            if self?.requiredResets != nil { self?.requiredResets = try Resets(database: database).count }
        }
    }

    /// Whether its tables have the columns with which it was opened; its transactions fail otherwise (``WeirError/staleFile``).
    func isCurrent() throws -> Bool { try columns.areCurrent(in: database) }

    /// - Throws: `WeirError.unsupportedTable` for a table that was not opened.
    func table(named name: String) throws -> CapturedTable {
        guard let table = tables.first(where: { foldedName($0.name) == foldedName(name) }) else {
            throw WeirError.unsupportedTable(name: name, reason: "it is not among the tables of Weir.open")
        }
        return table
    }

    /// Folds what triggers have recorded, in slices, so that a transaction that needs all of it is short.
    package func foldLogs() throws {
        for table in tables { try LogFolding(table: table).foldInSlices(in: database) }
    }

    /// Folds what triggers have recorded since, as part of the open transaction, which then knows all edits.
    func fold() throws {
        for table in tables { try LogFolding(table: table).fold(in: database) }
        try PendingReplacements.confine(in: self)
    }

    /// Makes edits of what waited for columns that the server has now, in slices.
    ///
    /// Before rows are written that may have values of them, which would be taken for newer ones.
    func releaseColumns(of schema: ServerSchema) throws {
        if try HeldColumns.areEmpty(in: database) { return }
        for table in tables {
            guard let server = schema.table(for: table.name) else { continue }
            let held = HeldColumns(database: database, table: table)
            while try database.transaction({ try held.release(server) }) {}
        }
    }

    /// Adopts the next rows of a table that were neither captured nor received.
    ///
    /// - Parameter last: `nil` at first; moved to the last key that was looked at, and to `nil` at the end.
    /// - Returns: how many.
    package func seed(_ table: CapturedTable, after last: inout SQLValue?) throws -> Int {
        var next = last
        let count = try database.transaction { try Seeding(table: table).adopt(after: &next, in: database) }
        last = next
        return count
    }

    /// How many rows have edits that the server has not acknowledged, without those of which only columns wait that it does not have.
    package func pendingRows() throws -> Int {
        try foldLogs()
        return try tables.reduce(0) { count, table in
            let edits = try database.integer(
                """
                SELECT (SELECT count(*) FROM \(table.edit))
                + (SELECT count(*) FROM \(table.sent) WHERE id NOT IN (SELECT id FROM \(table.edit)))
                """)
            return count + Int(edits ?? 0)
        }
    }

    /// The batch to send: the one without outcome, or else the next.
    ///
    /// - Throws: `SyncError` if the file is attached to another account than the session's; `WeirError`.
    package func freeze(_ session: BatchSession) throws -> FrozenBatch {
        try releaseColumns(of: session.schema)
        try foldLogs()
        return try database.transaction(writesRows: false) {
            // The lease may have run out in between, where the process was suspended.
            try SessionRecord(database: database).require(session.account)
            return try Freezing.freeze(self, session)
        }
    }

    /// Ends the batch without outcome, all of whose changes the server has applied.
    package func acknowledge(_ number: Int64, timeStamps: [Int64]) throws {
        try database.transaction {
            try Acknowledging(database: database).acknowledge(number, timeStamps: timeStamps)
        }
    }

    /// Whether rows of a table may be named by foreign keys of synced tables.
    func isParent(_ table: CapturedTable) -> Bool {
        tables.contains { $0.definition.foreignKeys.contains { $0.isReference(to: table) } }
    }

    // MARK: Answers

    /// The vector, by owners.
    package func knowledge() throws -> [KnowledgeEntry] { try Vector(database: database).entries }

    /// Of the history to which the vector belongs.
    package var epoch: String? { get throws { try Vector(database: database).epoch } }

    /// Where the last page was cut, as the server said it.
    package func cutFrom() throws -> [UInt8]? { try Vector(database: database).cutFrom }

    /// Whether a batch has no outcome.
    package var hasBatch: Bool { get throws { try database.value("SELECT 1 FROM weir_batch") != nil } }

    /// Whether the app's tables have rows.
    package func hasRows() throws -> Bool {
        try tables.contains { try database.value("SELECT 1 FROM \($0.quotedName) LIMIT 1") != nil }
    }

    /// Makes the changes of the batch without outcome pending again, as part of the open transaction.
    func thawBatch() throws {
        let record = SessionRecord(database: database)
        if let schema = try record.schema(), let account = try record.account {
            try Applying(self, schema.schema, account: account.syncID).keepThoseOfRevokedOwners()
        }
        try Thawing(database: database).thawBatch()
    }

    /// Runs a closure in a transaction whose changes of synced tables are not captured, also those of the app's triggers.
    ///
    /// - Parameter isLong: whether it is one of several that write many rows. Then not even the condition of the triggers that capture is
    ///   evaluated for each row, where the app has no triggers of its own.
    @discardableResult
    package func applying<Result>(isLong: Bool = false, _ body: (Database) throws -> Result) throws -> Result {
        try database.transaction(writesRows: false) {
            try database.setTriggers(firing: !isLong || hasTriggersOfTheApp)
            try database.run("INSERT INTO weir_applying (active) VALUES (1)")
            let result = try body(database)
            try database.run("DELETE FROM weir_applying")
            return result
        }
    }

    private var hasTriggersOfTheApp: Bool {
        get throws {
            let query = "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name NOT GLOB 'weir_[0-9]*'"
            return try database.value(query) != nil
        }
    }
}
