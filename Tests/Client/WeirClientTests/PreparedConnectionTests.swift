import CWeirSQLite
import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Collations and functions of the app, which Weir's connection gets from it.
@Suite struct PreparedConnectionTests {
    /// Registers a collation and a function, as an app does with each of its connections.
    @Sendable private static func register(_ connection: OpaquePointer) throws {
        let compare:
            @convention(c) (
                UnsafeMutableRawPointer?, Int32, UnsafeRawPointer?, Int32, UnsafeRawPointer?
            ) -> Int32 = { _, leftCount, left, rightCount, right in
                let left = UnsafeRawBufferPointer(start: left, count: Int(leftCount)).reversed()
                let right = UnsafeRawBufferPointer(start: right, count: Int(rightCount)).reversed()
                return left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
            }
        let stamp: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
            context, _, _ in sqlite3_result_int(context, 7)
        }
        let codes = [
            sqlite3_create_collation_v2(connection, "backwards", SQLITE_UTF8, nil, compare, nil),
            sqlite3_create_function_v2(
                connection, "stamp", 0, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nil, stamp, nil, nil, nil),
        ]
        for code in codes where code != SQLITE_OK {
            throw WeirError.database(code: code, message: "not registered", sql: nil)
        }
    }

    /// An app whose own connection is prepared, and its file.
    private struct App {
        let folder: TemporaryFolder
        let database: Database
        var url: URL { URL(fileURLWithPath: folder.file()) }

        init(_ sql: String) throws {
            folder = try TemporaryFolder()
            try folder.write([], to: "test.sqlite")
            database = try Database(path: folder.file(), prepare: register)
            try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + sql)
        }

        func query(_ sql: String) throws -> [String] { try database.map(sql) { "\($0.value(at: 0))" } }
    }

    private static let item = "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT);"

    @Test(arguments: [
        (item + "CREATE INDEX i ON item (title COLLATE backwards)", "no such collation sequence: backwards"),
        (
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT COLLATE backwards UNIQUE, note TEXT)",
            "no such collation sequence: backwards"
        ),
        (
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL COLLATE backwards, title TEXT, note TEXT)",
            "no such collation sequence: backwards"
        ),
        (
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT NOT NULL DEFAULT (stamp()))",
            "the default value of note cannot be read (no such function: stamp); correct the default value, or register"
        ),
        (
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT CHECK (stamp() = 7), note TEXT)",
            "unknown function: stamp()"
        ),
        (
            item + "CREATE TRIGGER t AFTER DELETE ON item BEGIN SELECT stamp(); END",
            "it cannot be written with a connection of Weir's (no such function: stamp); correct the index, the constraint or the trigger"
        ),
        (item + "CREATE UNIQUE INDEX i ON item (title) WHERE stamp() = 7", "unknown function: stamp()"),
    ]) func aTableThatNeedsThemIsRefusedWithoutThemAndSyncedWithThem(sql: String, reason: String) async throws {
        let app = try App(sql)
        let before = try app.query("SELECT count(*) FROM sqlite_schema")
        let error = await #expect(throws: WeirError.self) { _ = try await Weir.open(app.url, tables: ["item"]) }
        #expect(error?.description.hasPrefix("the table item cannot be synced: ") == true)
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
        #expect(error?.description.hasSuffix("that it needs with prepareConnection") == true)
        #expect(try app.query("SELECT count(*) FROM sqlite_schema") == before)

        let server = ContractServer(Device.tables)
        let weir = try await Weir.open(app.url, tables: ["item"], prepareConnection: Self.register)
        try await weir.attach("abc", server: Device.url, options: Device.options(server))
        server.write("item", "theirs", ["title": "T", "note": "N"])
        try app.database.execute("INSERT INTO item VALUES ('mine', 'M', 'N')")
        try await weir.sync()
        #expect(try app.query("SELECT id FROM item ORDER BY id COLLATE BINARY") == ["'mine'", "'theirs'"])
        #expect(server.live.count == 2)
        // The connection that follows is another one.
        await weir.suspend()
        try await weir.resume()
        try app.database.execute("DELETE FROM item WHERE id = 'mine'")
        server.write("item", "theirs", nil)
        try await weir.sync()
        #expect(try app.query("SELECT id FROM item").isEmpty)
        #expect(server.live.isEmpty)
        await weir.close()
    }

    @Test(arguments: [
        ("code", "no such column: p.code"), ("name", "no such collation sequence: backwards"),
    ]) func aForeignKeyThatCannotBeLookedUpIsNamed(parentColumn: String, message: String) async throws {
        let app = try App(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT COLLATE backwards);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, list TEXT REFERENCES list (\(parentColumn)));
            """)
        let error = await #expect(throws: WeirError.self) { _ = try await Weir.open(app.url, tables: ["item"]) }
        let reason = "its foreign key to list cannot be looked up (\(message)); correct the foreign key, or register"
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    }

    @Test func eachConnectionOfWeirsIsPrepared() async throws {
        let app = try App(Self.item)
        let count = Mutex(0)
        let prepare = { @Sendable (connection: OpaquePointer) throws in
            count.withLock { $0 += 1 }
            try Self.register(connection)
        }
        func prepared() -> Int {
            count.withLock { count in
                defer { count = 0 }
                return count
            }
        }
        let weir = try await Weir.open(app.url, tables: ["item"], prepareConnection: prepare)
        #expect(prepared() == 1)
        await weir.suspend()
        try await weir.resume()
        #expect(prepared() == 1)
        // Another process finds a column that was added.
        try app.database.execute("ALTER TABLE item ADD COLUMN state TEXT")
        try ClientFile(path: app.folder.file(), tables: ["item"], prepare: Self.register).database.close()
        _ = try await weir.pendingRows()
        #expect(prepared() == 1)
        await weir.close()
        struct Failed: Error {}
        await #expect(throws: Failed.self) {
            _ = try await Weir.migrate(app.url, tables: ["item"], prepareConnection: prepare) { throw Failed() }
        }
        #expect(prepared() == 2)
        let migrated = try await Weir.migrate(app.url, tables: ["item"], prepareConnection: prepare) {
            try app.database.execute("CREATE INDEX i ON item (title COLLATE backwards)")
        }
        #expect(prepared() == 2)
        await migrated.close()
    }

    @Test func whatThePreparationThrowsIsThrownAndNothingIsOpened() async throws {
        struct Failed: Error {}
        let app = try App(Self.item)
        await #expect(throws: Failed.self) {
            _ = try await Weir.open(app.url, tables: ["item"]) { _ in throw Failed() }
        }
        #expect(try app.query("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'weir%'") == ["0"])
    }

    /// Such as one of another program, which inserts rows with values of all columns.
    @Test func aConnectionWithoutAFunctionOfADefaultValueInsertsRows() async throws {
        let app = try App("CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT NOT NULL UNIQUE DEFAULT (stamp()))")
        let weir = try await Weir.open(app.url, tables: ["item"], prepareConnection: Self.register)
        let other = try Database(path: app.folder.file())
        try other.run("INSERT INTO item VALUES ('a', 'A')")
        #expect(try await weir.pendingRows() == 1)
        await weir.close()
    }

    /// An app may write values into its statements.
    @Test func statementsOfTheAppAreKeptInABoundedNumber() async throws {
        let app = try App(Self.item)
        let connection = Mutex<Int?>(nil)
        let weir = try await Weir.open(app.url, tables: ["item"]) { prepared in
            connection.withLock { $0 = Int(bitPattern: prepared) }
        }
        let address = try #require(connection.withLock { $0 })
        func statements() async throws -> Int {
            // Nothing else uses the connection within a write.
            try await weir.write { _ in
                let handle = OpaquePointer(bitPattern: address)
                var (count, last) = (0, sqlite3_next_stmt(handle, nil))
                while last != nil { (count, last) = (count + 1, sqlite3_next_stmt(handle, last)) }
                return count
            }.value
        }
        func write(_ numbers: Range<Int>) async throws {
            for number in numbers {
                try await weir.write { db in
                    try db.execute("INSERT INTO item VALUES ('\(number)', 'T', NULL)")
                    _ = try db.query("SELECT title FROM item WHERE id = '\(number)'")
                }
                var rows = weir.observe("SELECT title FROM item WHERE note = '\(number)'").makeAsyncIterator()
                _ = try await rows.next()
            }
        }
        try await write(0..<50)
        let before = try await statements()
        try await write(50..<200)
        #expect(try await statements() == before)
        // One that is used again and again stays compiled.
        try await weir.write { db in for _ in 0..<3 { try db.execute("UPDATE item SET note = 'n'") } }
        #expect(try await statements() == before)
        #expect(try app.query("SELECT count(*) FROM item WHERE note = 'n'") == ["200"])
        await weir.close()
    }

    @Test func aMigrationMayRemoveACollationThatTheAppDoesNotRegisterAnyMore() async throws {
        let app = try App("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL COLLATE backwards, title TEXT, note TEXT)")
        let weir = try await Weir.open(app.url, tables: ["item"], prepareConnection: Self.register)
        await weir.close()
        try app.database.execute(
            "INSERT INTO item VALUES ('a', 'A', 'n'); INSERT OR IGNORE INTO item VALUES ('a', 'B', 'n')")
        let migrated = try await Weir.migrate(app.url, tables: ["item"]) {
            try app.database.execute(
                """
                CREATE TABLE new_item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT);
                INSERT INTO new_item SELECT * FROM item;
                DROP TABLE item;
                ALTER TABLE new_item RENAME TO item;
                """)
        }
        #expect(try await migrated.pendingRows() == 1)
        await migrated.close()
    }
}
