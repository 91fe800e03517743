import Foundation
import TestResources
import Testing
import WeirClient

@Suite struct OpeningTests {
    // MARK: Tables that cannot be synced

    @Test(arguments: [
        ("CREATE TABLE t (a, b)", "it has no PRIMARY KEY"),
        ("CREATE TABLE t (a, b, PRIMARY KEY (a, b))", "its PRIMARY KEY has 2 columns"),
        ("CREATE TABLE t (a REAL PRIMARY KEY)", "is declared REAL; declare it INTEGER, TEXT or"),
        ("CREATE TABLE t (a DATE PRIMARY KEY)", "is declared DATE; declare it INTEGER, TEXT or"),
        ("CREATE TABLE t (a PRIMARY KEY)", "its PRIMARY KEY a is declared "),
        ("CREATE VIEW t AS SELECT 1", "it is a view; name the tables behind it"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", "it is a virtual table"),
        (
            "CREATE TABLE t (a TEXT PRIMARY KEY, \((1...901).map { "c\($0)" }.joined(separator: ", ")))",
            "it has 901 columns besides its key, and can have 900"
        ),
        ("CREATE TABLE u (a TEXT PRIMARY KEY)", "there is no such table; create it before Weir.open, or name it"),
    ]) func refusesATableAndSaysWhatToDo(sql: String, reason: String) throws {
        let app = try SyncedApp(sql)
        let before = try app.query("SELECT count(*) FROM sqlite_schema")
        let error = #expect(throws: WeirError.self) { try app.open("t") }
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
        #expect(try app.query("SELECT count(*) FROM sqlite_schema") == before)
    }

    @Test func refusesAFileThatIsMissingAndOneThatIsNoDatabase() throws {
        let app = try SyncedApp("")
        #expect(throws: WeirError.self) { try Database(path: app.folder.file("none.sqlite")) }
        try app.folder.write(Array("this is a text, and not a database of SQLite, at all".utf8), to: "text")
        let error = #expect(throws: WeirError.self) { try Database(path: app.folder.file("text")) }
        #expect(error?.description.contains("file is not a database") == true)
    }

    @Test(arguments: [(3_034_001, "3.34.1"), (3_008_011, "3.8.11")]) func refusesAnSQLiteThatIsTooOld(
        number: Int32, name: String
    ) async throws {
        let version = SQLiteVersion(number: number)
        let expected = WeirError.outdatedSQLite(version: name, least: "3.35.0")
        #expect(throws: expected) { try version.requireSupported() }
        #expect(expected.description == "the process has SQLite \(name), and WeirClient needs 3.35.0 or later")
        let app = try SyncedApp("CREATE TABLE item (id TEXT PRIMARY KEY)")
        let url = URL(filePath: app.path)
        await SQLiteVersion.$loaded.withValue(version) {
            await #expect(throws: expected) { _ = try await Weir.open(url, tables: ["item"]) }
            await #expect(throws: expected) {
                _ = try await Weir.migrate(url, tables: ["item"]) { Issue.record("the migration has begun") }
            }
        }
        #expect(try app.query("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'weir%'") == ["0"])
    }

    @Test(arguments: [3_035_000, 3_040_001, 4_000_000]) func opensWithTheOldestSQLiteThatItNeedsAndLaterOnes(
        number: Int32
    ) async throws {
        let version = SQLiteVersion(number: number)
        try version.requireSupported()
        let app = try SyncedApp("CREATE TABLE item (id TEXT PRIMARY KEY)")
        let weir = try await SQLiteVersion.$loaded.withValue(version) {
            try await Weir.open(URL(filePath: app.path), tables: ["item"])
        }
        await weir.close()
    }

    @Test func refusesTheTablesOfANewerFormat() throws {
        let app = try SyncedApp.withItem()
        try app.run("UPDATE weir_meta SET value = 2 WHERE key = 'format'")
        #expect(throws: WeirError.newerFormat(found: 2, supported: 1)) { try app.open("item") }
    }

    // MARK: Names and types

    @Test(arguments: [
        "item", "order", #"with "quotes""#, "with spaces", "Ünïcode", "UPPER", "with'apostrophe", "semi;colon", "a.b",
    ]) func syncsTablesAndColumnsWithAnyName(name: String) throws {
        let quoted = quoted(name)
        let app = try SyncedApp(
            "CREATE TABLE \(quoted) (\(quoted) TEXT PRIMARY KEY, \"group\" TEXT, \"a \"\"b\" TEXT)",
            server: [name: ["group": "text", #"a "b"#: "text"]])
        try app.open(name)
        try app.run("INSERT INTO \(quoted) VALUES ('k', 'g', 'v')")
        #expect(try app.sync().count == 1)
        try app.run("UPDATE \(quoted) SET \"group\" = 'h'")
        let change = try #require(try app.frozen().first)
        #expect(change.hasSuffix(#","id":"k","values":{"group":"h"},"base":101}"#))
    }

    @Test func namesAreFoundInAnyCase() throws {
        let app = try SyncedApp(
            "CREATE TABLE Item (ID TEXT PRIMARY KEY, Title TEXT)", server: ["item": ["title": "text"]])
        let file = try app.open("ITEM", "item")
        #expect(file.tables.map(\.name) == ["Item"])
        try app.run("INSERT INTO item VALUES ('a', 'A')")
        #expect(try app.frozen() == [#"{"table":"item","id":"a","values":{"title":"A"},"base":0}"#])
    }

    @Test(arguments: [
        ("INTEGER PRIMARY KEY", "7", "7"), ("INT PRIMARY KEY", "-7", "-7"),
        ("TEXT PRIMARY KEY", "'ä b'", "ä b"), ("VARCHAR(36) PRIMARY KEY NOT NULL", "'x'", "x"),
        ("BLOB PRIMARY KEY", "x'00112233445566778899AABBCCDDEEFF'", "00112233-4455-6677-8899-aabbccddeeff"),
        ("UUID PRIMARY KEY", "'0a112233-4455-6677-8899-aabbccddeeff'", "0a112233-4455-6677-8899-aabbccddeeff"),
    ]) func keysOfEveryTypeBecomeIDs(type: String, key: String, id: String) throws {
        for suffix in ["", " WITHOUT ROWID"] {
            let app = try SyncedApp("CREATE TABLE t (id \(type), v TEXT)\(suffix)", server: ["t": ["v": "text"]])
            try app.open("t")
            try app.run("INSERT INTO t VALUES (\(key), 'a'); UPDATE t SET v = 'b'")
            #expect(try app.sync() == [#"{"table":"t","id":"\#(id)","values":{"v":"b"},"base":0}"#])
            try app.run("UPDATE t SET v = 'c' WHERE id = \(key)")
            #expect(try app.sync() == [#"{"table":"t","id":"\#(id)","values":{"v":"c"},"base":101}"#])
            try app.run("DELETE FROM t")
            #expect(try app.sync() == [#"{"table":"t","id":"\#(id)","deleted":true,"base":102}"#])
            #expect(try app.opened.pendingRows() == 0)
        }
    }

    @Test func generatedColumnsAreNotCaptured() throws {
        let app = try SyncedApp(
            """
            CREATE TABLE t (id TEXT PRIMARY KEY, a INT, twice INT AS (2 * a), thrice INT AS (3 * a) STORED)
            """, server: ["t": ["a": "integer", "twice": "integer", "thrice": "integer"]])
        try app.open("t")
        try app.run("INSERT INTO t (id, a) VALUES ('k', 1)")
        #expect(try app.sync() == [#"{"table":"t","id":"k","values":{"a":1},"base":0}"#])
        try app.run("UPDATE t SET a = 2")
        #expect(try app.sync() == [#"{"table":"t","id":"k","values":{"a":2},"base":101}"#])
    }

    /// SQLite takes a name for a text there.
    @Test(arguments: [
        ("pending", "pending"), (#""pending""#, "pending"), ("[not sent]", "not sent"), (#""a""b""#, #"a"b"#),
        ("`pending`", "pending"), ("abort", "abort"), ("_1$", "_1$"), ("ünï", "ünï"), ("'pending'", "pending"),
        ("('pend' || 'ing')", "pending"), ("TRUE", "1"), (#""true""#, "true"), ("-5", "-5"), ("x'61'", "a"), ("''", ""),
    ]) func aDefaultValueIsReadAsSQLiteDoes(clause: String, value: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT NOT NULL DEFAULT \(clause))")
        server.write("item", "a", ["title": "A"])
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("INSERT INTO item (id, title) VALUES ('b', 'B')")
        #expect(try device.rows() == ["a A \(value)", "b B \(value)"])
    }

    @Test(arguments: [62, 63, 64, 127, 900]) func capturesEachOfManyColumns(count: Int) throws {
        let names = (1...count).map { "c\($0)" }
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, \(names.joined(separator: ", ")))",
            server: ["t": Dictionary(uniqueKeysWithValues: names.map { ($0, "integer") })])
        try app.open("t")
        try app.run("INSERT INTO t (id) VALUES ('k')")
        #expect(try app.sync().count == 1)
        for name in count < 200 ? names : [names[0], names[62], names[63], names[899]] {
            try app.run("UPDATE t SET \(name) = 5")
            #expect(try app.sync().first?.contains(#""values":{"\#(name)":5}"#) == true)
        }
        try app.run("UPDATE t SET \(names.map { "\($0) = 6" }.joined(separator: ", "))")
        let change = try #require(try app.sync().first)
        for name in names { #expect(change.contains(#""\#(name)":6"#)) }
        #expect(!change.contains("ifBase"))
    }

    // MARK: Opening again

    @Test func openingAFileThatHasNotChangedWritesNothing() throws {
        let app = try SyncedApp.withItem("CREATE TABLE other (id INTEGER PRIMARY KEY, v UNIQUE)")
        try app.open("item", "other")
        let version = try app.query("PRAGMA data_version")
        try app.open("item", "other")
        #expect(try app.query("PRAGMA data_version") == version)
        #expect(app.opened.gaps.isEmpty)
    }

    @Test func restoresTheTriggersThatACopiedTableHasLost() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', 'B', NULL), ('c', 'C', NULL)")
        try app.sync()
        try app.run(
            """
            PRAGMA foreign_keys = OFF;
            BEGIN;
            CREATE TABLE new_item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT);
            INSERT INTO new_item SELECT * FROM item;
            DROP TABLE item;
            ALTER TABLE new_item RENAME TO item;
            COMMIT;
            INSERT INTO item VALUES ('d', 'missed', NULL);
            DELETE FROM item WHERE id IN ('b', 'c');
            """)
        let file = try app.open("item")
        #expect(
            file.gaps.map { [$0.table, "\($0.cause)", "\($0.unknownRows)", "\($0.absentRows)"] }
                == [["item", "triggersMissing", "1", "2"]])
        try app.run("UPDATE item SET note = 'captured' WHERE id = 'a'")
        #expect(try app.sync() == [#"{"table":"item","id":"a","values":{"note":"captured"},"base":101}"#])
        #expect(try app.seed() == 1)
        #expect(try app.sync().count == 1)
        #expect(try app.open("item").gaps.isEmpty)
    }

    @Test func followsATableThatIsRenamed() throws {
        let app = try SyncedApp(
            "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT)",
            server: ["item": ["title": "text"], "thing": ["title": "text"]])
        try app.open("item")
        try app.run("INSERT INTO item VALUES ('a', 'A')")
        try app.sync()
        try app.run("ALTER TABLE item RENAME TO thing; UPDATE thing SET title = 'B'")
        #expect(try app.open("thing").gaps.isEmpty)
        #expect(try app.sync() == [#"{"table":"thing","id":"a","values":{"title":"B"},"base":101}"#])
    }

    @Test func anAddedColumnIsCapturedAndGetsANumberOfItsOwn() throws {
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, a TEXT, b TEXT)",
            server: ["t": ["a": "text", "b": "text", "c": "text"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES ('k', 'a', 'b')")
        try app.sync()
        try app.run("UPDATE t SET a = 'edited'")
        // b goes, and comes again as another column.
        try app.run(
            """
            BEGIN;
            CREATE TABLE new_t (id TEXT PRIMARY KEY, a TEXT);
            INSERT INTO new_t SELECT id, a FROM t;
            DROP TABLE t;
            ALTER TABLE new_t RENAME TO t;
            COMMIT;
            """)
        #expect(try app.open("t").gaps.map(\.cause) == [.triggersMissing])
        try app.run("ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'x'; ALTER TABLE t ADD COLUMN c TEXT")
        let file = try app.open("t")
        #expect(file.gaps.map(\.cause) == [.columnsAdded(["b", "c"])])
        #expect(file.tables[0].columns.map(\.name) == ["a", "b", "c"])
        #expect(file.tables[0].columns.map(\.number) == [1, 3, 4])
        try app.run("UPDATE t SET c = 'new'")
        #expect(try app.sync() == [#"{"table":"t","id":"k","values":{"a":"edited","c":"new"},"base":101}"#])
    }

    /// It would end the edit without the column.
    @Test func aFileThatWasOpenedBeforeAColumnWasAddedFreezesNothingAnyMore() throws {
        let app = try SyncedApp(
            "CREATE TABLE t (id TEXT PRIMARY KEY, a TEXT)", server: ["t": ["a": "text", "b": "text"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES ('k', 'a')")
        try app.sync()
        // Another change of the schema is none of its columns.
        try app.run("CREATE TABLE other (id INTEGER PRIMARY KEY); CREATE INDEX i ON t (a); UPDATE t SET a = 'b'")
        #expect(try app.sync() == [#"{"table":"t","id":"k","values":{"a":"b"},"base":101}"#])
        try app.run("ALTER TABLE t ADD COLUMN b TEXT")
        let other = try ClientFile(path: app.path, tables: ["t"])
        try app.run("UPDATE t SET b = 'new'")
        let error = #expect(throws: WeirError.self) { try app.sync() }
        #expect(error?.description.contains("the file was changed since it was opened: call again") == true)
        #expect(try app.query("SELECT id FROM weir_log_1") == ["'k'"])
        other.database.close()
        try app.open("t")
        #expect(try app.sync() == [#"{"table":"t","id":"k","values":{"b":"new"},"base":102}"#])
    }

    @Test func aTableThatIsNoLongerNamedIsNotCapturedAndKeepsItsEdits() throws {
        let app = try SyncedApp.withItem("CREATE TABLE other (id INTEGER PRIMARY KEY)")
        try app.run("UPDATE item SET title = 'kept'")
        try app.open("other")
        try app.run("INSERT INTO item VALUES ('b', 'not captured', NULL)")
        #expect(try app.frozen() == [])
        #expect(try app.open("item", "other").gaps.first?.cause == .notListed)
        #expect(try app.sync() == [#"{"table":"item","id":"a","values":{"title":"kept"},"base":101}"#])
    }

    /// The triggers in a file may have another text than those of this version.
    @Test func aTriggerOfAnotherVersionIsReplacedWithoutAGap() throws {
        let app = try SyncedApp.withItem("CREATE UNIQUE INDEX one ON item (note) WHERE title = 'chosen'")
        try app.run(
            """
            INSERT INTO item VALUES ('old', 'chosen', 'm'), ('new', 'B', 'm'); DROP TRIGGER weir_1_overwrite;
            CREATE TRIGGER weir_1_overwrite BEFORE UPDATE OF "note", "id", rowid, oid, _rowid_ ON "item"
            WHEN NOT EXISTS (SELECT 1 FROM weir_applying) BEGIN SELECT 1; END
            """)
        #expect(try app.open("item").gaps.isEmpty)
        try app.sync()
        try app.run("UPDATE OR REPLACE item SET title = 'chosen' WHERE id = 'new'")
        #expect(try app.sync().last == #"{"table":"item","id":"old","deleted":true,"base":103}"#)
    }

    @Test func aUniqueIndexThatIsCreatedLaterIsNoGap() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('new', 'B', 'n')")
        try app.sync()
        try app.run("CREATE UNIQUE INDEX one ON item (note) WHERE title = 'A'")
        #expect(try app.open("item").gaps.isEmpty)
        try app.run("UPDATE OR REPLACE item SET title = 'A' WHERE id = 'new'")
        #expect(try app.sync().last == #"{"table":"item","id":"a","deleted":true,"base":101}"#)
    }

    // MARK: The public calls

    @Test func opensSeedsAndCloses() async throws {
        let app = try SyncedApp(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT); INSERT INTO item VALUES ('a', 'A'), ('b', 'B');
            """)
        let weir = try await Weir.open(URL(filePath: app.folder.file()), tables: ["item"])
        let gaps = await weir.gaps
        #expect(gaps.map(\.cause) == [.new])
        #expect(gaps.map(\.unknownRows) == [2])
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await weir.seed()
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try await weir.seed(["ITEM"]) == 2)
        await #expect(throws: WeirError.self) { try await weir.seed(["other"]) }
        #expect(try await weir.seed() == 0)
        #expect(try await weir.pendingRows() == 2)
        await weir.close()
        await weir.close()
        await #expect(throws: WeirError.closed) { try await weir.pendingRows() }
    }
}
