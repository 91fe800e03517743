import CWeirSQLite

enum Library {
    /// Whether the library was built with thread support.
    ///
    /// The first access turns off its memory statistics, which take a lock shared by all connections at every allocation.
    /// That has no effect once other code in the process has used SQLite.
    static let isThreadsafe: Bool = {
        _ = csqlite_config(SQLITE_CONFIG_MEMSTATUS, 0)
        return sqlite3_threadsafe() != 0
    }()
}

extension Connection {
    func setUp(_ access: Access, _ options: ConnectionOptions) throws(SQLiteError) {
        let database = openDatabase
        try check(sqlite3_busy_timeout(database, Int32(options.busyTimeoutMilliseconds)))
        for (option, value) in [
            (SQLITE_DBCONFIG_DQS_DDL, 0), (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (SQLITE_DBCONFIG_DEFENSIVE, 1),
        ] {
            try check(csqlite_db_config(database, option, Int32(value)))
        }
        try execute(
            """
            PRAGMA foreign_keys = OFF;
            PRAGMA cache_size = -\(options.cacheSize / 1024);
            PRAGMA mmap_size = 0
            """)
        switch access {
        case .readOnly:
            // SQLite opens lazily; this pragma must read the file, so that a file that is no database fails here.
            _ = try integer("PRAGMA schema_version")
        case .readWriteCreate(let write):
            try setUp(write)
        }
    }

    private func setUp(_ options: WriteOptions) throws(SQLiteError) {
        // First: the page size is fixed once the file has its first page.
        try execute("PRAGMA page_size = \(options.pageSize)")
        // SQLite silently opens a file that it may not write as read-only.
        if sqlite3_db_readonly(openDatabase, "main") == 1 { throw failure(SQLITE_READONLY, .open) }
        var journal = try prepare("PRAGMA journal_mode = \(options.journal.rawValue)")
        let mode = try journal.step() ? journal.text(at: 0) : ""
        guard mode.utf8.elementsEqual(options.journal.rawValue.utf8) else {
            throw failure(
                SQLITE_CANTOPEN, .open,
                message:
                    "the journal mode \(options.journal.rawValue) is not possible, it stays \(mode); WAL needs a local "
                    + "file system")
        }
        journal.reset()
        let isFull = options.synchronous == .full
        try execute(
            """
            PRAGMA synchronous = \(options.synchronous.rawValue);
            PRAGMA fullfsync = \(isFull ? 1 : 0);
            PRAGMA checkpoint_fullfsync = \(isFull ? 1 : 0);
            PRAGMA wal_autocheckpoint = \(options.walAutocheckpoint)
            """)
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        if code != SQLITE_OK { throw failure(code, .open) }
    }
}
