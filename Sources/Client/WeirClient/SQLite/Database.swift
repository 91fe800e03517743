import CWeirSQLite

/// A connection to the app's database file.
///
/// It is not `Sendable`: it stays on the queue that opened it. The file's own settings, such as its journal mode, remain
/// as the app chose them.
package final class Database {
    private var handle: OpaquePointer?
    /// Compiled statements of Weir's, whose texts are few.
    private var statements: [StatementText: Statement] = [:]
    private var ofTheApp = RecentStatements()
    /// Which tables are written.
    private let record = WriteRecord()
    private var firesTriggers = true
    /// Runs at the beginning of each transaction, which it ends by throwing.
    var began: () throws -> Void = {}
    /// Runs at the end of each transaction, before it is committed.
    var willCommit: () throws -> Void = {}

    /// How long a statement waits for another connection's lock.
    private static let busyTimeoutMilliseconds: Int32 = 5000

    /// - Parameter prepare: gets the connection before it is used.
    /// - Throws: `WeirError.database` if there is no such file, or if it is no database; `WeirError.outdatedSQLite`; what `prepare` throws.
    package init(path: String, prepare: ((_ connection: OpaquePointer) throws -> Void)? = nil) throws {
        try SQLiteVersion.loaded.requireSupported()
        // One queue uses the connection, so SQLite needs no mutex for it.
        let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        do {
            guard code == SQLITE_OK, let handle else { throw failure(code) }
            try prepare?(handle)
            sqlite3_extended_result_codes(handle, 1)
            sqlite3_busy_timeout(handle, Self.busyTimeoutMilliseconds)
            // 16 MB of pages instead of 2: rows come in another order than that of their keys.
            try execute("PRAGMA cache_size = -16000")
            // SQLite opens lazily: this reads the file.
            try run("SELECT count(*) FROM sqlite_schema")
            record.begin(with: handle)
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// May be repeated.
    package func close() {
        for statement in statements.values { statement.finalize() }
        statements = [:]
        ofTheApp.removeAll()
        sqlite3_close_v2(handle)
        handle = nil
    }

    /// Runs one statement to its end and ignores its rows.
    ///
    /// - Returns: the rows that it changed.
    @discardableResult
    package func run(_ sql: String, _ values: [SQLValue] = []) throws -> Int {
        try statement(sql).run(values)
    }

    /// Runs all statements of a text, which are not cached.
    package func execute(_ script: String) throws {
        let code = sqlite3_exec(handle, script, nil, nil, nil)
        record.add(record.takeCompiled())
        if !isInTransaction { record.commit() }
        if code != SQLITE_OK { throw failure(code, sql: script) }
    }

    /// Runs one statement and passes each of its rows to a closure, which may run others.
    package func rows(_ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws -> Void) throws {
        try statement(sql).rows(values, body)
    }

    /// A statement that runs for each of many rows, so that its text is looked up once.
    func statement(_ sql: String) throws -> Statement {
        // One that is running, or whose text is not cached yet, is compiled.
        let text = StatementText(sql: sql)
        if let known = statements[text], !known.isRunning { return known }
        let statement = try compile(sql)
        if statements[text] == nil { statements[text] = statement }
        return statement
    }

    /// A statement of the app.
    func statement(ofTheApp sql: String) throws -> Statement {
        let text = StatementText(sql: sql)
        let known = ofTheApp[text]
        if let known, !known.isRunning { return known }
        let statement = try compile(sql)
        if known == nil { ofTheApp.keep(statement, as: text) }
        return statement
    }

    /// Compiles a statement, which may be the only one of the text.
    func compile(_ sql: String) throws -> Statement {
        var handle: OpaquePointer?
        let (code, rest) = sql.withCString { text in
            var end: UnsafePointer<CChar>?
            let code = sqlite3_prepare_v3(self.handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, &end)
            return (code, end.map { String(cString: $0) } ?? "")
        }
        guard code == SQLITE_OK, let handle else { throw failure(code, sql: sql) }
        // SQLite would ignore what follows.
        if !firstStatement(in: rest).isEmpty {
            sqlite3_finalize(handle)
            throw WeirError.database(code: SQLITE_MISUSE, message: "more than one statement", sql: sql)
        }
        return Statement(handle, sql: sql, record)
    }

    /// What a closure makes of each row.
    package func map<Element>(
        _ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws -> Element
    ) throws -> [Element] {
        var elements: [Element] = []
        try rows(sql, values) { elements.append(try body($0)) }
        return elements
    }

    /// The first column of the first row; `nil` without a row.
    package func value(_ sql: String, _ values: [SQLValue] = []) throws -> SQLValue? {
        try map(sql, values) { $0.value(at: 0) }.first
    }

    /// The first column of the first row, which is an integer.
    package func integer(_ sql: String, _ values: [SQLValue] = []) throws -> Int64? {
        guard case .integer(let number) = try value(sql, values) else { return nil }
        return number
    }

    /// Whether a transaction is open, which some errors end.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Runs a closure in a transaction that has the write lock from its beginning.
    ///
    /// It is committed when the closure returns, and rolled back when the closure or the commit throws.
    ///
    /// - Parameter writesRows: whether it may write the app's tables, with all their triggers.
    package func transaction<Result>(writesRows: Bool = true, _ body: () throws -> Result) throws -> Result {
        if writesRows { try setTriggers(firing: true) }
        try run("BEGIN IMMEDIATE")
        do {
            try began()
            let result = try body()
            try willCommit()
            try run("COMMIT")
            record.commit()
            return result
        } catch {
            record.rollBack()
            // Some errors, such as a full disk, have rolled back already.
            if isInTransaction { try run("ROLLBACK") }
            throw error
        }
    }

    /// Whether triggers fire for what this connection writes, until the next transaction that writes rows.
    ///
    /// After a change SQLite compiles each statement again, which takes as long as some hundred rows.
    func setTriggers(firing: Bool) throws {
        guard firing != firesTriggers else { return }
        let code = csqlite_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, firing ? 1 : 0)
        if code != SQLITE_OK { throw failure(code) }
        firesTriggers = firing
    }

    /// Passes the tables that each transaction has written, once it is committed, to a closure.
    func onCommit(_ body: @escaping (Set<String>) -> Void) { record.committed = body }

    /// A number that changes with each commit of another connection, and not with those of this one.
    var foreignVersion: Int64? { get throws { try integer("PRAGMA data_version") } }

    /// How many pages a write-ahead log may have until a commit of this connection moves them into the file.
    package enum CheckpointDistance: Int {
        /// SQLite's own. More would leave the work to commits of the app's connections.
        case short = 1000
        /// 16 MB. Rows with random keys change most pages many times, and each of them is moved once.
        case long = 4000
    }

    package func setCheckpointDistance(_ distance: CheckpointDistance) throws {
        try execute("PRAGMA wal_autocheckpoint = \(distance.rawValue)")
    }

    private func failure(_ code: Int32, sql: String? = nil) -> WeirError {
        WeirError(code: code, of: handle, sql: sql)
    }
}

/// What a text of SQL has from its first statement on: comments and empty statements may precede.
func firstStatement(in sql: String) -> Substring {
    var rest = sql[...]
    while true {
        rest = rest.drop { $0.isWhitespace || $0 == ";" || $0 == "\u{FEFF}" }
        if rest.hasPrefix("--") {
            rest = rest.drop { !$0.isNewline }
        } else if rest.hasPrefix("/*") {
            // SQLite takes one that does not end for a comment up to the end.
            rest = rest.firstRange(of: "*/").map { rest[$0.upperBound...] } ?? ""
        } else {
            return rest
        }
    }
}

/// A name in SQL, quoted: keywords, spaces and quotes are part of it.
package func quoted(_ name: String) -> String { "\"" + name.replacing("\"", with: "\"\"") + "\"" }

/// A string literal in SQL.
package func literal(_ text: String) -> String { "'" + text.replacing("'", with: "''") + "'" }
