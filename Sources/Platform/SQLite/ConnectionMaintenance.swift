import CSQLite

/// How far a checkpoint goes.
package enum CheckpointMode: Sendable {
    /// Moves what it can without waiting for anybody.
    case passive
    /// Waits for the writer and moves everything.
    case full
    /// As `full`, and waits for the readers, so that the log starts again from its beginning.
    case restart
    /// As `restart`, and makes the log's file empty.
    case truncate
}

/// What a checkpoint left; both are 0 where there is no write-ahead log.
package struct CheckpointResult: Sendable, Equatable {
    /// The pages in the write-ahead log.
    package let walPages: Int
    /// Those of them that are in the database now.
    package let movedPages: Int
}

extension Connection {
    /// The rows that the newest INSERT, UPDATE or DELETE changed.
    package var changes: Int { Int(sqlite3_changes64(openDatabase)) }

    /// The rows changed since the connection was opened.
    package var totalChanges: Int { Int(sqlite3_total_changes64(openDatabase)) }

    /// The rowid of the newest INSERT that succeeded, 0 before the first.
    package var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(openDatabase) }

    /// Moves pages from the write-ahead log into the database.
    ///
    /// - Throws: `SQLiteError`; it is busy when a reader or writer was in the way of any mode but `passive`.
    @discardableResult
    package func checkpoint(_ mode: CheckpointMode) throws(SQLiteError) -> CheckpointResult {
        let modeCode =
            switch mode {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .full: SQLITE_CHECKPOINT_FULL
            case .restart: SQLITE_CHECKPOINT_RESTART
            case .truncate: SQLITE_CHECKPOINT_TRUNCATE
            }
        var total: Int32 = 0
        var moved: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(openDatabase, nil, modeCode, &total, &moved)
        if code != SQLITE_OK { throw failure(code, .checkpoint) }
        // Without a write-ahead log SQLite reports -1.
        return CheckpointResult(walPages: Int(max(total, 0)), movedPages: Int(max(moved, 0)))
    }

    /// Reads the whole database for damage (`PRAGMA quick_check`: pages and rows, not whether indexes agree with them).
    ///
    /// - Throws: `SQLiteError` that is corrupt, naming the first faults found.
    package func checkIntegrity() throws(SQLiteError) {
        // The first ten tell the kind of damage; a damaged file can have millions.
        var statement = try prepare("PRAGMA quick_check(10)")
        var faults: [String] = []
        while try statement.step() { faults.append(try statement.text(at: 0)) }
        if faults.count == 1 && faults[0].utf8.elementsEqual("ok".utf8) { return }
        throw failure(SQLITE_CORRUPT, .check, message: faults.joined(separator: "; "))
    }

    /// The number in the database's header that is free for the application, 0 in a new one.
    package func userVersion() throws(SQLiteError) -> Int32 {
        Int32(truncatingIfNeeded: try integer("PRAGMA user_version"))
    }

    /// Sets the number in the header; part of the open transaction, if there is one.
    package func setUserVersion(_ version: Int32) throws(SQLiteError) {
        try execute("PRAGMA user_version = \(version)")
    }

    /// The one integer that a statement gives.
    func integer(_ sql: StaticString) throws(SQLiteError) -> Int64 {
        var statement = try statement(sql)
        guard try statement.step() else {
            throw failure(SQLITE_ERROR, .read, sql: sql.description, message: "the statement gave no row")
        }
        return try statement.integer(at: 0)
    }
}
