import Synchronization
import TestResources
import Testing
import WeirClient

/// What the app has written is taken back.
extension ApplyingTests {
    @Test func whatIsDiscardedBecomesTheServersNewest() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("INSERT INTO item VALUES ('b', 'B', 'n'), ('c', 'C', 'n'), ('d', 'D', 'n')")
        try await device.weir.sync()
        let newest = ["title": "newest"]
        for id in ["a", "b", "c"] { server.write("item", id, newest) }
        server.write("item", "d", nil)
        // A page is applied beneath edits, and the session ends before it freezes them.
        let path = device.folder.file()
        let transport = ScriptedTransport { request, _ in
            let database = try Database(path: path)
            try database.execute(
                """
                UPDATE item SET title = 'mine', note = 'mine' WHERE id IN ('a', 'd'); DELETE FROM item WHERE id = 'b';
                DELETE FROM item WHERE id = 'c'; INSERT INTO item VALUES ('c', 'again', NULL), ('new', 'new', NULL)
                """)
            database.close()
            withUnsafeCurrentTask { $0?.cancel() }
            return try await server.send(request)
        }
        try await device.attach(transport)
        await #expect(throws: CancellationError.self) { try await device.weir.sync() }
        #expect(try device.rows() == ["a mine mine", "c again -", "d mine mine", "new new -"])
        try await device.attach(server)
        for id in ["a", "b", "c", "d", "new"] { #expect(try await device.weir.discard("ITEM", .text(id)), "\(id)") }
        #expect(try await device.weir.discard("item", .text("none")) == false)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try device.rows() == ["a newest n", "b newest n", "c newest n"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a newest n", "b newest n", "c newest n"])
        #expect(server.live.count == 3)
    }

    @Test func whatWasWrittenBeforeTheFirstSyncIsTakenBack() async throws {
        let device = try await Device()
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL), ('b', 'B', NULL)")
        #expect(try await device.weir.discard("item", .text("a")))
        #expect(try await device.weir.discard("item", .text("a")) == false)
        #expect(try device.rows() == ["b B -"])
        #expect(try await device.weir.pendingRows() == 1)
        let server = ContractServer(Device.tables)
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('c', 'C', NULL)")
        #expect(try await device.weir.discard("item", .text("c")))
        try await device.weir.sync()
        #expect(server.live.map { $0.prefix(6) } == ["item b"])
    }

    /// When a row is changed that was there before Weir.
    enum Moment: CaseIterable {
        case withoutAccount
        case afterSeeding
        case beforeAttaching
        case afterAttaching
        case afterRefusedBatch
    }

    @Test(
        arguments: [
            "UPDATE item SET title = 'mine'", "DELETE FROM item", "UPDATE item SET id = 'new', note = 'mine'",
            "INSERT OR REPLACE INTO item VALUES ('old', 'mine', NULL)",
            "INSERT OR IGNORE INTO item VALUES ('old', 'x', NULL)",
            "DELETE FROM item; INSERT INTO item VALUES ('old', 'again', NULL)",
        ], Moment.allCases)
    func whatIsTakenBackOfARowThatWasThereBeforeWeirLeavesTheRow(sql: String, moment: Moment) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device(Device.schema + "; INSERT INTO item VALUES ('old', 'O', 'n')")
        switch moment {
        case .withoutAccount, .beforeAttaching: break
        case .afterSeeding: try await device.weir.seed()
        case .afterAttaching: try await device.attach(server)
        case .afterRefusedBatch:
            try await device.attach(server)
            server.state.withLock { $0.refusal = "outcome_expired" }
            let transport = ScriptedTransport { request, _ in
                if server.state.withLock({ $0.refusal == nil }) { throw ScriptedTransport.Lost() }
                return try await server.send(request)
            }
            try await device.attach(transport)
            await #expect(throws: SyncError.self) { try await device.weir.sync() }
            try await device.attach(server)
        }
        try device.run(sql)
        if moment == .beforeAttaching { try await device.attach(server) }
        // An insertion that was ignored is no edit.
        let isEdit = moment != .withoutAccount || !sql.contains("IGNORE")
        #expect(try await device.weir.discard("item", .text("old")) == isEdit)
        #expect(try device.rows() == ["old O n"])
        // With an account it is pending again.
        let isPending = moment != .withoutAccount && moment != .afterSeeding
        #expect(try await device.weir.pendingRows() == (isPending ? 1 : 0))
        #expect(try await device.weir.discard("item", .text("old")) == isPending)
        #expect(try device.rows() == ["old O n"])
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["old O n"])
        #expect(server.live == [#"item old {"note":"n","title":"O"} 1"#])
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test(
        arguments: [
            "INSERT OR REPLACE INTO item VALUES ('new', 'M', NULL)", "UPDATE item SET title = 'M'",
            "DELETE FROM item; INSERT INTO item VALUES ('new', 'M', NULL)",
        ], [true, false])
    func aNewRowThatWasWrittenAgainIsTakenBack(sql: String, isAttached: Bool) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        if isAttached { try await device.attach(server) }
        // It is younger than Weir's triggers, so it runs before them.
        try device.run(
            "CREATE TRIGGER stamp AFTER INSERT ON item BEGIN UPDATE item SET note = 'new' WHERE id = NEW.id; END")
        try device.run("INSERT INTO item VALUES ('new', 'N', NULL)")
        try device.run(sql)
        if !isAttached { try await device.attach(server) }
        #expect(try await device.weir.discard("item", .text("new")))
        try await device.weir.sync()
        #expect(try device.rows().isEmpty)
        #expect(server.live.isEmpty)
    }

    @Test func whatIsTakenBackOfARowThatTheServerHasRefusedLeavesTheRow() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.refusedText = "bad" }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'bad', NULL)")
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'mine'")
        #expect(try await device.weir.discard("item", .text("a")))
        #expect(try device.rows() == ["a bad -"])
        #expect(try await device.weir.pendingRows() == 0)
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().count == 1)
        #expect(try device.rows() == ["a bad -"])
    }

    /// A trigger of the app writes before the insertion is recorded, and slices of the log end between what one statement has done.
    @Test func aReplacedRowIsTheServersAgainWhereverASliceOfTheLogEnds() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try device.run(
            """
            WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO item SELECT 'r' || i, 'A', 'n' FROM n
            """)
        try await device.attach(server)
        try await device.weir.sync()
        try device.run(
            """
            CREATE TRIGGER app AFTER INSERT ON item BEGIN UPDATE item SET note = 'app' WHERE id = NEW.id; END;
            INSERT OR REPLACE INTO item SELECT id, 'B', 'm' FROM item
            """)
        #expect(try await device.weir.pendingRows() == 1200)
        for number in 1...1200 { #expect(try await device.weir.discard("item", .text("r\(number)"))) }
        #expect(try device.rows("SELECT DISTINCT title || note FROM item") == ["An"])
        #expect(try await device.weir.pendingRows() == 0)
    }
}
