import Foundation
import Synchronization
import Testing
import WeirClient

/// What an app is told where rows depend on each other: unique values, parents and children.
@Suite struct RelatedRowsTests {
    private static let tables = ["list": ["name": "text"], "item": ["title": "text", "list": "text"]]
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE);
        CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, list TEXT REFERENCES list (id) ON DELETE CASCADE)
        """

    private func device(_ server: ContractServer, _ name: String) async throws -> Device {
        let device = try await Device(Self.sql, tables: ["list", "item"])
        try await device.attach(server) { $0.knowledgeID = name }
        return device
    }

    private func lists(_ device: Device) throws -> [String] {
        try device.rows("SELECT id || ' ' || name FROM list ORDER BY id")
    }

    @Test func aUniqueValueThatTwoDevicesHaveTakenParksOneRowOnEachUntilItIsFree() async throws {
        let server = ContractServer(Self.tables)
        let (first, second) = (try await device(server, "first"), try await device(server, "second"))
        let saved = [
            try await first.weir.write { try $0.execute("INSERT INTO list VALUES ('a', 'same')") },
            try await second.weir.write { try $0.execute("INSERT INTO list VALUES ('b', 'same')") },
        ]
        for device in [first, second, first] { try await device.weir.sync() }
        // The server has both: uniqueness is the app's.
        #expect(try await saved[0].outcome.map(\.status) == [.applied])
        #expect(try await saved[1].outcome.map(\.status) == [.applied])
        #expect(try lists(first) == ["a same"] && lists(second) == ["b same"])
        #expect(try await first.weir.state(of: "list", .text("b"))?.state == .parked)
        #expect(try await second.weir.parkedRows().map(\.id) == ["a"])
        #expect(second.weir.currentStatus.needsAttention == [.parkedRows(1)])
        // One of them gives way.
        try second.run("UPDATE list SET name = 'other' WHERE id = 'b'")
        for device in [second, first, second] { try await device.weir.sync() }
        for device in [first, second] {
            #expect(try lists(device) == ["a same", "b other"])
            #expect(try await device.weir.parkedRows().isEmpty)
        }
    }

    @Test func parentsAndChildrenArriveAcrossPagesAndBatches() async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { ($0.pageRows, $0.maxBatchBytes) = (2, 1500) }
        let (first, second) = (try await device(server, "first"), try await device(server, "second"))
        let saved = try await first.weir.write { db in
            for list in 0..<3 {
                try db.execute("INSERT INTO list VALUES (?1, ?1)", [.text("l\(list)")])
                for item in 0..<5 {
                    try db.execute(
                        "INSERT INTO item VALUES (?1, 'T', ?2)", [.text("\(list)-\(item)"), .text("l\(list)")])
                }
            }
        }
        try await first.weir.sync()
        #expect(server.state.withLock { $0.applied } > 1)
        #expect(try await saved.outcome.allSatisfy { $0.status == .applied } && saved.rows.count == 18)
        try await second.weir.sync()
        #expect(try second.rows("SELECT count(*) FROM item JOIN list ON list.id = item.list") == ["15"])
        let states = try second.rows(
            "SELECT DISTINCT state FROM weir_item_state UNION SELECT state FROM weir_list_state")
        #expect(states == ["synced"])
    }

    @Test(arguments: ["lastSyncWins", "checkBase"])
    func aParentIsDeletedWhileAnotherDeviceAddsAChild(policy: String) async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.policy = policy }
        let (first, second) = (try await device(server, "first"), try await device(server, "second"))
        try await first.weir.write { db in
            try db.execute("INSERT INTO list VALUES ('l', 'L')")
            try db.execute("INSERT INTO item VALUES ('old', 'T', 'l')")
        }
        for device in [first, second] { try await device.weir.sync() }
        let deleted = try await first.weir.write { try $0.execute("DELETE FROM list") }
        #expect(deleted.rows.count == 2)
        let added = try await second.weir.write { db in
            try db.execute("INSERT INTO item VALUES ('new', 'T', 'l')")
            try db.execute("UPDATE list SET name = 'renamed'")
        }
        for device in [first, second, first] { try await device.weir.sync() }
        #expect(try await deleted.outcome.map(\.status) == [.applied, .applied])
        // The child is stored, and waits for its parent.
        let outcomes = try await added.outcome
        let ofParent: RowOutcome.Status = policy == "checkBase" ? .conflict : .deleted
        #expect(outcomes.first { $0.row.table == "item" }?.status == .applied)
        #expect(outcomes.first { $0.row.table == "list" }?.status == ofParent)
        for device in [first, second] {
            #expect(try device.rows("SELECT id FROM item").isEmpty)
            #expect(try await device.weir.parkedRows().map(\.id) == ["new"])
            #expect(try lists(device).isEmpty)
        }
        // The parent is brought back with what the device had of it.
        let kept = try #require(outcomes.first { $0.row.table == "list" }?.kept)
        try await second.weir.resolve(kept, .keepLocal)
        for device in [second, first] { try await device.weir.sync() }
        for device in [first, second] {
            #expect(
                try device.rows("SELECT item.id || list.name FROM item JOIN list ON list.id = item.list") == [
                    "newrenamed"
                ])
        }
    }

    @Test func aDeletionAgainstAnUpdateIsDecidedOnceForAllDevices() async throws {
        for policy in ["lastSyncWins", "lastWriteWins", "checkBase"] {
            let server = ContractServer(Self.tables)
            server.state.withLock { $0.policy = policy }
            let (first, second) = (try await device(server, "first"), try await device(server, "second"))
            try first.run("INSERT INTO list VALUES ('l', 'L')")
            for device in [first, second] { try await device.weir.sync() }
            let updated = try await first.weir.write { try $0.execute("UPDATE list SET name = 'mine'") }
            let deleted = try await second.weir.write { try $0.execute("DELETE FROM list") }
            for device in [first, second, first] { try await device.weir.sync() }
            #expect(try await updated.outcome.map(\.status) == [.applied])
            let isConflict = policy == "checkBase"
            #expect(try await deleted.outcome.map(\.status) == [isConflict ? .conflict : .applied], "\(policy)")
            for device in [first, second] { #expect(try lists(device) == (isConflict ? ["l mine"] : []), "\(policy)") }
        }
    }
}
