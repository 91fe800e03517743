/// The changes that the server has not stored: those to decide about, and the log of what became of the others.
extension Weir {
    /// The changes that the server has not stored and that nobody has decided about, oldest first.
    public func keptEdits() throws -> [KeptEdit] {
        try openFile.keptEdits(where: "a.resolution IS NULL ORDER BY a.number")
    }

    /// The changes to decide about, and again each time they have changed, also by another process.
    ///
    /// - Returns: a sequence that ends with ``close()``.
    public nonisolated var keptEditUpdates: AsyncThrowingStream<[KeptEdit], any Error> {
        updates { weir in weir.isSuspended ? nil : try weir.keptEdits() }
    }

    /// Ends changes that were kept, after the user has seen them: nothing is written.
    ///
    /// A row whose insertion was refused is in the app's table, and on this device alone. Its newest change stays kept, as nothing else names the
    /// row, until the row is changed or deleted; ``resolve(_:_:)`` with ``Resolution/acceptServer`` removes it.
    ///
    /// - Parameter number: the last one's.
    public func removeKeptEdits(through number: Int64) throws {
        let file = try openFile
        let database = file.database
        let limit = attachment?.options.conflictLog ?? ConflictLogLimit()
        try file.foldLogs()
        try database.transaction {
            try file.fold()
            let kept = KeptEdits(database: database)
            let open = try database.map(
                """
                SELECT number, tbl, id, EXISTS (SELECT 1 FROM weir_aside AS b WHERE b.tbl = a.tbl AND b.id IS a.id
                AND b.number > a.number AND b.resolution IS NULL)
                FROM weir_aside AS a WHERE number <= ?1 AND resolution IS NULL ORDER BY number
                """, [.integer(number)]
            ) {
                (
                    number: $0.integer(at: 0), table: Int($0.integer(at: 1)), key: $0.value(at: 2),
                    hasLater: $0.integer(at: 3) == 1
                )
            }
            for edit in open where try edit.hasLater || !file.isUnknown(edit.key, ofTable: edit.table) {
                try kept.end(edit.number, .removed)
            }
            try kept.prune(limit)
        }
        try showKept()
        changes.update { $0 += 1 }
    }

    /// The changes that were not stored, or stored in deleted rows, and how each has ended, newest first.
    ///
    /// The newest 1000 with 4 MiB of values are kept by default (``SyncOptions/conflictLog``); those that nobody has decided about are in
    /// ``keptEdits()``, without limit.
    ///
    /// - Parameter limit: how many at most.
    public func conflictLog(limit: Int = 100) throws -> [KeptEdit] {
        try openFile.keptEdits(
            where: "a.resolution IS NOT NULL ORDER BY a.number DESC LIMIT ?1", [.integer(Int64(limit))])
    }

    /// Removes the changes of ``conflictLog(limit:)``.
    public func clearConflictLog() throws {
        let database = try openFile.database
        try database.transaction { try KeptEdits(database: database).removeEnded() }
    }

    /// Counts what was kept and what waits, for the status.
    func showKept() throws {
        let file = try openFile
        let database = file.database
        let kept = Int(try database.integer("SELECT count(*) FROM weir_aside WHERE resolution IS NULL") ?? 0)
        // Those of tables that the app does not have may be many, and wait for an update of the app alone.
        let schema = try SessionRecord(database: database).schema(known: file.serverSchema)?.schema
        let parked = try file.tables.compactMap { schema?.table(for: $0.name)?.name }.reduce(0) { count, name in
            try count + Int(database.integer("SELECT count(*) FROM weir_parked WHERE name = ?1", [.text(name)]) ?? 0)
        }
        statuses.update { status in
            var attention = status.needsAttention.filter { !$0.isKept }
            if kept > 0 { attention.insert(.keptEdits(kept)) }
            if parked > 0 { attention.insert(.parkedRows(parked)) }
            status.needsAttention = attention
        }
    }
}
