import Foundation
import Testing
import WeirClient

/// The tables that `writtenTables` names, for observations of other libraries.
@Suite(.timeLimit(.minutes(2))) struct WrittenTablesTests {
    private static func device() async throws -> Device {
        try await Device(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT);
            CREATE TABLE part (id TEXT PRIMARY KEY NOT NULL, item TEXT REFERENCES item (id) ON DELETE CASCADE);
            CREATE TABLE audit (id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
            CREATE TABLE other (id TEXT);
            CREATE TRIGGER audit_item AFTER INSERT ON item BEGIN INSERT OR IGNORE INTO audit VALUES (NEW.id); END;
            """)
    }

    @Test func pulledRowsNameTheirTableThoseOfTriggersAndTheStateViews() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Self.device()
        try await device.attach(server)
        server.write("item", "a", ["title": "A"])
        var tables = device.weir.writtenTables.makeAsyncIterator()
        try await device.weir.sync()
        let first = try #require(await tables.next())
        #expect(first.isSuperset(of: ["item", "audit", "weir_row_1"]))
        #expect(first.isDisjoint(with: ["part", "other", "weir_meta"]))
        // A session that brings nothing renews the lease and no more.
        try await device.weir.sync()
        try await device.weir.write { _ = try $0.execute("INSERT INTO other VALUES ('o')") }
        #expect(await tables.next()?.isDisjoint(with: ["item", "audit", "weir_row_1"]) == true)
        await device.weir.close()
        #expect(await tables.next() == nil)
    }

    @Test(arguments: [
        ("INSERT OR REPLACE INTO item VALUES ('b', 'A', NULL)", ["item", "audit", "part"]),
        ("DELETE FROM item", ["item", "part"]),
        ("UPDATE item SET note = 'n'", ["item"]),
        ("WITH n (id) AS (VALUES ('x')) INSERT INTO audit SELECT id FROM n", ["audit"]),
    ])
    func aWriteNamesWhatSQLiteWritesWithIt(sql: String, expected: [String]) async throws {
        let device = try await Self.device()
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL); INSERT INTO part VALUES ('p', 'a')")
        var tables = device.weir.writtenTables.makeAsyncIterator()
        try await device.weir.write { _ = try $0.execute(sql) }
        let written = try #require(await tables.next()).filter { !$0.hasPrefix("weir_") }
        #expect(written == Set(expected))
        await device.weir.close()
    }

    @Test func whatIsRolledBackIsNotNamedAndWhoIsLateGetsAllTogether() async throws {
        struct Failure: Error {}
        let device = try await Self.device()
        var tables = device.weir.writtenTables.makeAsyncIterator()
        await #expect(throws: Failure.self) {
            try await device.weir.write { connection in
                try connection.execute("INSERT INTO item VALUES ('a', 'A', NULL)")
                throw Failure()
            }
        }
        for sql in ["INSERT INTO audit VALUES ('a')", "INSERT INTO other VALUES ('a')"] {
            try await device.weir.write { _ = try $0.execute(sql) }
        }
        let found = try #require(await tables.next())
        #expect(found.subtracting(["audit", "other"]).allSatisfy { $0.hasPrefix("weir_") })
        #expect(found.isSuperset(of: ["audit", "other"]))
        await device.weir.close()
    }

    @Test func itContinuesAfterASuspensionAndBelongsToEachReader() async throws {
        let device = try await Self.device()
        var both = [device.weir.writtenTables.makeAsyncIterator(), device.weir.writtenTables.makeAsyncIterator()]
        await device.weir.suspend()
        try await device.weir.resume()
        // A trigger that the app has added since changes what a known statement writes.
        for (sql, expected) in [
            ("", ["other"]),
            ("CREATE TRIGGER t AFTER INSERT ON other BEGIN DELETE FROM audit; END", ["other", "audit"]),
        ] as [(String, Set<String>)] {
            try device.run(sql)
            try await device.weir.write { _ = try $0.execute("INSERT INTO other VALUES ('o')") }
            for index in both.indices {
                let found = await both[index].next()?.filter { !$0.hasPrefix("weir_") }
                #expect(found == expected)
            }
        }
        await device.weir.close()
        var late = device.weir.writtenTables.makeAsyncIterator()
        #expect(await late.next() == nil)
    }
}
