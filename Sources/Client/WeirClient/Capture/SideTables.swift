/// Weir's own tables in the app's file, all named `weir_…`; docs/adr/0039 describes them.
enum SideTables {
    /// The newest format that this code reads and writes, in `weir_meta`.
    static let format: Int64 = 1

    /// Creates the tables that all synced tables share, where they are missing.
    ///
    /// - Throws: `WeirError.newerFormat`.
    static func create(in database: Database) throws {
        if try database.value("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'weir_meta'") == nil {
            try database.execute(
                """
                CREATE TABLE weir_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
                INSERT INTO weir_meta VALUES ('format', \(format)), ('last_batch', 0);
                CREATE TABLE weir_table (
                    number INTEGER PRIMARY KEY, name TEXT NOT NULL, listed INTEGER NOT NULL, columns INTEGER NOT NULL,
                    incomplete INTEGER NOT NULL DEFAULT 0, state_view TEXT);
                CREATE TABLE weir_column (
                    tbl INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, dropped INTEGER NOT NULL,
                    PRIMARY KEY (tbl, number)) WITHOUT ROWID;
                CREATE TABLE weir_backfill (
                    tbl INTEGER NOT NULL, number INTEGER NOT NULL, at NOT NULL, PRIMARY KEY (tbl, number)) WITHOUT ROWID;
                CREATE TABLE weir_key_change (
                    number INTEGER PRIMARY KEY, tbl INTEGER NOT NULL, old, new, sent INTEGER NOT NULL DEFAULT 0);
                CREATE INDEX weir_key_change_old ON weir_key_change (tbl, old);
                CREATE INDEX weir_key_change_new ON weir_key_change (tbl, new);
                CREATE TABLE weir_batch (number INTEGER PRIMARY KEY, changes INTEGER NOT NULL, body BLOB NOT NULL);
                CREATE TABLE weir_applying (active INTEGER PRIMARY KEY);
                CREATE TABLE weir_vector (
                    sync_id TEXT NOT NULL, knowledge_id TEXT NOT NULL, last_time_stamp INTEGER NOT NULL,
                    PRIMARY KEY (sync_id, knowledge_id)) WITHOUT ROWID;
                CREATE TABLE weir_parked (
                    name TEXT NOT NULL, id TEXT NOT NULL, sync_id TEXT NOT NULL, time_stamp INTEGER NOT NULL,
                    reason TEXT NOT NULL, row BLOB NOT NULL, orphan INTEGER NOT NULL DEFAULT 0, tbl INTEGER, key,
                    PRIMARY KEY (name, id, sync_id)) WITHOUT ROWID;
                CREATE INDEX weir_parked_key ON weir_parked (tbl, key) WHERE key IS NOT NULL;
                CREATE TABLE weir_grant (sync_id TEXT PRIMARY KEY, access TEXT NOT NULL) WITHOUT ROWID;
                CREATE TABLE weir_owner (
                    tbl INTEGER NOT NULL, id, sync_id TEXT, PRIMARY KEY (tbl, id)) WITHOUT ROWID;
                CREATE TABLE weir_removed (tbl INTEGER NOT NULL, id, PRIMARY KEY (tbl, id)) WITHOUT ROWID;
                CREATE TABLE weir_orphan (tbl INTEGER NOT NULL, id, PRIMARY KEY (tbl, id)) WITHOUT ROWID;
                CREATE TABLE weir_held (
                    tbl INTEGER NOT NULL, id, col INTEGER NOT NULL, before, at, PRIMARY KEY (tbl, id, col)) WITHOUT ROWID;
                CREATE INDEX weir_held_column ON weir_held (tbl, col, id);
                CREATE TABLE weir_writer (
                    number INTEGER PRIMARY KEY, sync_id TEXT NOT NULL, knowledge_id TEXT NOT NULL,
                    UNIQUE (sync_id, knowledge_id));
                CREATE TABLE weir_aside (
                    number INTEGER PRIMARY KEY, tbl INTEGER NOT NULL, id, code TEXT NOT NULL, message TEXT NOT NULL,
                    change BLOB NOT NULL, base BLOB, whole BLOB, row BLOB, at TEXT NOT NULL, resolution TEXT,
                    resolved_at TEXT);
                CREATE INDEX weir_aside_open ON weir_aside (tbl, id) WHERE resolution IS NULL;
                CREATE TABLE weir_outcome (
                    number INTEGER PRIMARY KEY, tbl INTEGER NOT NULL, id, sent INTEGER NOT NULL DEFAULT 0,
                    place INTEGER, status TEXT, code TEXT, message TEXT, time_stamp INTEGER, kept INTEGER, at TEXT);
                CREATE INDEX weir_outcome_row ON weir_outcome (tbl, id) WHERE place IS NULL;
                CREATE UNIQUE INDEX weir_outcome_place ON weir_outcome (place) WHERE place IS NOT NULL;
                """)
        }
        let found = try database.integer("SELECT value FROM weir_meta WHERE key = 'format'") ?? 0
        if found > format { throw WeirError.newerFormat(found: found, supported: format) }
        try complete(in: database)
    }

    /// Adds the column that tables of edits of an earlier version lack.
    private static func complete(in database: Database) throws {
        let incomplete = try database.map(
            """
            SELECT name FROM sqlite_schema AS s
            WHERE type = 'table' AND (name GLOB 'weir_edit_[0-9]*' OR name GLOB 'weir_sent_[0-9]*')
            AND NOT EXISTS (SELECT 1 FROM pragma_table_info(s.name) WHERE name = 'was_there')
            """
        ) { $0.string(at: 0) }
        for side in incomplete { try database.execute("ALTER TABLE \(side) ADD COLUMN was_there") }
    }

    /// Creates the side tables of a table.
    ///
    /// - Parameter columns: how many numbers of columns were given.
    static func create(for table: CapturedTable, columns: Int, in database: Database) throws {
        let masks = (0..<CapturedTable.words(forColumns: columns)).map { "m\($0) INTEGER" }
        let known = (0..<CapturedTable.words(forColumns: columns)).map { "v\($0) INTEGER" }
        let values = columns == 0 ? [] : (1...columns).map { "c\($0)" }
        // The type of the key, so that comparisons with it can use the side tables' indexes.
        let id = "id \(table.definition.key.affinity.declaredType)"
        let folded = (["at", "base", "was_sent", "seen", "was_there"] + masks + known + values).joined(separator: ", ")
        // Integers are written in their order, mostly: one tree is less to write. Versions of rows with random keys are kept in the order in
        // which they come, beside an index.
        let order = table.definition.keyKind == .integer ? " WITHOUT ROWID" : ""
        try database.execute(
            """
            CREATE TABLE \(table.log) (\((["seq INTEGER PRIMARY KEY", id, "kind INTEGER", "at"] + masks + values)
                .joined(separator: ", ")));
            CREATE TABLE \(table.edit) (\(id) PRIMARY KEY, \(folded)) WITHOUT ROWID;
            CREATE TABLE \(table.sent) (position INTEGER PRIMARY KEY, deleted INTEGER NOT NULL, \(id) UNIQUE, \(folded));
            CREATE TABLE \(table.state) (
                \(id) PRIMARY KEY, time_stamp INTEGER NOT NULL, deleted INTEGER NOT NULL, owner TEXT,
                writer INTEGER)\(order);
            """)
    }

    /// Creates the side tables again if the app's table has a key of another type than when they were created, in which no key of theirs
    /// would be found.
    ///
    /// - Parameter columns: how many numbers of columns they have.
    /// - Throws: `WeirError.unsupportedTable` where the account has rows under keys of that type: edits would be lost. Without an account
    ///   there is nothing to lose: attaching adopts all rows.
    static func takeKeyType(of table: CapturedTable, columns: Int, in database: Database) throws {
        let type = table.definition.key.affinity.declaredType
        let before =
            try database.map(
                "SELECT type FROM pragma_table_info(?1) WHERE name = 'id'", [.text(table.state)]
            ) { $0.string(at: 0) }.first ?? type
        // A column that is declared UUID is of type NUMERIC, and its keys are texts.
        let isText = [before, type].allSatisfy { ["TEXT", "NUMERIC"].contains($0) }
        if before == type || isText { return }
        let own = [table.log, table.edit, table.sent, table.state]
        // Not what has ended, nor what waits for having no key of that type.
        let shared = [
            ("parked", " AND key IS NOT NULL"), ("aside", " AND resolution IS NULL"), ("outcome", " AND place IS NULL"),
            ("key_change", ""), ("owner", ""), ("held", ""),
        ].map { "weir_\($0) WHERE tbl = \(table.number)\($1)" }
        let known = (own + shared).map { "SELECT 1 FROM \($0)" }.joined(separator: " UNION ALL ")
        if try database.meta("account") != nil, try database.value(known + " LIMIT 1") != nil {
            throw WeirError.unsupportedTable(
                name: table.name,
                reason: """
                    its key \(table.definition.key.name) is of type \(type) and was of type \(before), under which its rows are \
                    known: give it back its type, or call detach() before the type is changed
                    """)
        }
        for side in own { try database.execute("DROP TABLE \(side)") }
        for rows in shared + ["removed", "orphan"].map({ "weir_\($0) WHERE tbl = \(table.number)" }) {
            try database.run("DELETE FROM \(rows)")
        }
        try create(for: table, columns: columns, in: database)
    }

    /// Adds the columns that new numbers of columns need.
    static func extend(_ table: CapturedTable, from old: Int, to new: Int, in database: Database) throws {
        guard new > old else { return }
        for side in [table.log, table.edit, table.sent] {
            for number in (old + 1)...new { try database.execute("ALTER TABLE \(side) ADD COLUMN c\(number)") }
            for word in CapturedTable.words(forColumns: old)..<CapturedTable.words(forColumns: new) {
                try database.execute("ALTER TABLE \(side) ADD COLUMN m\(word) INTEGER DEFAULT 0")
                if side != table.log {
                    try database.execute("ALTER TABLE \(side) ADD COLUMN v\(word) INTEGER DEFAULT 0")
                }
            }
        }
    }
}

/// Values of `weir_meta`.
extension Database {
    /// Takes the next numbers of a kind, which are given once.
    ///
    /// - Returns: the first of them.
    func takeNumbers(_ count: Int = 1, of key: String) throws -> Int64 {
        let last: Int64 = if case .integer(let last) = try meta(key) { last } else { 0 }
        try setMeta(key, .integer(last + Int64(count)))
        return last + 1
    }

    func meta(_ key: String) throws -> SQLValue? {
        try value("SELECT value FROM weir_meta WHERE key = ?1", [.text(key)])
    }

    /// - Parameter value: `nil` removes it.
    func setMeta(_ key: String, _ value: SQLValue?) throws {
        if let value {
            try run("INSERT OR REPLACE INTO weir_meta (key, value) VALUES (?1, ?2)", [.text(key), value])
        } else {
            try run("DELETE FROM weir_meta WHERE key = ?1", [.text(key)])
        }
    }

    /// A value of `weir_meta` as UTF-8; `nil` unless it is text.
    func metaText(_ key: String) throws -> [UInt8]? {
        guard case .text(let bytes) = try meta(key) else { return nil }
        return bytes
    }
}
