import Testing
import WeirClient

@Suite struct FreezingTests {
    // MARK: The batch

    @Test func theBodyIsThatOfAnUpload() throws {
        let app = try SyncedApp.withItem()
        try app.run("UPDATE item SET title = 'B'")
        let batch = try #require(try app.freeze().batch)
        #expect(batch.number == 2)
        #expect(
            batch.text
                == #"{"knowledgeId":"k1","epoch":"e1","schemaVersion":"s1","batch":2,"changes":["#
                + #"{"table":"item","id":"a","values":{"title":"B"},"base":101}]}"#)
    }

    @Test func aBatchIsTheSameUntilItHasItsOutcome() throws {
        let app = try SyncedApp.withItem()
        try app.run("UPDATE item SET title = 'B'")
        let first = try app.freeze().batch
        try app.run("UPDATE item SET title = 'C', note = 'm'; INSERT INTO item VALUES ('b', 'B', NULL)")
        #expect(try app.freeze(changes: 1, bytes: 10).batch == first)
        try app.open("item")
        #expect(try app.freeze().batch == first)
        try app.acknowledge()
        #expect(
            try app.frozen() == [
                #"{"table":"item","id":"a","values":{"title":"C","note":"m"},"base":102}"#,
                #"{"table":"item","id":"b","values":{"title":"B","note":null},"base":0}"#,
            ])
        #expect(try app.freeze().batch?.number == 3)
    }

    /// The app's writes wait for the transactions that freeze and end it.
    @Test func aBatchHasNoMoreChangesThanSomeMillisecondsAreEnoughFor() throws {
        let app = try SyncedApp.withItem()
        try app.run(
            """
            WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO item SELECT 'n' || i, 'T', NULL FROM n
            """)
        var sizes: [Int] = []
        while let batch = try app.freeze(changes: 10_000).batch {
            sizes.append(batch.changes)
            try app.acknowledge()
        }
        #expect(sizes == [500, 500, 200])
    }

    @Test func nothingIsFrozenWithoutEditsAndNoNumberIsUsed() throws {
        let app = try SyncedApp.withItem()
        #expect(try app.freeze().batch == nil)
        try app.run("UPDATE item SET title = 'B'")
        #expect(try app.freeze().batch?.number == 2)
    }

    // MARK: Edits during a batch

    @Test(arguments: [
        ("UPDATE item SET title = 'A'", #"{"table":"item","id":"a","values":{"title":"A"},"base":102}"#),
        ("UPDATE item SET title = 'C'; UPDATE item SET title = 'B'", nil),
        ("DELETE FROM item", #"{"table":"item","id":"a","deleted":true,"base":102}"#),
        (
            "DELETE FROM item; INSERT INTO item VALUES ('a', 'B', 'n')",
            #"{"table":"item","id":"a","values":{"title":"B","note":"n"},"base":102,"ifBase":true}"#
        ),
    ]) func anEditOfARowThatIsBeingSentFollows(sql: String, change: String?) throws {
        let app = try SyncedApp.withItem()
        try app.run("UPDATE item SET title = 'B'")
        _ = try app.frozen()
        try app.run(sql)
        #expect(try app.opened.pendingRows() == 1)
        try app.acknowledge()
        #expect(try app.sync() == (change.map { [$0] } ?? []))
    }

    @Test func aCreationThatIsBeingSentCanBeDeleted() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        _ = try app.frozen()
        try app.run("DELETE FROM item WHERE id = 'b'")
        try app.acknowledge()
        #expect(try app.sync() == [#"{"table":"item","id":"b","deleted":true,"base":102}"#])
    }

    @Test func aDeletionThatIsBeingSentCanBeFollowedByAnInsertion() throws {
        let app = try SyncedApp.withItem()
        try app.run("DELETE FROM item")
        _ = try app.frozen()
        try app.run("INSERT INTO item VALUES ('a', 'new', NULL)")
        try app.acknowledge()
        #expect(
            try app.sync() == [
                #"{"table":"item","id":"a","values":{"title":"new","note":null},"base":102,"ifBase":true}"#
            ])
    }

    @Test func anEditKeepsTheBaseThatItWasGiven() throws {
        let app = try SyncedApp.withItem()
        try app.run("UPDATE item SET title = 'B'")
        _ = try app.opened.pendingRows()
        // As when a newer version of the row is pulled beneath the edit.
        try app.run("UPDATE weir_edit_1 SET base = 101; UPDATE weir_row_1 SET time_stamp = 150")
        #expect(try app.frozen() == [#"{"table":"item","id":"a","values":{"title":"B"},"base":101}"#])
    }

    @Test func anOutcomeOfAnotherBatchIsRefused() throws {
        let app = try SyncedApp.withItem()
        let early = #expect(throws: BatchMismatch.self) { try app.opened.acknowledge(1, timeStamps: [1]) }
        #expect(early?.expected == nil)
        try app.run("UPDATE item SET title = 'B'")
        _ = try app.frozen()
        for (number, timeStamps) in [(3, [1]), (2, [1, 2])] as [(Int64, [Int64])] {
            let mismatch = #expect(throws: BatchMismatch.self) {
                try app.opened.acknowledge(number, timeStamps: timeStamps)
            }
            #expect(mismatch?.expected == 2)
            #expect(mismatch?.changes == 1)
        }
        #expect(try app.opened.pendingRows() == 1)
    }

    @Test func aBatchWithRowsOfATableThatIsNoLongerNamedIsAcknowledged() throws {
        let app = try SyncedApp.withItem("CREATE TABLE other (id INTEGER PRIMARY KEY)")
        try app.run("UPDATE item SET title = 'B'")
        _ = try app.frozen()
        try app.open("other")
        try app.acknowledge()
        #expect(try app.freeze().batch == nil)
        try app.open("item")
        #expect(try app.opened.pendingRows() == 0)
        try app.run("UPDATE item SET title = 'C'")
        #expect(try app.sync() == [#"{"table":"item","id":"a","values":{"title":"C"},"base":102}"#])
    }

    // MARK: Limits

    @Test func aBatchStaysWithinItsLimits() throws {
        let app = try SyncedApp.withItem()
        try app.run(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1200)
            INSERT INTO item SELECT 'id' || i, 'title ' || i, NULL FROM n
            """)
        var sizes: [Int] = []
        var changes: Set<String> = []
        while let batch = try app.freeze(changes: 300, bytes: 20_000).batch {
            #expect(batch.body.count <= 20_000)
            sizes.append(batch.changes)
            changes.formUnion(batch.changeTexts)
            try app.acknowledge()
        }
        #expect(changes.count == 1200)
        #expect(sizes.allSatisfy { $0 <= 300 })
        // The bytes are the limit here, of changes of some 85 bytes; all batches but the last are full.
        #expect(sizes.dropLast().allSatisfy { $0 > 220 })
    }

    @Test func aBatchHasNoMoreChangesThanTheServerTakes() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', 'B', NULL), ('c', 'C', NULL), ('d', 'D', NULL)")
        #expect(try app.freeze(changes: 2).batch?.changes == 2)
        try app.acknowledge()
        #expect(try app.freeze(changes: 2).batch?.changes == 1)
    }

    @Test func aChangeThatIsLargerThanABatchIsHeldAndTheOthersAreSent() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', hex(zeroblob(2000)), NULL), ('c', 'C', NULL)")
        let frozen = try app.freeze(bytes: 1000)
        #expect(
            frozen.batch?.changeTexts == [#"{"table":"item","id":"c","values":{"title":"C","note":null},"base":0}"#])
        #expect(frozen.held.map { [$0.table, $0.key] } == [["item", "'b'"]])
        try app.acknowledge()
        #expect(try app.freeze(bytes: 1000).batch == nil)
        #expect(try app.opened.pendingRows() == 1)
        try app.run("UPDATE item SET title = 'short' WHERE id = 'b'")
        #expect(try app.sync().count == 1)
    }

    // MARK: Order

    @Test func parentsAreCreatedFirstAndDeletedLast() throws {
        let app = try SyncedApp(
            """
            CREATE TABLE mark (id TEXT PRIMARY KEY, item TEXT REFERENCES item DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE item (id TEXT PRIMARY KEY, list TEXT REFERENCES LIST DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE list (id TEXT PRIMARY KEY);
            """, server: ["list": [:], "item": ["list": "text"], "mark": ["item": "text"]])
        try app.open("mark", "item", "list")
        try app.run(
            """
            BEGIN; INSERT INTO mark VALUES ('m', 'i'); INSERT INTO item VALUES ('i', 'l'); INSERT INTO list VALUES ('l'); COMMIT
            """)
        #expect(try app.sync(changes: 1).map { $0.split(separator: "\"")[3] } == ["list", "item", "mark"])
        try app.run("BEGIN; DELETE FROM list; DELETE FROM item; DELETE FROM mark; COMMIT")
        #expect(try app.sync(changes: 1).map { $0.split(separator: "\"")[3] } == ["mark", "item", "list"])
    }

    @Test func rowsOfATreeAreCreatedFromTheRootAndDeletedFromTheLeaves() throws {
        let app = try SyncedApp(
            "CREATE TABLE node (id TEXT PRIMARY KEY, up TEXT REFERENCES node DEFERRABLE INITIALLY DEFERRED)",
            server: ["node": ["up": "text"]])
        try app.open("node")
        // c is the root, a its child, b the child of a; x and y reference each other.
        try app.run(
            """
            BEGIN;
            INSERT INTO node VALUES ('b', 'a'), ('a', 'c'), ('c', NULL), ('x', 'y'), ('y', 'x');
            COMMIT
            """)
        func ids(_ changes: [String]) -> String { changes.map { String($0.split(separator: "\"")[7]) }.joined() }
        #expect(ids(try app.sync(changes: 2)) == "cabyx")
        try app.run("DELETE FROM node")
        #expect(ids(try app.sync(changes: 2)) == "xybac")
    }

    // MARK: The server's schema

    @Test func columnsThatTheServerDoesNotHaveAreLeftOutAndNamed() throws {
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, a TEXT, local TEXT, odd TEXT)",
            server: ["t": ["a": "text", "odd": "vector(3)"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES ('k', 'v', 'w', 'x')")
        let frozen = try app.freeze()
        #expect(frozen.batch?.changeTexts == [#"{"table":"t","id":"k","values":{"a":"v"},"base":0}"#])
        #expect(frozen.unknownColumns == ["t": ["local", "odd"]])
        try app.acknowledge()
        try app.run("UPDATE t SET local = 'only'")
        for _ in 0..<2 {
            let next = try app.freeze()
            #expect(next.batch == nil && next.unknownColumns == ["t": ["local", "odd"]])
        }
        #expect(try app.opened.pendingRows() == 0)
    }

    @Test func editsOfATableThatTheServerDoesNotHaveWait() throws {
        let app = try SyncedApp.withItem("CREATE TABLE other (id TEXT PRIMARY KEY)")
        try app.open("item", "other")
        #expect(try app.freeze().unknownTables == [])
        try app.run("INSERT INTO other VALUES ('o')")
        let frozen = try app.freeze()
        #expect(frozen.batch == nil)
        #expect(frozen.unknownTables == ["other"])
        #expect(try app.opened.pendingRows() == 1)
    }

    @Test func underLastWriteWinsAChangeSaysWhenItWasMade() throws {
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, v TEXT)", server: ["t": ["v": "text"]], policy: "lastWriteWins")
        try app.open("t")
        try app.run("INSERT INTO t VALUES ('k', 'v')")
        // When the trigger fired, not when the batch is frozen.
        try app.run("UPDATE weir_log_1 SET at = julianday('2026-01-02 03:04:05.678')")
        #expect(
            try app.frozen()
                == [#"{"table":"t","id":"k","values":{"v":"v"},"base":0,"updatedAt":"2026-01-02T03:04:05.678Z"}"#])
    }

    /// A row whose edit was made long ago, under lastWriteWins, and another one with a unique value.
    private func edited(isFolded: Bool) throws -> SyncedApp {
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, v TEXT COLLATE NOCASE, u TEXT UNIQUE, w)",
            server: ["t": ["v": "text", "u": "text", "w": "json"]], policy: "lastWriteWins")
        try app.open("t")
        try app.run("INSERT INTO t VALUES ('k', 'v', 'u', 1), ('other', 'v', 'taken', 1)")
        try app.sync()
        try app.run("UPDATE t SET v = 'edited', w = 2 WHERE id = 'k'")
        try app.run("UPDATE weir_log_1 SET at = julianday('2026-01-02 03:04:05.678')")
        if isFolded { _ = try app.opened.pendingRows() }
        return app
    }

    @Test(
        arguments: [
            "INSERT OR IGNORE INTO t VALUES ('k', 'x', 'x', 1)",
            "INSERT INTO t VALUES ('k', 'x', 'x', 1) ON CONFLICT DO NOTHING",
            "INSERT OR IGNORE INTO t VALUES ('new', 'x', 'u', 1)",
            "UPDATE OR IGNORE t SET u = 'u' WHERE id = 'other'",
            "UPDATE OR IGNORE t SET v = 'x', u = 'taken' WHERE id = 'k'",
            "UPDATE OR IGNORE t SET id = 'other' WHERE id = 'k'",
        ], [false, true]
    ) func aStatementThatIsIgnoredLeavesAnEditTheTimeAtWhichItWasMade(sql: String, isFolded: Bool) throws {
        let app = try edited(isFolded: isFolded)
        try app.run(sql)
        let changes = try app.frozen()
        #expect(changes.count == 1)
        #expect(changes.first?.contains(#""base":101,"updatedAt":"2026-01-02T03:04:05.678Z""#) == true, "\(changes)")
    }

    @Test(
        arguments: [
            "UPDATE t SET v = 'x' WHERE id = 'k'", "UPDATE t SET v = 'EDITED' WHERE id = 'k'",
            "UPDATE t SET w = 2.0 WHERE id = 'k'", "UPDATE t SET u = NULL WHERE id = 'k'",
            "UPDATE t SET v = 'v' WHERE id = 'k'; UPDATE t SET v = 'edited' WHERE id = 'k'",
            "UPDATE t SET v = 'x' WHERE id = 'k'; INSERT OR IGNORE INTO t VALUES ('k', 'y', 'y', 1)",
            "DELETE FROM t WHERE id = 'k'", "REPLACE INTO t VALUES ('k', 'edited', 'u', 2)",
            "DELETE FROM t WHERE id = 'k'; INSERT INTO t VALUES ('k', 'edited', 'u', 2)",
            "REPLACE INTO t VALUES ('other', 'v', 'u', 1)",
        ], [false, true]
    ) func aLaterChangeGivesAnEditItsTime(sql: String, isFolded: Bool) throws {
        let app = try edited(isFolded: isFolded)
        try app.run(sql)
        let changes = try app.frozen().filter { $0.contains(#""id":"k""#) }
        #expect(changes.count == 1)
        #expect(changes.first?.contains("2026-01-02T03:04:05.678Z") == false, "\(changes)")
    }
}
