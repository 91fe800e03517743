import SQLite
import TestResources
import Testing

@Suite struct ConnectionTests {
    @Test func namesTheErrorInTheSQL() throws {
        try withConnection { connection throws in
            let error = sqliteError { _ = try connection.prepare("SELEKT 1") }
            #expect(error?.code == .error)
            #expect(error?.message == "near \"SELEKT\": syntax error")
            #expect(error?.sql == "SELEKT 1")
            #expect(error?.action == .prepare)
            #expect(error?.path == connection.path)
            #expect(error?.description.contains("SQLITE_ERROR (1) in prepare of \(connection.path)") == true)
        }
    }

    @Test func preparesExactlyOneStatement() throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT 1; -- a comment\n ;")
            #expect(try statement.step())
            #expect(sqliteError { _ = try connection.prepare("SELECT 1; SELECT 2") }?.code == .misuse)
            #expect(sqliteError { _ = try connection.statement("SELECT 1; SELECT 2") }?.code == .misuse)
            #expect(sqliteError { _ = try connection.prepare("-- nothing") }?.code == .misuse)
            #expect(sqliteError { _ = try connection.prepare("") }?.code == .misuse)
            #expect(sqliteError { _ = try connection.prepare("SELECT 1\u{0}, 2") }?.code == .misuse)
        }
    }

    @Test func executesAllStatements() throws {
        try withConnection { connection throws in
            try connection.execute(
                """
                CREATE TABLE t (i); -- first
                INSERT INTO t VALUES (1), (2);
                SELECT i FROM t;
                INSERT INTO t VALUES (3);

                """)
            #expect(try connection.number("SELECT sum(i) FROM t") == 6)
            let error = sqliteError { try connection.execute("INSERT INTO t VALUES (4); NONSENSE; DELETE FROM t") }
            #expect(error?.sql == " NONSENSE; DELETE FROM t")
            #expect(try connection.number("SELECT sum(i) FROM t") == 10)
        }
    }

    @Test func namesTheViolatedConstraint() throws {
        try withConnection { connection throws in
            try connection.execute(
                "CREATE TABLE t (k TEXT PRIMARY KEY, u UNIQUE, n NOT NULL, c CHECK (c < 10)) WITHOUT ROWID")
            try connection.execute("INSERT INTO t VALUES ('a', 1, 1, 1)")
            func refusal(_ values: String) -> SQLiteError? {
                sqliteError { try connection.execute("INSERT INTO t VALUES (\(values))") }
            }
            let primaryKey = refusal("'a', 2, 1, 1")
            #expect(primaryKey?.isConstraint == true)
            #expect(primaryKey?.extendedCode == 1555)
            let unique = refusal("'b', 1, 1, 1")
            #expect(unique?.extendedCode == 2067)
            #expect(unique?.message == "UNIQUE constraint failed: t.u")
            let notNull = refusal("'b', 2, NULL, 1")
            #expect(notNull?.extendedCode == 1299)
            let check = refusal("'b', 2, 1, 10")
            #expect(check?.extendedCode == 275)
            #expect(check?.code == .constraint)
        }
    }

    @Test func countsChangedRows() throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE t (i)")
            try connection.execute("INSERT INTO t VALUES (1), (2), (3)")
            #expect(connection.changes == 3)
            try connection.execute("DELETE FROM t WHERE i > 1")
            #expect(connection.changes == 2)
        }
    }

    @Test func keepsAUserVersion() throws {
        let folder = try TemporaryFolder()
        try withConnection(to: folder.file(), access: .readWriteCreate()) { connection throws in
            #expect(try connection.userVersion() == 0)
            try connection.setUserVersion(-7)
            #expect(throws: Refusal.self) {
                try connection.transaction(.immediate) {
                    try connection.setUserVersion(8)
                    throw Refusal()
                }
            }
        }
        try withConnection(to: folder.file(), access: .readOnly) { connection throws in
            #expect(try connection.userVersion() == -7)
        }
    }

    @Test func appliesEveryOption() throws {
        let write = WriteOptions(journal: .delete, synchronous: .full, pageSize: 8192, walAutocheckpoint: 77)
        let options = ConnectionOptions(cacheSize: 3 << 20, busyTimeoutMilliseconds: 1234)
        try withConnection(write: write, options: options) { connection throws in
            #expect(try connection.text("PRAGMA journal_mode") == "delete")
            #expect(try connection.number("PRAGMA synchronous") == 2)
            #expect(try connection.number("PRAGMA page_size") == 8192)
            #expect(try connection.number("PRAGMA wal_autocheckpoint") == 77)
            #expect(try connection.number("PRAGMA cache_size") == -3072)
            #expect(try connection.number("PRAGMA mmap_size") == 0)
            #expect(try connection.number("PRAGMA busy_timeout") == 1234)
            #expect(try connection.number("PRAGMA foreign_keys") == 0)
        }
        try withConnection(write: WriteOptions(synchronous: .off)) { connection throws in
            #expect(try connection.text("PRAGMA journal_mode") == "wal")
            #expect(try connection.number("PRAGMA synchronous") == 0)
        }
        try withConnection { connection throws in #expect(try connection.number("PRAGMA synchronous") == 1) }
    }

    @Test func rejectsADoubleQuotedString() throws {
        try withConnection { connection throws in
            #expect(sqliteError { _ = try connection.prepare("SELECT \"no column\"") }?.code == .error)
        }
    }

    @Test func staysOpenWhileAStatementExists() throws {
        let folder = try TemporaryFolder()
        let connection = try Connection(path: folder.file(), access: .readWriteCreate())
        do {
            var statement = try connection.prepare("SELECT 1")
            let error = sqliteError { try connection.close() }
            #expect(error?.isBusy == true)
            #expect(error?.action == .close)
            #expect(connection.isOpen)
            #expect(try statement.step())
        }
        try connection.close()
        try connection.close()
        #expect(!connection.isOpen)
    }

    @Test func trapsWhenReleasedOpenOrUsedClosed() async throws {
        // Created here, since a process that traps does not remove it.
        let folder = try TemporaryFolder()
        let path = folder.file()
        await #expect(processExitsWith: .trap) { [path = path as String] in
            let connection = try Connection(path: path, access: .readWriteCreate())
            try connection.close()
            try connection.execute("SELECT 1")
        }
        #if DEBUG
            await #expect(processExitsWith: .trap) { [path = path as String] in
                _ = try Connection(path: path, access: .readWriteCreate())
            }
        #endif
    }
}
