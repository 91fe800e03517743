import Testing
import WeirClient

/// REPLACE gives a column that may not be NULL its default in place of NULL.
extension CaptureTests {
    @Test(
        arguments: Writer.allCases,
        ["TEXT NOT NULL DEFAULT 'main'", "TEXT NOT NULL DEFAULT main", #"TEXT NOT NULL DEFAULT "main""#].flatMap {
            slot in
            [
                "INSERT OR REPLACE INTO u VALUES ('B', NULL)", "INSERT OR REPLACE INTO u VALUES ('B', 'MAIN')",
                "UPDATE OR REPLACE u SET slot = NULL WHERE id = 'B'",
            ].map { (slot: slot, sql: $0) }
        }
    ) func aRowThatIsReplacedForADefaultValueIsDeleted(writer: Writer, change: (slot: String, sql: String)) async throws
    {
        let app = try SyncedApp(
            "CREATE TABLE u (id TEXT PRIMARY KEY, slot \(change.slot) UNIQUE COLLATE NOCASE)",
            server: ["u": ["slot": "text"]])
        try app.open("u")
        try app.run("INSERT INTO u (id) VALUES ('A'); INSERT INTO u VALUES ('B', 'other')")
        try app.sync()
        try await app.run(change.sql, by: writer)
        #expect(try app.query("SELECT id FROM u") == ["'B'"])
        let changes = try app.sync()
        #expect(changes.count == 2)
        #expect(changes.last == #"{"table":"u","id":"A","deleted":true,"base":101}"#)
    }

    @Test(arguments: Writer.allCases)
    func theValuesOfARowThatIsReplacedForADefaultKeyAreRecorded(writer: Writer) async throws {
        let app = try SyncedApp(
            "CREATE TABLE u (id TEXT PRIMARY KEY NOT NULL DEFAULT one, v TEXT)", server: ["u": ["v": "text"]])
        try app.open("u")
        try app.run("INSERT INTO u (v) VALUES ('first')")
        try app.sync()
        try await app.run("INSERT OR REPLACE INTO u VALUES (NULL, 'second')", by: writer)
        #expect(try app.query("SELECT c1 FROM weir_log_1 WHERE c1 IS NOT NULL") == ["'first'"])
        #expect(try app.sync() == [#"{"table":"u","id":"one","values":{"v":"second"},"base":101,"ifBase":true}"#])
    }
}
