import Testing
import WeirClient
import WeirTesting

/// The outcomes that the real server gives where rows depend on each other, or on what another device did.
@Suite(.timeLimit(.minutes(2))) struct DependentRowsTests {
    private static let app = SyncKit.App(
        createTables: """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, list TEXT REFERENCES list (id) ON DELETE CASCADE)
            """, tables: ["list", "item"])

    private func with(
        policy: String = "lastSyncWins", _ body: (SyncKit, TestDevice, TestDevice) async throws -> Void
    ) async throws {
        let schema = """
            tables:
              list: { policy: \(policy), columns: { name: { type: text, length: 20 } } }
              item: { policy: \(policy), columns: { title: text, list: { type: text, references: list } } }
            """
        try await SyncKit.with(schema: schema, app: Self.app) { kit in
            try await body(kit, kit.device("first"), kit.device("second"))
        }
    }

    private func lists(_ device: TestDevice) async throws -> [String] {
        try await device.texts("SELECT id || ' ' || name FROM list ORDER BY id")
    }

    @Test func aUniqueValueThatTwoDevicesHaveTakenParksOneRowOnEachUntilItIsFree() async throws {
        try await with { kit, first, second in
            let saved = [
                try await first.weir.write { try $0.execute("INSERT INTO list VALUES ('a', 'same')") },
                try await second.weir.write { try $0.execute("INSERT INTO list VALUES ('b', 'same')") },
            ]
            for device in [first, second, first] { try await device.sync() }
            for write in saved { #expect(try await write.outcome.map(\.status) == [.applied]) }
            #expect(try await lists(first) == ["a same"])
            #expect(try await lists(second) == ["b same"])
            #expect(try await first.weir.state(of: "list", .text("b"))?.state == .parked)
            #expect(try await second.weir.parkedRows().map(\.id) == ["a"])
            try await second.write("UPDATE list SET name = 'other' WHERE id = 'b'")
            try await kit.converge()
            #expect(try await lists(first) == ["a same", "b other"])
        }
    }

    @Test(arguments: ["lastSyncWins", "lastWriteWins", "checkBase"])
    func aParentIsDeletedWhileAnotherDeviceAddsAChild(policy: String) async throws {
        try await with(policy: policy) { kit, first, second in
            try await first.write("INSERT INTO list VALUES ('l', 'L'); INSERT INTO item VALUES ('old', 'T', 'l')")
            try await kit.converge()
            let deleted = try await first.weir.write { try $0.execute("DELETE FROM list") }
            #expect(deleted.rows.count == 2)
            let added = try await second.weir.write { db in
                try db.execute("INSERT INTO item VALUES ('new', 'T', 'l')")
                try db.execute("UPDATE list SET name = 'renamed'")
            }
            for device in [first, second, first] { try await device.sync() }
            #expect(try await deleted.outcome.map(\.status) == [.applied, .applied])
            // The child is stored, and waits for its parent.
            let outcomes = try await added.outcome
            let ofParent: RowOutcome.Status = policy == "checkBase" ? .conflict : .deleted
            #expect(outcomes.first { $0.row.table == "item" }?.status == .applied)
            #expect(outcomes.first { $0.row.table == "list" }?.status == ofParent)
            for device in [first, second] {
                #expect(try await device.texts("SELECT id FROM item").isEmpty)
                #expect(try await device.weir.parkedRows().map(\.id) == ["new"])
            }
            let kept = try #require(outcomes.first { $0.row.table == "list" }?.kept)
            try await second.weir.resolve(kept, .keepLocal)
            try await kit.converge()
            for device in [first, second] {
                let rows = try await device.texts(
                    "SELECT item.id || ' ' || list.name FROM item JOIN list ON list.id = item.list")
                #expect(rows == ["new renamed"])
            }
        }
    }

    @Test(arguments: ["lastSyncWins", "lastWriteWins", "checkBase"])
    func aDeletionAgainstAnUpdateIsDecidedOnceForAllDevices(policy: String) async throws {
        try await with(policy: policy) { kit, first, second in
            try await first.write("INSERT INTO list VALUES ('l', 'L')")
            try await kit.converge()
            let updated = try await first.weir.write { try $0.execute("UPDATE list SET name = 'mine'") }
            let deleted = try await second.weir.write { try $0.execute("DELETE FROM list") }
            for device in [first, second, first] { try await device.sync() }
            #expect(try await updated.outcome.map(\.status) == [.applied])
            let isConflict = policy == "checkBase"
            #expect(try await deleted.outcome.map(\.status) == [isConflict ? .conflict : .applied])
            for device in [first, second] { #expect(try await lists(device) == (isConflict ? ["l mine"] : [])) }
        }
    }

    @Test func aRefusedRowHoldsUpNoOtherAndIsSentOnceItIsCorrected() async throws {
        try await with { kit, first, second in
            let saved = try await first.weir.write { db in
                try db.execute("INSERT INTO list VALUES ('long', 'a name of more than twenty')")
                try db.execute("INSERT INTO list VALUES ('short', 'S')")
            }
            try await first.sync()
            let outcomes = try await saved.outcome
            #expect(outcomes.map(\.status) == [.refused, .applied])
            #expect(outcomes[0].code == "invalid_value" && outcomes[0].kept != nil)
            #expect(try await first.weir.state(of: "list", .text("long"))?.state == .refused)
            try await second.sync()
            #expect(try await lists(second) == ["short S"])
            try await first.write("UPDATE list SET name = 'shorter' WHERE id = 'long'")
            try await kit.converge()
            #expect(try await lists(second) == ["long shorter", "short S"])
            #expect(try await first.weir.keptEdits().isEmpty)
        }
    }
}
