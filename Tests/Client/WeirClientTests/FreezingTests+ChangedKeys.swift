import Testing
import WeirClient

/// Rows whose keys were changed.
extension FreezingTests {
    @Test func aChangedKeyIsADeletionAndAnInsertionInOneAtomicBatch() throws {
        let app = try SyncedApp.withItem()
        try app.run(
            """
            INSERT INTO item VALUES ('z', 'Z', NULL);
            UPDATE item SET id = 'b', title = 'B' WHERE id = 'a';
            """)
        // The other row is sent by itself.
        #expect(try app.frozen() == [#"{"table":"item","id":"z","values":{"title":"Z","note":null},"base":0}"#])
        try app.acknowledge()
        let batch = try #require(try app.freeze().batch)
        #expect(batch.text.contains(#""batch":3,"atomic":true,"changes":["#))
        #expect(
            batch.changeTexts == [
                #"{"table":"item","id":"b","values":{"title":"B","note":"n"},"base":0}"#,
                #"{"table":"item","id":"a","deleted":true,"base":101}"#,
            ])
    }

    @Test(arguments: ["id", "rowid", "oid", "_rowid_"]) func theKeyHasTheNamesOfTheRowid(name: String) throws {
        let app = try SyncedApp("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", server: ["t": ["v": "text"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES (1, 'v')")
        try app.sync()
        try app.run("UPDATE t SET \(name) = 2")
        #expect(
            try app.sync() == [
                #"{"table":"t","id":"2","values":{"v":"v"},"base":0}"#,
                #"{"table":"t","id":"1","deleted":true,"base":101}"#,
            ])
    }

    @Test func rowsThatExchangeTheirKeysAreOneAtomicBatch() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', 'B', 'm')")
        try app.sync()
        try app.run(
            """
            UPDATE item SET id = 't' WHERE id = 'a'; UPDATE item SET id = 'a' WHERE id = 'b'; UPDATE item SET id = 'b' WHERE id = 't'
            """)
        let batch = try #require(try app.freeze().batch)
        #expect(batch.text.contains(#""atomic":true"#))
        #expect(
            Set(batch.changeTexts) == [
                #"{"table":"item","id":"a","values":{"title":"B","note":"m"},"base":101,"ifBase":true}"#,
                #"{"table":"item","id":"b","values":{"title":"A","note":"n"},"base":102,"ifBase":true}"#,
            ])
    }

    @Test func aKeyThatChangedBeforeTheRowWasSentIsACreation() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', 'B', NULL); UPDATE item SET id = 'c' WHERE id = 'b'")
        let batch = try #require(try app.freeze().batch)
        #expect(batch.changeTexts == [#"{"table":"item","id":"c","values":{"title":"B","note":null},"base":0}"#])
        #expect(!batch.text.contains("atomic"))
        #expect(try app.query("SELECT count(*) FROM weir_key_change") == ["0"])
    }

    @Test func changedKeysThatDoNotFitIntoOneBatchAreSentInSeveral() throws {
        let app = try SyncedApp("CREATE TABLE t (id INTEGER PRIMARY KEY, v INT)", server: ["t": ["v": "integer"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        try app.sync()
        // All are connected: each key but one was another row's.
        try app.run("UPDATE t SET id = id - 10; UPDATE t SET id = id + 11")
        let changes = try app.sync(changes: 2)
        #expect(changes.count == 4)
        #expect(changes.last == #"{"table":"t","id":"1","deleted":true,"base":101}"#)
    }

    @Test func aBatchLooksAtNoMoreChangedKeysThanItCanHave() async throws {
        let app = try SyncedApp("CREATE TABLE t (id INTEGER PRIMARY KEY, v INT)", server: ["t": ["v": "integer"]])
        let statements = StatementCount(path: app.path)
        defer { statements.stop() }
        try app.open("t")
        try app.run(
            """
            WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 600)
            INSERT INTO t SELECT i, i FROM n
            """)
        try app.sync()
        // Pairs of rows first, and then rows that are all connected.
        try app.run("UPDATE t SET id = id + 10000 WHERE id <= 500; UPDATE t SET id = -id WHERE id < 10000 AND id > 500")
        try app.run("UPDATE t SET id = 1 - id WHERE id < 0")
        try app.opened.foldLogs()
        var batches: [[String]] = []
        while true {
            var batch: Batch?
            let count = try await statements.during { batch = try app.freeze(changes: 20).batch }
            guard let batch else { break }
            #expect(count < 600, "batch \(batches.count)")
            batches.append(batch.changeTexts)
            try app.acknowledge()
        }
        #expect(try app.opened.pendingRows() == 0)
        // Each row that has a new key, and each key that is gone.
        #expect(batches.joined().count >= 1000 + 101)
        #expect(Set(batches.joined()).count == batches.joined().count)
        #expect(try app.query("SELECT count(*) FROM weir_row_1 WHERE NOT deleted") == ["600"])
    }
}
