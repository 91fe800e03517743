import Foundation
import Synchronization
import Testing
import WeirClient

/// Rows whose keys were changed: what concerns one of them concerns all.
@Suite struct KeyChangeTests {
    private func synced(
        _ server: ContractServer, _ sql: String = Device.schema, _ rows: String = "('a', 'A', 'n'), ('b', 'B', 'm')"
    ) async throws -> Device {
        let device = try await Device(sql)
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES \(rows)")
        try await device.weir.sync()
        return device
    }

    @Test(arguments: ["a", "z"]) func theRowUnderItsNewKeyIsDiscardedTogetherWithTheOneUnderItsOldKey(
        key: String
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run(
            "UPDATE item SET id = 'z', note = 'z' WHERE id = 'a'; UPDATE item SET note = 'mine' WHERE id = 'b'")
        #expect(try await device.weir.discard("item", .text(key)))
        #expect(try device.rows() == ["a A n", "b B mine"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n", "b B mine"])
        #expect(server.live == [#"item a {"note":"n","title":"A"} 1"#, #"item b {"note":"mine","title":"B"} 2"#])
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func rowsThatHaveExchangedTheirKeysAreDiscardedTogetherAlsoWithUniqueValues() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(
            server, "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)")
        try device.run(
            """
            UPDATE item SET id = 't' WHERE id = 'a'; UPDATE item SET id = 'a' WHERE id = 'b'; UPDATE item SET id = 'b' WHERE id = 't'
            """)
        #expect(try device.rows() == ["a B m", "b A n"])
        #expect(try await device.weir.discard("item", .text("b")))
        #expect(try await device.weir.discard("item", .text("a")) == false)
        #expect(try device.rows() == ["a A n", "b B m"])
        try await device.weir.sync()
        #expect(server.live.allSatisfy { $0.hasSuffix(" 1") })
    }

    /// The deletion under the old key must not be sent without the insertion under the new one.
    @Test func aBatchWhoseOutcomeIsNotKnownStaysAtomic() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET id = 'z' WHERE id = 'a'")
        try await device.sync(with: server, losing: .lostRequest)
        try device.run("UPDATE item SET id = 'y' WHERE id = 'b'")
        server.state.withLock { $0.refusal = "outcome_expired" }
        try await device.weir.sync()
        let batches = server.requests.filter { $0.url.path == "/v1/sync" }.map {
            String(decoding: $0.body, as: UTF8.self)
        }
        #expect(batches.count >= 3 && batches.dropFirst().allSatisfy { $0.contains(#""atomic":true"#) })
        #expect(try device.rows() == ["y B m", "z A n"])
        #expect(server.live.map { $0.prefix(6) } == ["item y", "item z"])
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func oneThatIsNotStoredLeavesTheOthersOfItsBatchAlone() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await synced(
            server, Device.schema, "('a', 'A', 'n'), ('b', 'B', 'm'), ('c', 'C', 'c'), ('d', 'D', 'd')")
        server.write("item", "z", ["title": "theirs", "note": "t"])
        let saved = try await device.weir.write { db in
            try db.execute("UPDATE item SET id = 'z' WHERE id = 'a'")
            try db.execute("UPDATE item SET id = 'y' WHERE id = 'b'")
            // Two that exchange their keys.
            try db.execute("UPDATE item SET id = 't' WHERE id = 'c'")
            try db.execute("UPDATE item SET id = 'c' WHERE id = 'd'")
            try db.execute("UPDATE item SET id = 'd' WHERE id = 't'")
        }
        try await device.weir.sync()
        let kept = try await device.weir.keptEdits()
        #expect(Set(kept.map { "\($0.key) \($0.code)" }) == ["'a' batch_aborted", "'z' conflict"])
        #expect(try device.rows() == ["a A n", "c D d", "d C c", "y B m", "z theirs t"])
        #expect(server.live.map { $0.prefix(6) } == ["item a", "item c", "item d", "item y", "item z"])
        #expect(try await device.weir.pendingRows() == 0)
        let outcomes = try await saved.outcome.map { "\($0.row.key) \($0.status)" }.sorted()
        #expect(
            outcomes.filter { $0.contains("applied") } == ["'b' applied", "'c' applied", "'d' applied", "'y' applied"])
        // Each of them is still stored as a whole or not at all.
        let batches = server.requests.map { String(decoding: $0.body, as: UTF8.self) }.filter {
            $0.contains(#""id":"y""#)
        }
        #expect(batches.count == 2 && batches.allSatisfy { $0.contains(#""atomic":true"#) })
        let fresh = try await Device()
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.rows() == device.rows())
    }

    /// One group after the other, and the rows of one that is too large by themselves.
    @Test(arguments: [30_000, 15_000]) func changedKeysThatAProxyFindsTooLargeAreSentInParts(most: Int) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(
            server, Device.schema,
            "('a', hex(zeroblob(5000)), NULL), ('b', hex(zeroblob(5000)), NULL), ('c', 'C', NULL)")
        let proxy = ScriptedTransport { request, _ in
            if request.body.count <= most { return try await server.send(request) }
            return TransportResponse(status: 413, headers: [:], body: [])
        }
        try await device.attach(proxy)
        try device.run(
            """
            UPDATE item SET id = 'a2', note = title WHERE id = 'a'; UPDATE item SET id = 'b2' WHERE id = 'b';
            UPDATE item SET id = 'c2' WHERE id = 'c'
            """)
        try await device.weir.sync()
        let isHeld = most < 20_000
        #expect(
            server.live.map { $0.prefix(7) } == (isHeld ? ["item b2", "item c2"] : ["item a2", "item b2", "item c2"]))
        #expect(try await device.weir.pendingRows() == (isHeld ? 1 : 0))
        #expect(device.weir.currentStatus.needsAttention == (isHeld ? [.unsendableRows(1)] : []))
    }
}
