import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Migrations of synced tables by the app.
@Suite struct MigrationTests {
    static let tables = [
        "item": ["title": "text", "note": "text", "state": "text"], "thing": ["title": "text"],
    ]

    func url(_ device: Device) -> URL { URL(fileURLWithPath: device.folder.file()) }

    /// A device with rows a, b and c that the server has, and its Weir closed.
    func synced(_ server: ContractServer) async throws -> Device {
        let device = try await Device()
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n'), ('c', 'C', 'n')")
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        return device
    }

    func attach(_ weir: Weir, _ server: ContractServer) async throws {
        try await weir.attach("abc", server: Device.url, options: Device.options(server))
    }

    @Test func aColumnIsDroppedAndATableRenamedWithoutLosingEdits() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET title = 'edited' WHERE id = 'b'")
        #expect(throws: WeirError.self) { try device.run("ALTER TABLE item DROP COLUMN note") }
        let weir = try await Weir.migrate(url(device), tables: ["thing"]) {
            try device.run("ALTER TABLE item DROP COLUMN note; ALTER TABLE item RENAME TO thing")
        }
        #expect(await weir.gaps.isEmpty)
        try device.run("UPDATE thing SET title = 'renamed' WHERE id = 'a'")
        #expect(try await weir.pendingRows() == 2)
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            server.live.filter { $0.hasPrefix("thing") }
                == [#"thing a {"title":"renamed"} 1"#, #"thing b {"title":"edited"} 1"#])
    }

    @Test func aTableIsCreatedAgainAndRowsThatWereWrittenMeanwhileAreNamed() async throws {
        let device = try await synced(ContractServer(Self.tables))
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run(
                """
                CREATE TABLE new_item (id TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL DEFAULT '');
                INSERT INTO new_item SELECT id, title FROM item WHERE id <> 'c';
                INSERT INTO new_item VALUES ('d', 'D'), ('e', 'E');
                DROP TABLE item;
                ALTER TABLE new_item RENAME TO item;
                """)
        }
        let gaps = await weir.gaps
        #expect(gaps.map(\.cause) == [.migrated])
        #expect(gaps.map(\.unknownRows) == [2])
        #expect(gaps.map(\.absentRows) == [1])
        try device.run("UPDATE item SET title = 'captured' WHERE id = 'a'")
        #expect(try await weir.pendingRows() == 1)
        await weir.close()
    }

    /// In whichever order the tables are named.
    @Test(arguments: [["item", "thing"], ["thing", "item"]])
    func aTableThatGetsTheNameOfARenamedOneIsAnother(tables: [String]) async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET title = 'edited' WHERE id = 'a'; DELETE FROM item WHERE id <> 'a'")
        let weir = try await Weir.migrate(url(device), tables: tables) {
            try device.run(
                """
                ALTER TABLE item RENAME TO thing;
                CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, note TEXT);
                INSERT INTO item VALUES (1, 'other', 'n');
                """)
        }
        #expect(await weir.gaps.map(\.table) == ["item"])
        #expect(try await weir.pendingRows() == 3)
        try device.run("UPDATE thing SET title = 'again'; UPDATE item SET title = 'new'")
        #expect(try await weir.pendingRows() == 4)
        await weir.close()
    }

    /// What the app has done before shows only while the row is there.
    @Test func aRowThatAMigrationRemovesIsNotDeletedAtTheServerThoughAnInsertionOfItWasIgnored() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        try device.run("INSERT OR IGNORE INTO item VALUES ('c', 'x', 'y')")
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run("DELETE FROM item WHERE id = 'c'")
        }
        let live = server.live
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live == live)
        await weir.close()
    }

    /// Each device runs the migration.
    @Test(arguments: [false, true]) func aRowThatAMigrationRemovesIsNotDeletedAtTheServerThoughItWasEdited(
        isSent: Bool
    ) async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        let before = try await Weir.open(url(device), tables: ["item"])
        try device.run("UPDATE item SET title = 'x' WHERE id = 'c'; INSERT INTO item VALUES ('d', 'D', 'n')")
        // Under another key it is the same row.
        if !isSent {
            try device.run("UPDATE item SET id = 'f' WHERE id = 'b'; UPDATE item SET id = 'e' WHERE id = 'f'")
        }
        if isSent {
            try await before.attach(
                "abc", server: Device.url, options: Device.options(FaultyTransport(server, .lostRequest, at: 0)))
            await #expect(throws: SyncError.self) { try await before.sync() }
            server.state.withLock { $0.refusal = "outcome_expired" }
        }
        await before.close()
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run("DELETE FROM item WHERE id IN ('b', 'c', 'd', 'e')")
        }
        let gaps = await weir.gaps
        #expect(gaps.map(\.cause) == [.migrated])
        if !isSent { #expect(gaps.map(\.absentRows) == [2]) }
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live.map { $0.prefix(6) } == ["item b", "item c"], "\(server.live)")
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test func aMigrationThatFailsLeavesTheTablesCaptured() async throws {
        struct Failed: Error {}
        let device = try await synced(ContractServer(Self.tables))
        await #expect(throws: Failed.self) {
            _ = try await Weir.migrate(url(device), tables: ["item"]) {
                try device.run("UPDATE item SET title = 'not captured' WHERE id = 'a'")
                throw Failed()
            }
        }
        try device.run("UPDATE item SET title = 'captured' WHERE id = 'b'")
        let weir = try await Weir.open(url(device), tables: ["item"])
        #expect(try await weir.pendingRows() == 1)
        #expect(await weir.gaps.isEmpty)
        await weir.close()
    }

    @Test func aProcessThatIsKilledInAMigrationIsNamedByTheNextOpening() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        let killed = try await Device(copying: { path in
            try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
                try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled'")
                try device.database.run("VACUUM INTO ?1", [.text(path)])
            }
            .close()
        })
        let gaps = await killed.weir.gaps
        #expect(gaps.map(\.cause) == [.triggersMissing])
        try await killed.attach(server)
        try await killed.weir.sync()
        #expect(server.live.first == #"item a {"note":"n","state":"filled","title":"A"} 2"#)
    }

    @Test func aBackfillIsSentWhereTheServerHasNoValue() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        // Another device has the column already. It has written b, and c with NULL.
        server.write("item", "b", ["state": "of the other"])
        server.write("item", "c", ["title": "C2"])
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run(
                "ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled ' || id WHERE id <> 'a'")
        }
        try device.run("UPDATE item SET note = 'edited' WHERE id = 'a'; INSERT INTO item VALUES ('d', 'D', 'n', 'new')")
        #expect(try await weir.pendingRows() == 4)
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            try device.rows("SELECT id || ' ' || ifnull(state, '-') FROM item ORDER BY id")
                == ["a -", "b of the other", "c filled c", "d new"])
        #expect(
            server.live.filter { $0.hasPrefix("item") } == [
                #"item a {"note":"edited","title":"A"} 2"#,
                #"item b {"note":"n","state":"of the other","title":"B"} 2"#,
                #"item c {"note":"n","state":"filled c","title":"C2"} 3"#,
                #"item d {"note":"n","state":"new","title":"D"} 1"#,
            ])
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    /// Each device has its own.
    @Test func rowsThatAMigrationWithABackfillInsertsAreNotSentUnlessTheyAreAdopted() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run(
                """
                ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled';
                INSERT INTO item VALUES ('made', 'M', 'n', 'by the migration')
                """)
        }
        #expect(await weir.gaps.map(\.unknownRows) == [1])
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live.filter { $0.contains(#""state":"filled""#) }.count == 3)
        #expect(!server.live.contains { $0.hasPrefix("item made") })
        #expect(try await weir.seed() == 1)
        try await weir.sync()
        #expect(server.live.last == #"item made {"note":"n","state":"by the migration","title":"M"} 1"#)
        // What the server loses is adopted as ever.
        server.state.withLock { $0.changeHistory(to: "e2", losing: ["item a", "item made"]) }
        try await weir.sync()
        #expect(server.live.filter { $0.hasPrefix("item") }.count == 4)
        await weir.close()
    }

    /// SQLite's clock has milliseconds, by which what follows is later.
    func waitForTheNextMillisecond(_ device: Device) throws {
        let now = try device.rows("SELECT strftime('%f', 'now')")
        while try device.rows("SELECT strftime('%f', 'now')") == now {}
    }

    @Test func aValueThatTheUserHasGivenSinceTheMigrationIsNoBackfill() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        server.write("item", "b", ["state": "of the other"])
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled'")
        }
        try waitForTheNextMillisecond(device)
        try device.run("UPDATE item SET state = 'of the user' WHERE id = 'b'")
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            try device.rows("SELECT id || ' ' || state FROM item ORDER BY id")
                == ["a filled", "b of the user", "c filled"])
        await weir.close()
    }

    @Test(arguments: ["ABORT", "ROLLBACK"]) func aBackfillIsSentWhereATriggerOfTheAppRefusesTheServersValue(
        way: String
    ) async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        server.write("item", "a", ["state": "of the other"])
        server.write("item", "b", ["state": "refused"])
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled'")
        }
        try device.run(
            """
            CREATE TRIGGER guard BEFORE UPDATE ON item WHEN NEW.state = 'refused'
            BEGIN SELECT RAISE(\(way), 'no'); END
            """)
        server.state.withLock { $0.requestsLeft = 50 }
        try await attach(weir, server)
        try await weir.sync()
        let states = ["a of the other", "b filled", "c filled"]
        #expect(try device.rows("SELECT id || ' ' || state FROM item ORDER BY id") == states)
        #expect(server.live.filter { $0.contains(#""state":"filled""#) }.count == 2)
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    /// Whether the statement that fails changes nothing, or what it has changed until then remains.
    @Test(arguments: ["ABORT", "FAIL"]) func aValueThatATriggerRefusesWithoutARollbackIsTriedOnce(
        way: String
    ) async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.pageRows = 1000 }
        for id in 0..<100 { server.write("item", "r\(id)", ["title": "T"]) }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        for id in 0..<100 { server.write("item", "r\(id)", ["state": id % 2 == 1 ? "refused" : "of the other"]) }
        let tried = StatementCount(path: device.folder.file(), of: "UPDATE OR IGNORE")
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled'")
        }
        try device.run(
            """
            CREATE TABLE seen (state TEXT);
            CREATE TRIGGER guard AFTER UPDATE ON item WHEN NEW.state = 'refused'
            BEGIN INSERT INTO seen VALUES (NEW.state); SELECT RAISE(\(way), 'no'); END
            """)
        try await attach(weir, server)
        #expect(try await tried.during { try await weir.sync() } == 100)
        tried.stop()
        let states = try device.rows("SELECT count(*) || ' ' || state FROM item GROUP BY state ORDER BY state")
        #expect(states == ["50 filled", "50 of the other"])
        #expect(try device.rows("SELECT state FROM seen").isEmpty)
        #expect(server.live.filter { $0.contains(#""state":"filled""#) }.count == 50)
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    /// It is not JSON, of which the app has an index.
    @Test func aValueOfTheServerForWhichAnExpressionFailsLeavesThatOfTheBackfill() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        server.write("item", "a", ["state": "[]"])
        server.write("item", "b", ["state": "no JSON"])
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run(
                """
                ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = '{}';
                CREATE INDEX states ON item (json_extract(state, '$.a'))
                """)
        }
        server.state.withLock { $0.requestsLeft = 50 }
        try await attach(weir, server)
        try await weir.sync()
        #expect(try device.rows("SELECT id || ' ' || state FROM item ORDER BY id") == ["a []", "b {}", "c {}"])
        #expect(server.live.filter { $0.contains(#""state":"{}""#) }.count == 2)
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test func aBackfillOfRowsThatWereReplacedBeforeIsSentWhereTheServerHasNoValue() async throws {
        let server = ContractServer(Self.tables)
        let device = try await synced(server)
        server.write("item", "b", ["state": "of the other"])
        try device.run("INSERT OR REPLACE INTO item VALUES ('a', 'mine', 'n'), ('b', 'mine', 'n')")
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled'")
        }
        try await attach(weir, server)
        try await weir.sync()
        let rows = ["a mine filled", "b mine of the other", "c C filled"]
        #expect(try device.rows("SELECT id || ' ' || title || ' ' || state FROM item ORDER BY id") == rows)
        #expect(server.live.filter { $0.contains(#""state":"filled""#) }.count == 2)
        #expect(server.live.contains { $0.contains(#""state":"of the other","title":"mine""#) })
        await weir.close()
    }

    // MARK: Without a change

    /// A migrator runs at many starts that have nothing for these tables, and the tables may be large.
    @Test(arguments: [false, true])
    func aMigrationThatChangesNothingWritesAndPullsTheSameForAnyNumberOfRows(backfill: Bool) async throws {
        let few = try await bytesWritten(byAMigrationOf: 10, backfill)
        let many = try await bytesWritten(byAMigrationOf: 20_000, backfill)
        #expect(many == few)
    }

    /// Migrates a file with so many rows without changing anything, and syncs.
    private func bytesWritten(byAMigrationOf rows: Int, _ backfill: Bool) async throws -> Int {
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.pageRows = 5000 }
        for id in 0..<rows { server.write("item", "\(id)", ["title": "T"]) }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        #expect(try device.rows("SELECT count(*) FROM item") == ["\(rows)"])
        try device.run("PRAGMA wal_checkpoint(TRUNCATE)")
        let vector = {
            try device.rows("SELECT sync_id || ' ' || knowledge_id || ' ' || last_time_stamp FROM weir_vector")
        }
        let before = try vector()
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: backfill) {}
        let log = try FileManager.default.attributesOfItem(atPath: device.folder.file() + "-wal")
        #expect(await weir.gaps.isEmpty)
        #expect(try device.rows("SELECT id FROM weir_log_1 UNION ALL SELECT id FROM weir_edit_1") == [])
        #expect(try vector() == before)
        let asked = server.requests.count
        try await attach(weir, server)
        try await weir.sync()
        // The vector is sent, and there is nothing new.
        #expect(server.requests.dropFirst(asked).map(\.url.path) == ["/v1/pull"])
        #expect(try vector() == before)
        await weir.close()
        return try #require(log[.size] as? Int)
    }
}
