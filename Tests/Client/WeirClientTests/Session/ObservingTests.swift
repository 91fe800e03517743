import Foundation
import Testing
import WeirClient

@Suite struct ObservingTests {
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
}
