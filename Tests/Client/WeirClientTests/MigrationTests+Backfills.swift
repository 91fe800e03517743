import Synchronization
import Testing
import WeirClient

/// Several backfills before the first of them was followed by a pull, as on a device that was offline during two updates.
extension MigrationTests {
    private static let columns = ["item": ["title": "text", "note": "text", "state": "text", "kind": "text"]]
    private static let rows = "SELECT id || ' ' || state || ' ' || kind FROM item ORDER BY id"

    /// Adds a column and fills it.
    private func fill(_ column: String, of device: Device) async throws -> Weir {
        try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN \(column) TEXT; UPDATE item SET \(column) = 'filled'")
        }
    }

    @Test func whatOthersHaveEnteredIsTakenInTheColumnsOfAllBackfills() async throws {
        let server = ContractServer(Self.columns)
        let device = try await synced(server)
        server.write("item", "a", ["state": "of the other"])
        server.write("item", "b", ["kind": "of the other"])
        try await fill("state", of: device).close()
        try waitForTheNextMillisecond(device)
        let weir = try await fill("kind", of: device)
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            try device.rows(Self.rows) == ["a of the other filled", "b filled of the other", "c filled filled"])
        #expect(server.live.filter { $0.contains(#""state":"of the other""#) }.count == 1)
        #expect(server.live.filter { $0.contains(#""kind":"of the other""#) }.count == 1)
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test func aBackfillIsSentWhereTheServerHasItsDefaultAndNoValue() async throws {
        let server = ContractServer(Self.columns)
        server.state.withLock { $0.defaults = ["state": "default"] }
        for (id, value) in [("d", "D"), ("e", "E")] { server.write("item", id, ["title": value]) }
        let device = try await synced(server)
        server.write("item", "b", ["state": "of the other"])
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT")
            try device.run(
                "UPDATE item SET state = CASE id WHEN 'e' THEN 'default' ELSE 'filled' END WHERE id <> 'c'")
        }
        try waitForTheNextMillisecond(device)
        // The user wants none.
        try device.run("UPDATE item SET state = NULL WHERE id = 'd'")
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            try device.rows("SELECT id || ' ' || ifnull(state, '-') FROM item ORDER BY id")
                == ["a filled", "b of the other", "c default", "d -", "e default"])
        let sent = server.live.filter { $0.contains(#""state":"filled""#) || $0.contains(#""state":null"#) }
        #expect(sent.map { $0.prefix(6) } == ["item a", "item d"], "\(server.live)")
        #expect(!server.live.contains { $0.contains(#""state":"default""#) })
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test(arguments: [Fault.lostRequest, .lostAnswer])
    func aBackfillIsSentOfRowsWhoseCreationWasFrozenBefore(fault: Fault) async throws {
        let server = ContractServer(Self.columns)
        let device = try await synced(server)
        let weir = try await Weir.open(url(device), tables: ["item"])
        try device.run("INSERT INTO item VALUES ('d', 'D', 'n'), ('e', 'E', 'n'); DELETE FROM item WHERE id = 'c'")
        try await weir.attach(
            "abc", server: Device.url, options: Device.options(FaultyTransport(server, fault, at: 0)))
        await #expect(throws: SyncError.self) { try await weir.sync() }
        await weir.close()
        let migrated = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run(
                "ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled ' || id WHERE id <> 'e'")
        }
        #expect(await migrated.gaps.isEmpty)
        try await attach(migrated, server)
        try await migrated.sync()
        let rows = try device.rows("SELECT id || ' ' || ifnull(state, '-') FROM item ORDER BY id")
        #expect(rows == ["a filled a", "b filled b", "d filled d", "e -"])
        let filled = server.live.filter { $0.contains(#""state":"filled "#) }.map { $0.prefix(6) }
        #expect(filled == ["item a", "item b", "item d"], "\(server.live)")
        #expect(try await migrated.pendingRows() == 0)
        await migrated.close()
    }

    @Test func theChangesBesideABackfillAreDiscardedToTheDefault() async throws {
        let server = ContractServer(Self.columns)
        server.state.withLock { $0.defaults = ["state": "default"] }
        let device = try await synced(server)
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled'")
        }
        // Everything is pulled, and the batch that follows has no answer.
        try await weir.attach(
            "abc", server: Device.url, options: Device.options(FaultyTransport(server, .lostRequest, at: 1)))
        await #expect(throws: SyncError.self) { try await weir.sync() }
        try await weir.attach("abc", server: Device.url, options: Device.options(server))
        server.state.withLock { $0.refusedText = "filled" }
        try await weir.sync()
        for edit in try await weir.keptEdits() { try await weir.resolve(edit, .acceptServer) }
        #expect(try device.rows("SELECT state FROM item") == ["default", "default", "default"])
        await weir.close()
    }

    /// As with a migrator that commits each step.
    @Test func aMigrationThatFailsAndIsRepeatedSendsItsBackfillAndNamesWhatIsGone() async throws {
        struct Failed: Error {}
        let server = ContractServer(Self.columns)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'edited' WHERE id = 'a'")
        await #expect(throws: Failed.self) {
            _ = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
                try device.run("ALTER TABLE item ADD COLUMN state TEXT; ALTER TABLE item DROP COLUMN note")
                throw Failed()
            }
        }
        // What the app writes meanwhile is captured.
        try device.run("UPDATE item SET title = 'meanwhile' WHERE id = 'b'")
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("UPDATE item SET state = 'filled'")
        }
        #expect(await weir.gaps.map(\.cause) == [.columnsRemoved(["note"], unsentValues: 1)])
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live.filter { $0.contains(#""state":"filled""#) }.count == 3, "\(server.live)")
        #expect(server.live.contains { $0.contains(#""title":"meanwhile""#) })
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test(arguments: ["DROP COLUMN note", "RENAME COLUMN note TO remark"])
    func valuesThatWereNotSentOfAColumnThatIsGoneAreNamed(change: String) async throws {
        let server = ContractServer(Self.columns)
        for id in ["d", "e"] { server.write("item", id, ["title": id, "note": "n"]) }
        let device = try await synced(server)
        // One is edited, one replaced; one is deleted afterwards, and one is new.
        try device.run(
            """
            UPDATE item SET note = 'edited' WHERE id IN ('a', 'c'); UPDATE item SET title = 'kept' WHERE id = 'a';
            INSERT OR REPLACE INTO item VALUES ('b', 'replaced', 'replaced'); DELETE FROM item WHERE id = 'c';
            INSERT INTO item VALUES ('new', 'new', 'new'); UPDATE item SET title = 'D2' WHERE id = 'd'
            """)
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run("ALTER TABLE item \(change)")
        }
        let gaps = await weir.gaps
        #expect(gaps.map(\.cause) == [.columnsRemoved(["note"], unsentValues: 2)])
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live.contains(#"item a {"note":"n","title":"kept"} 2"#), "\(server.live)")
        #expect(server.live.contains { $0.hasPrefix(#"item b {"note":"n","title":"replaced"}"#) }, "\(server.live)")
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
        // It is said once.
        let again = try await Weir.open(url(device), tables: ["item"])
        #expect(await again.gaps.isEmpty)
        await again.close()
    }

    @Test func aValueThatTheUserHasGivenBetweenTwoBackfillsIsNoneOfTheFirst() async throws {
        let server = ContractServer(Self.columns)
        let device = try await synced(server)
        server.write("item", "b", ["state": "of the other", "kind": "of the other"])
        try await fill("state", of: device).close()
        try waitForTheNextMillisecond(device)
        try device.run("UPDATE item SET state = 'of the user' WHERE id = 'b'")
        try waitForTheNextMillisecond(device)
        let weir = try await fill("kind", of: device)
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            try device.rows(Self.rows) == ["a filled filled", "b of the user of the other", "c filled filled"])
        #expect(
            server.live.contains { $0.contains(#""state":"of the user""#) && $0.contains(#""kind":"of the other""#) })
        await weir.close()
    }
}
