import Synchronization
import Testing
import WeirClient

/// Triggers of the app that refuse what an answer writes besides the server's rows: the session succeeds, and the row waits.
@Suite struct RefusingTriggerTests {
    /// ROLLBACK ends the transaction with what turns capturing off.
    static let ways = ["ABORT", "FAIL", "ROLLBACK"]

    private static func trigger(
        _ event: String, _ condition: String, _ way: String, _ time: String = "BEFORE"
    ) -> String {
        let raise = way == "IGNORE" ? "RAISE(IGNORE)" : "RAISE(\(way), 'no')"
        return "CREATE TRIGGER guard \(time) \(event) ON item WHEN \(condition) BEGIN SELECT \(raise); END"
    }

    /// A device that has synced the rows `a` and `b`.
    private func synced(_ server: ContractServer, _ policy: String) async throws -> Device {
        server.state.withLock { ($0.policy, $0.refusedText) = (policy, "bad") }
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET note = 'n'")
        try await device.weir.sync()
        return device
    }

    /// Syncs with a trigger, beside which a change of `b` is stored, and again without it.
    ///
    /// - Parameters:
    ///   - waiting: the row `a` as it waits.
    ///   - row: as it is in the end.
    private func expect(
        _ device: Device, _ server: ContractServer, _ trigger: String, _ waiting: [String], _ row: [String],
        kept: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try device.run("UPDATE item SET title = 'B2' WHERE id = 'b'; \(trigger)")
        server.state.withLock { $0.requestsLeft = 50 }
        try await device.weir.sync()
        #expect(try device.rows() == waiting + ["b B2 n"], sourceLocation: sourceLocation)
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
        #expect(try device.rows("SELECT count(*) FROM weir_batch") == ["0"], sourceLocation: sourceLocation)
        #expect(server.live.contains(#"item b {"note":"n","title":"B2"} 3"#), sourceLocation: sourceLocation)
        let parked = try await device.weir.parkedRows()
        #expect(parked.map(\.id) == ["a"] && parked[0].reason.contains("no"), sourceLocation: sourceLocation)
        #expect(try await device.weir.keptEdits().map(\.code) == kept, sourceLocation: sourceLocation)
        // Nothing of the server's is taken for the app's.
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows() == parked, sourceLocation: sourceLocation)
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
        try device.run("DROP TRIGGER guard")
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == row + ["b B2 n"], sourceLocation: sourceLocation)
        #expect(try await device.weir.parkedRows().isEmpty, sourceLocation: sourceLocation)
    }

    @Test(arguments: ways + ["IGNORE"]) func theServersValuesAfterAConflict(way: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "checkBase")
        server.write("item", "a", ["note": "theirs"])
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'")
        try await expect(
            device, server, Self.trigger("UPDATE", "NEW.title = 'A'", way), ["a mine n"], ["a A theirs"],
            kept: ["conflict"])
    }

    @Test(arguments: ways + ["IGNORE"]) func theServersValuesAfterARefusal(way: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "lastSyncWins")
        try device.run("UPDATE item SET title = 'bad' WHERE id = 'a'")
        try await expect(
            device, server, Self.trigger("UPDATE", "NEW.title = 'A'", way), ["a bad n"], ["a A n"],
            kept: ["value_too_large"])
    }

    @Test(arguments: ways + ["IGNORE"]) func aRowWhoseDeletionWasNotStored(way: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "checkBase")
        server.write("item", "a", ["note": "theirs"])
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await expect(
            device, server, Self.trigger("INSERT", "NEW.id = 'a'", way), [], ["a A theirs"], kept: ["conflict"])
    }

    @Test(arguments: ways + ["IGNORE"]) func theDeletionOfARowWhoseChangeWasStoredInADeletedOne(way: String)
        async throws
    {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "lastSyncWins")
        server.write("item", "a", nil)
        try device.run("UPDATE item SET title = 'late' WHERE id = 'a'")
        try await expect(
            device, server, Self.trigger("DELETE", "OLD.id = 'a'", way), ["a late n"], [], kept: [])
    }

    @Test(arguments: ways + ["IGNORE"]) func theDeletionThatWasPulledBeneathAChange(way: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "checkBase")
        server.write("item", "a", nil)
        try await device.pull(server, beneath: "UPDATE item SET title = 'late' WHERE id = 'a'")
        try await expect(
            device, server, Self.trigger("DELETE", "OLD.id = 'a'", way), ["a late n"], [], kept: ["conflict"])
    }

    @Test(arguments: ways + ["IGNORE"]) func theRemovalOfARowWithThoseOfItsOwner(way: String) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.links = ["xyz"] }
        for id in ["a", "b", "c"] { server.write("item", id, ["title": id], owner: "xyz") }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a a -", "b b -", "c c -"])
        try device.run(Self.trigger("DELETE", "OLD.id = 'b'", way))
        server.state.withLock { ($0.links, $0.requestsLeft) = ([], 50) }
        try await device.weir.sync()
        #expect(try device.rows() == ["b b -"])
        #expect(try await device.weir.pendingRows() == 0)
        // It has not become the account's.
        try device.run("UPDATE item SET title = 'edited'")
        try await device.weir.sync()
        #expect(server.live == [#"item a {"title":"a"} 1"#, #"item b {"title":"b"} 1"#, #"item c {"title":"c"} 1"#])
        #expect(try await device.weir.keptEdits().map(\.owner) == ["xyz"])
        // With the trigger it goes, too, when the link has begun and ended again.
        try device.run("DROP TRIGGER guard")
        server.state.withLock { ($0.links, $0.requestsLeft) = (["xyz"], 50) }
        try await device.weir.sync()
        #expect(try device.rows().count == 3)
        server.state.withLock { $0.links = [] }
        try await device.weir.sync()
        #expect(try device.rows().isEmpty)
    }

    @Test func aValueThatACheckRefuses() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT CHECK (title <> 'bad'), note TEXT)")
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n')")
        try await device.weir.sync()
        server.write("item", "a", ["title": "bad"])
        try device.run("UPDATE item SET title = 'mine'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n"])
        #expect(try await device.weir.parkedRows().map(\.id) == ["a"])
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// After the row is written, IGNORE ends the trigger alone.
    @Test(arguments: ways + ["IGNORE"], ["BEFORE", "AFTER"])
    func rowsThatComeAreWrittenWholeOrWait(way: String, time: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "lastSyncWins")
        try device.run(
            """
            \(Self.trigger("UPDATE", "NEW.title = 'A2'", way, time));
            \(Self.trigger("INSERT", "NEW.title = 'C'", way, time).replacing("guard", with: "guard2"));
            CREATE TRIGGER guard3 \(time) DELETE ON item WHEN OLD.id = 'b' BEGIN
            SELECT \(way == "IGNORE" ? "RAISE(IGNORE)" : "RAISE(\(way), 'no')"); END
            """)
        server.write("item", "a", ["title": "A2", "note": "n2"])
        server.write("item", "b", nil)
        server.write("item", "c", ["title": "C"])
        server.write("item", "d", ["title": "D"])
        server.state.withLock { $0.requestsLeft = 50 }
        let isWritten = way == "IGNORE" && time == "AFTER"
        for _ in 1...2 {
            try await device.weir.sync()
            #expect(try device.rows() == (isWritten ? ["a A2 n2", "c C -", "d D -"] : ["a A n", "b B n", "d D -"]))
            #expect(
                try device.rows("SELECT id || ' ' || state FROM weir_item_state WHERE is_deleted IS NOT 1 ORDER BY id")
                    == (isWritten
                        ? ["a synced", "c synced", "d synced"] : ["a parked", "b parked", "c parked", "d synced"])
            )
            #expect(try await device.weir.pendingRows() == 0)
        }
        // A change of a row that waits is based on the version that waits.
        try device.run("DROP TRIGGER guard; DROP TRIGGER guard2; DROP TRIGGER guard3")
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a A2 n2", "c C -", "d D -"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    /// It writes the row by itself, and ignores the statement.
    @Test func aRowThatATriggerWritesInPlaceOfTheStatementIsWritten() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "lastSyncWins")
        try device.run(
            """
            CREATE TRIGGER guard BEFORE UPDATE ON item WHEN OLD.title <> NEW.title BEGIN
            UPDATE item SET title = NEW.title WHERE id = NEW.id; SELECT RAISE(IGNORE); END
            """)
        server.write("item", "a", ["title": "A2"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a A2 n", "b B n"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    @Test(arguments: ways + ["IGNORE"]) func aDecisionForTheServerThatIsRefusedSaysSoAndLeavesTheChange(
        way: String
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "lastSyncWins")
        try device.run("INSERT INTO item VALUES ('c', 'bad', NULL)")
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        try device.run(Self.trigger("DELETE", "OLD.id = 'c'", way))
        await #expect(throws: WeirError.self) { try await device.weir.resolve(edit, .acceptServer) }
        #expect(try device.rows("SELECT id FROM item WHERE id = 'c'") == ["c"])
        try device.run("DROP TRIGGER guard")
        try await device.weir.resolve(edit, .acceptServer)
        #expect(try device.rows("SELECT id FROM item WHERE id = 'c'").isEmpty)
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    // MARK: Exchanges of unique values

    /// A device that has the rows `a` to `d`, whose titles are 1 to 4, and one of its own.
    private func exchanging(_ server: ContractServer) async throws -> Device {
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)")
        try await device.attach(server)
        for (number, id) in ["a", "b", "c", "d"].enumerated() {
            server.write("item", id, ["title": "\(number + 1)", "note": "n"])
        }
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('own', 'taken', 'n')")
        try await device.weir.sync()
        server.write("item", "a", ["title": "2"])
        server.write("item", "b", ["title": "1"])
        return device
    }

    private func expectExchange(
        _ device: Device, _ server: ContractServer, _ rows: [String], parked: [String]
    ) async throws {
        // Rows that stay as they are may take part in the first exchange, and in none of the later ones.
        for number in 1...2 {
            server.write("item", "own", ["note": "\(number)"])
            server.state.withLock { $0.requestsLeft = 50 }
            try await device.weir.sync()
        }
        #expect(try device.rows("SELECT id || title FROM item ORDER BY id") == rows + ["owntaken"])
        #expect(try await device.weir.parkedRows().map(\.id).sorted() == parked)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test(arguments: ways) func aRowThatIsNotLetGoTakesNoPartInAnExchange(way: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await exchanging(server)
        server.write("item", "c", ["title": "4"])
        server.write("item", "d", ["title": "3"])
        try device.run(Self.trigger("DELETE", "OLD.id = 'c'", way))
        try await expectExchange(device, server, ["a2", "b1", "c3", "d4"], parked: ["c", "d"])
        try device.run("DROP TRIGGER guard")
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item ORDER BY id") == ["2", "1", "4", "3", "taken"])
    }

    /// Its unique value is another row's, so it is put back.
    @Test(arguments: ways) func aRowThatDoesNotComeBackTakesNoPartInAnExchange(way: String) async throws {
        let server = ContractServer(Device.tables)
        let device = try await exchanging(server)
        server.write("item", "c", ["title": "taken"])
        server.write("item", "d", ["title": "3"])
        try device.run(Self.trigger("INSERT", "NEW.id = 'c'", way))
        try await expectExchange(device, server, ["a2", "b1", "c3", "d4"], parked: ["c", "d"])
    }

    /// What was not let back is not known after a new start.
    @Test(arguments: ways) func aRowThatDoesNotComeBackHoldsUpNoOtherExchangeInTheSameSession(way: String) async throws
    {
        let server = ContractServer(Device.tables)
        let device = try await exchanging(server)
        server.write("item", "c", ["title": "taken"])
        server.write("item", "d", ["title": "3"])
        try device.run(Self.trigger("INSERT", "NEW.id IN ('c', 'd')", way))
        for (a, b) in [("2", "1"), ("1", "2")] {
            server.write("item", "a", ["title": a])
            server.write("item", "b", ["title": b])
            server.state.withLock { $0.requestsLeft = 50 }
            try await device.restart()
            try await device.attach(server)
            try await device.weir.sync()
            #expect(
                try device.rows("SELECT id || title FROM item ORDER BY id") == [
                    "a\(a)", "b\(b)", "c3", "d4", "owntaken",
                ])
            #expect(try await device.weir.parkedRows().map(\.id).sorted() == ["c", "d"])
        }
    }

    @Test(arguments: ways + ["IGNORE"], ["BEFORE", "AFTER"])
    func aRowWithoutItsParentThatIsNotLetGoStays(way: String, time: String) async throws {
        let server = ContractServer(["list": ["name": "text"], "item": ["list": "text"]])
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, list TEXT REFERENCES list)
            """, tables: ["list", "item"])
        try await device.attach(server)
        server.write("list", "l", ["name": "L"])
        server.write("item", "a", ["list": "l"])
        server.write("item", "b", ["list": "l"])
        try await device.weir.sync()
        server.write("list", "l", nil)
        try device.run(Self.trigger("DELETE", "OLD.id = 'a'", way, time))
        server.state.withLock { $0.requestsLeft = 50 }
        try await device.weir.sync()
        // These leave what was done before them.
        let isGone = ["FAIL", "IGNORE"].contains(way) && time == "AFTER"
        #expect(try device.rows("SELECT id || list FROM item") == (isGone ? [] : ["al"]))
        #expect(try await device.weir.parkedRows().map(\.id).sorted() == (isGone ? ["a", "b"] : ["b"]))
        #expect(try await device.weir.pendingRows() == 0)
        // One that stays is changed as before.
        if isGone { return }
        server.write("item", "a", ["list": "m"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT id || list FROM item") == ["am"])
    }
}
