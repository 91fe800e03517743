import Foundation
import Synchronization
import TestResources
import TestSignals
import Testing
import WeirClient

@Suite(.timeLimit(.minutes(2))) struct ObservingTests {
    @Test func rowsComeAgainWhenTheyHaveChangedAndOnlyThen() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        var rows = device.weir.observe("SELECT id, title AS name FROM item WHERE id >= ?1 ORDER BY id", [.text("a")])
            .makeAsyncIterator()
        let first = try await rows.next()
        #expect(first?.map { $0["name"]?.string } == ["A"])
        #expect(first?[0].columns == ["id", "name"])
        #expect(first?[0]["none"] == nil)
        // The app's own write, of which it tells.
        try device.run("UPDATE item SET title = 'B'")
        await device.weir.nudge()
        #expect(try await rows.next()?.map { $0["name"]?.string } == ["B"])
        // Sending changes no row.
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('A', 'not in the query', NULL)")
        await device.weir.nudge()
        // A row of another device.
        server.write("item", "c", ["title": "C"])
        try await device.weir.sync()
        #expect(try await rows.next()?.map { $0["name"]?.string } == ["B", "C"])
        try device.run("DELETE FROM item")
        await device.weir.nudge()
        #expect(try await rows.next() == [])
        await device.weir.close()
        #expect(try await rows.next() == nil)
    }

    /// Those that have waited for the app's table.
    @Test func rowsThatAreWrittenWithAnEmptyAnswerAreObserved() async throws {
        let server = ContractServer(["item": ["title": "text"], "tag": ["title": "text"]])
        server.write("tag", "t", ["title": "T"])
        let device = try await Device(Device.schema + "; CREATE TABLE tag (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
        try await device.attach(server)
        try await device.weir.sync()
        try await device.restart(tables: ["item", "tag"])
        try await device.attach(server)
        var rows = device.weir.observe("SELECT title FROM tag").makeAsyncIterator()
        #expect(try await rows.next() == [])
        try await device.weir.sync()
        #expect(try await rows.next()?.map(\.values) == [[.text("T")]])
        await device.weir.close()
    }

    @Test func aQueryThatFailsEndsTheObservationAndNoneCanWrite() async throws {
        let device = try await Device()
        for sql in ["SELECT nothing FROM item", "DELETE FROM item", "SELECT FROM"] {
            try device.run("INSERT OR REPLACE INTO item VALUES ('a', 'A', NULL)")
            var rows = device.weir.observe(sql).makeAsyncIterator()
            await #expect(throws: WeirError.self) { _ = try await rows.next() }
            #expect(try device.rows() == ["a A -"])
        }
        // Weir itself still writes.
        #expect(try await device.weir.pendingRows() == 1)
    }

    @Test func anObservationContinuesAfterASuspension() async throws {
        let device = try await Device()
        var rows = device.weir.observe("SELECT count(*) AS n FROM item").makeAsyncIterator()
        #expect(try await rows.next()?.first?["n"] == .integer(0))
        await device.weir.suspend()
        await device.weir.nudge()
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.resume()
        #expect(try await rows.next()?.first?["n"] == .integer(1))
        await device.weir.close()
    }

    /// A device in whose file a writer locks readers out, for which Weir does not wait, with a change that the server has not stored.
    private func locking(_ server: ContractServer) async throws -> Device {
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device.synced(server)
        server.write("item", "a", ["title": "theirs"])
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'")
        try await device.weir.sync()
        await device.weir.close()
        try device.run("PRAGMA journal_mode = DELETE")
        StatementTrace.begin(device.folder.file()) {}
        try await device.restart()
        try await device.attach(server)
        var timeout = device.weir.observe("PRAGMA busy_timeout = 0").makeAsyncIterator()
        #expect(try await timeout.next()?.first?.values == [.integer(0)])
        return device
    }

    /// Runs statements of the app in a transaction during which Weir tries to read.
    private func write(_ sql: String, in device: Device) async throws {
        let reads = Signal<Void>()
        try device.run("BEGIN EXCLUSIVE; \(sql)")
        StatementTrace.begin(device.folder.file()) { reads.send() }
        await device.weir.nudge()
        try await reads.nextOrCancellation()
        // After the one that reads.
        _ = await device.weir.gaps
        StatementTrace.end(device.folder.file())
        try device.run("COMMIT")
    }

    @Test func aLongTransactionOfTheAppEndsNoObservation() async throws {
        let device = try await locking(ContractServer(Device.tables))
        var rows = device.weir.observe("SELECT title FROM item WHERE id = 'b'").makeAsyncIterator()
        #expect(try await rows.next()?.map(\.values) == [[.text("B")]])
        try await write("UPDATE item SET title = 'imported' WHERE id = 'b'", in: device)
        // Without another notice.
        #expect(try await rows.next()?.map(\.values) == [[.text("imported")]])
        var kept = device.weir.keptEditUpdates.makeAsyncIterator()
        #expect(try await kept.next()?.count == 1)
        try await write("UPDATE item SET note = 'imported'", in: device)
        let number = try await device.weir.keptEdits()[0].number
        try await device.weir.removeKeptEdits(through: number)
        #expect(try await kept.next() == [])
        await device.weir.close()
    }

    @Test func aLongTransactionOfTheAppEndsNoWaitForAnOutcome() async throws {
        let device = try await locking(ContractServer(Device.tables))
        let weir = device.weir
        let saved = try await weir.write { try $0.execute("UPDATE item SET title = 'B2' WHERE id = 'b'") }
        let isWaiting = Signal<Void>()
        // What waits looks for the outcome first, after it has recorded that it waits.
        StatementTrace.begin(device.folder.file(), before: "place IS NULL AND number BETWEEN") { isWaiting.send() }
        let outcome = Task { try await weir.outcome(of: "item", .text("b")) }
        try await isWaiting.nextOrCancellation()
        let outcomes = Task { try await saved.outcome }
        try await isWaiting.nextOrCancellation()
        StatementTrace.end(device.folder.file())
        var updates = weir.outcomeUpdates().makeAsyncIterator()
        let update = Task { try await updates.next() }
        try await write("UPDATE item SET note = 'imported' WHERE id = 'a'", in: device)
        try await weir.sync()
        #expect(try await outcome.value.status == .applied)
        #expect(try await outcomes.value.map(\.status) == [.applied])
        #expect(try await update.value?.map(\.status) == [.applied])
        await weir.close()
    }
}
