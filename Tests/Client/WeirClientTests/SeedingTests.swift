import Testing
import WeirClient

@Suite struct SeedingTests {
    @Test(arguments: ["INTEGER PRIMARY KEY", "TEXT PRIMARY KEY", "TEXT PRIMARY KEY COLLATE NOCASE"])
    func adoptsEachRowThatWasThereBeforeOnce(key: String) throws {
        let app = try SyncedApp(
            """
            CREATE TABLE t (id \(key), v INT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2500) INSERT INTO t SELECT i, 2 * i FROM n;
            """, server: ["t": ["v": "integer"]])
        let file = try app.open("t")
        #expect(file.gaps.map(\.unknownRows) == [2500])
        // Some are captured before they are adopted.
        try app.run("UPDATE t SET v = 0 WHERE id = 7; DELETE FROM t WHERE id = 8; INSERT INTO t VALUES (9999, 1)")
        #expect(try app.seed() == 2498)
        #expect(try app.seed() == 0)
        let changes = try app.sync()
        #expect(changes.count == 2500)
        #expect(Set(changes).count == 2500)
        #expect(changes.contains(#"{"table":"t","id":"7","values":{"v":0},"base":0}"#))
        #expect(changes.contains(#"{"table":"t","id":"2500","values":{"v":5000},"base":0}"#))
        #expect(try app.seed() == 0)
        #expect(try app.opened.pendingRows() == 0)
    }

    @Test func aRowThatIsBeingSentIsNotAdopted() throws {
        let app = try SyncedApp("CREATE TABLE t (id TEXT PRIMARY KEY, v INT)", server: ["t": ["v": "integer"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES ('k', 1)")
        #expect(try app.freeze().batch?.changes == 1)
        #expect(try app.seed() == 0)
        #expect(try app.sync().count == 1)
    }

    @Test func aRowThatWasThereBeforeIsSentWholeOnceItIsEdited() throws {
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, a INT, b INT); INSERT INTO t VALUES ('k', 1, 2), ('l', 3, 4)",
            server: ["t": ["a": "integer", "b": "integer"]])
        try app.open("t")
        try app.run("UPDATE t SET a = 9 WHERE id = 'k'")
        // These change nothing.
        try app.run("INSERT OR IGNORE INTO t VALUES ('l', 5, 6); UPDATE t SET a = a WHERE id = 'l'")
        #expect(try app.sync() == [#"{"table":"t","id":"k","values":{"a":9,"b":2},"base":0}"#])
        #expect(try app.opened.pendingRows() == 0)
    }

    /// Such a statement is recorded before SQLite ignores it.
    @Test(arguments: [
        "INSERT OR IGNORE INTO t VALUES ('k', 5, 'u')", "INSERT INTO t VALUES ('k', 5, 'u') ON CONFLICT DO NOTHING",
        "INSERT OR IGNORE INTO t VALUES ('other', 5, 'u')", "UPDATE OR IGNORE t SET id = 'k' WHERE id = 'l'",
        "DELETE FROM t",
    ]) func aRowThatAStatementHasNamedWithoutChangingItIsAdopted(sql: String) throws {
        let app = try SyncedApp(
            """
            CREATE TABLE t (id TEXT PRIMARY KEY, v INT, u TEXT UNIQUE); INSERT INTO t VALUES ('k', 1, 'u'), ('l', 2, NULL);
            CREATE TRIGGER kept BEFORE DELETE ON t BEGIN SELECT RAISE(IGNORE); END
            """, server: ["t": ["v": "integer", "u": "text"]])
        try app.open("t")
        try app.run(sql)
        #expect(try app.seed() == 2)
        #expect(try app.seed() == 0)
        #expect(
            try app.sync() == [
                #"{"table":"t","id":"k","values":{"v":1,"u":"u"},"base":0}"#,
                #"{"table":"t","id":"l","values":{"v":2,"u":null},"base":0}"#,
            ])
        #expect(try app.seed() == 0)
        #expect(try app.opened.pendingRows() == 0)
    }
}
