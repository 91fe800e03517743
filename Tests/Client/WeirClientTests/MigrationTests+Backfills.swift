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

    @Test func aBackfillIsSentWhereARowLacksAColumnThatHasADefaultAtTheServer() async throws {
        let server = ContractServer(Self.columns)
        server.state.withLock { $0.defaults = ["state": "default"] }
        let device = try await synced(server)
        server.write("item", "b", ["state": "of the other"])
        let weir = try await Weir.migrate(url(device), tables: ["item"], backfill: true) {
            try device.run("ALTER TABLE item ADD COLUMN state TEXT; UPDATE item SET state = 'filled' WHERE id <> 'c'")
        }
        try await attach(weir, server)
        try await weir.sync()
        #expect(
            try device.rows("SELECT id || ' ' || state FROM item ORDER BY id")
                == ["a filled", "b of the other", "c default"])
        #expect(server.live.filter { $0.contains(#""state":"filled""#) }.count == 1)
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test(arguments: ["DROP COLUMN note", "RENAME COLUMN note TO remark"])
    func valuesThatWereNotSentOfAColumnThatIsGoneAreNamed(change: String) async throws {
        let server = ContractServer(Self.columns)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'edited' WHERE id <> 'c'; UPDATE item SET title = 'kept' WHERE id = 'a'")
        let weir = try await Weir.migrate(url(device), tables: ["item"]) {
            try device.run("ALTER TABLE item \(change)")
        }
        let gaps = await weir.gaps
        #expect(gaps.map(\.cause) == [.columnsRemoved(["note"], unsentValues: 2)])
        try await attach(weir, server)
        try await weir.sync()
        #expect(server.live.first == #"item a {"note":"n","title":"kept"} 2"#)
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
