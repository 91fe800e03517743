import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// A column that the server's rows have before the app's table does.
@Suite struct AddedColumnTests {
    private static let before = "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT)"
    private static let migration = "ALTER TABLE item ADD COLUMN note TEXT"

    /// A device that has synced ten rows without their notes, in pages of three.
    private func synced(_ server: ContractServer) async throws -> Device {
        for id in 0..<10 { server.write("item", "r\(id)", ["title": "T\(id)", "note": "N\(id)"]) }
        server.state.withLock { $0.pageRows = 3 }
        let device = try await Device(Self.before)
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows("SELECT id || title FROM item ORDER BY id") == (0..<10).map { "r\($0)T\($0)" })
        return device
    }

    /// A new device has what this one has, and nothing is left to send or to decide.
    private func expectAllAtServer(
        _ device: Device, _ server: ContractServer, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let fresh = try await Device()
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.rows() == device.rows(), sourceLocation: sourceLocation)
        #expect(try await device.weir.keptEdits().isEmpty, sourceLocation: sourceLocation)
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
    }

    /// Rows are there at each moment of it, with all that the user has written.
    @Test func aDeviceThatIsKilledWhileTheColumnsValuesComeHasAllRowsAndTheirValuesInTheEnd() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        // A batch without outcome, and pending edits, when the column is added.
        try device.run("UPDATE item SET title = 'sent' WHERE id = 'r0'")
        try await device.sync(with: server, losing: .lostAnswer)
        try device.run(
            """
            UPDATE item SET title = 'mine' WHERE id IN ('r0', 'r1'); DELETE FROM item WHERE id = 'r2';
            INSERT INTO item VALUES ('new', 'mine')
            """)
        await device.weir.close()
        try device.run(Self.migration)
        let states = Mutex<[ContractServer.State]>([])
        let snapshots = StatementSnapshots(path: device.folder.file()) {
            let state = server.state.withLock { $0 }
            states.withLock { $0.append(state) }
        }
        try await device.restart()
        // More edits while the first page comes.
        let network = device.network(
            server,
            writing: """
                UPDATE item SET title = iif(id = 'r4', 'later', title), note = iif(id = 'r3', 'later', note)
                WHERE id IN ('r3', 'r4')
                """)
        var options = Device.options(network)
        options.slice = 1
        try await device.weir.attach("abc", server: Device.url, options: options)
        try await device.weir.sync()
        await device.weir.close()
        snapshots.stop()
        let pulls = network.requests.filter { $0.url.path == "/v1/pull" || $0.url.path == "/v1/sync" }
        #expect(pulls.count > 4)

        #expect(snapshots.count > 20)
        for number in 0..<snapshots.count {
            let comment = Comment("killed at state \(number) of \(snapshots.count)")
            let restored = ContractServer(Device.tables)
            let state = states.withLock { $0[number] }
            restored.state.withLock { $0 = state }
            let killed = try await Device(copying: { try snapshots.write(number, to: $0) })
            let hasMore = try killed.rows("SELECT 1 FROM item WHERE title = 'later'") == ["1"]
            func rows(_ note: (Int) -> String) -> [String] {
                ["new mine -"]
                    + [0, 1, 3, 4, 5, 6, 7, 8, 9].map { id in
                        let title = id < 2 ? "mine" : id == 4 && hasMore ? "later" : "T\(id)"
                        return "r\(id) \(title) \(id == 3 && hasMore ? "later" : note(id))"
                    }
            }
            // Each row has its title, and a note if it has come.
            let found = try killed.rows()
            let (withNotes, without) = (rows { "N\($0)" }, rows { _ in "-" })
            #expect(found.count == withNotes.count, comment)
            for (row, expected) in zip(found, zip(withNotes, without)) {
                #expect(row == expected.0 || row == expected.1, comment)
            }
            options.transport = restored
            options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
            try await killed.weir.attach("abc", server: Device.url, options: options)
            try await killed.weir.sync()
            #expect(try killed.rows() == withNotes, comment)
            #expect(try await killed.weir.pendingRows() == 0, comment)
            #expect(try await killed.weir.keptEdits().isEmpty, comment)
            let fresh = try await Device()
            try await fresh.attach(restored)
            try await fresh.weir.sync()
            #expect(try fresh.rows() == withNotes, comment)
        }
    }

    /// An app's extension, for instance, has opened the file before the app has added the column.
    @Test(arguments: [false, true])
    func aWeirThatWasOpenBeforeLosesNothingOfTheColumn(isLate: Bool) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let path = device.folder.file()
        let opened = Mutex<Weir?>(nil)
        let add: @Sendable () async throws -> Void = {
            let database = try Database(path: path)
            try database.run(Self.migration)
            let weir = try await Weir.open(URL(fileURLWithPath: path), tables: ["item"])
            try database.run("UPDATE item SET note = 'mine' WHERE id = 'r1'")
            database.close()
            opened.withLock { $0 = weir }
        }
        let transport = FaultyTransport(server, .lateAnswer, at: 0)
        try await device.attach(transport)
        if isLate {
            // The column is added between the server's answer and its arrival.
            transport.whileLate(add)
            server.write("item", "r0", ["title": "theirs"])
        } else {
            try await add()
        }
        try await device.weir.sync()
        #expect(transport.failures == [])
        try await device.weir.sync()
        let other = try #require(opened.withLock { $0 })
        try await other.attach("abc", server: Device.url, options: Device.options(server))
        try await other.sync()
        let rows = (0..<10).map { id in
            "r\(id) \(id == 0 && isLate ? "theirs" : "T\(id)") \(id == 1 ? "mine" : "N\(id)")"
        }
        #expect(try device.rows() == rows)
        #expect(server.live[1].contains(#""note":"mine""#))
        #expect(try await other.pendingRows() == 0)
        await other.close()
    }

    /// Whether the server's values come before the edits are sent, or after.
    @Test(arguments: ["NULL", "'default'"], [false, true])
    func aReplacedRowThatIsPendingLeavesTheColumnAsTheServerHasIt(value: String, isPulled: Bool) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run(
            """
            INSERT OR REPLACE INTO item VALUES ('r1', 'mine'); DELETE FROM item WHERE id = 'r2';
            INSERT INTO item VALUES ('r2', 'mine'), ('new', 'mine'); INSERT OR REPLACE INTO item VALUES ('r3', 'T3')
            """)
        await device.weir.close()
        try device.run("\(Self.migration) DEFAULT \(value)")
        try await device.restart()
        if isPulled { try await device.pull(server) } else { try await device.attach(server) }
        try await device.weir.sync()
        let new = value == "NULL" ? "-" : "default"
        let rows = (0..<10).map { "r\($0) \($0 == 1 || $0 == 2 ? "mine" : "T\($0)") N\($0)" }
        #expect(try device.rows() == ["new mine \(new)"] + rows)
        try await expectAllAtServer(device, server)
        // What is replaced from now on has the column.
        try device.run("INSERT OR REPLACE INTO item VALUES ('r1', 'mine', NULL)")
        try await device.weir.sync()
        #expect(server.live[2] == #"item r1 {"note":null,"title":"mine"} 3"#)
    }

    /// Whether some of the server's values come before the edits are sent, or all after.
    @Test(arguments: ["NULL", "'default'"], [false, true])
    func aRowThatIsReplacedBeforeTheColumnsValuesHaveComeLeavesThemAsTheServerHasThem(
        value: String, isPulled: Bool
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        await device.weir.close()
        try device.run("\(Self.migration) DEFAULT \(value)")
        try await device.restart()
        try device.run(
            """
            INSERT OR REPLACE INTO item (id, title) VALUES ('r1', 'mine'); DELETE FROM item WHERE id = 'r2';
            INSERT INTO item (id, title) VALUES ('r2', 'mine'), ('new', 'mine');
            INSERT OR REPLACE INTO item (id, title) VALUES ('r3', 'T3');
            INSERT OR REPLACE INTO item VALUES ('r4', 'mine', 'mine')
            """)
        if isPulled { try await device.pull(server) } else { try await device.attach(server) }
        // Once more while pages come.
        try await device.attach(
            device.network(server, writing: "INSERT OR REPLACE INTO item (id, title) VALUES ('r9', 'mine')"))
        try await device.weir.sync()
        let new = value == "NULL" ? "-" : "default"
        let rows = (0..<10).map { id in
            "r\(id) \([1, 2, 4, 9].contains(id) ? "mine" : "T\(id)") \(id == 4 ? "mine" : "N\(id)")"
        }
        #expect(try device.rows() == ["new mine \(new)"] + rows)
        try await expectAllAtServer(device, server)
        // What is replaced from now on has the column.
        try device.run("INSERT OR REPLACE INTO item VALUES ('r1', 'mine', NULL)")
        try await device.weir.sync()
        #expect(server.live[2].hasPrefix(#"item r1 {"note":null,"title":"mine"}"#))
    }

    /// Whether some of the server's values come before the edits are sent, or all after.
    @Test(arguments: [false, true])
    func aRowThatIsReplacedBeforeAnotherColumnIsAddedLeavesBothAsTheServerHasThem(isPulled: Bool) async throws {
        let server = ContractServer(["item": ["title": "text", "note": "text", "extra": "text"]])
        server.write("item", "r1", ["extra": "E1"])
        let device = try await synced(server)
        await device.weir.close()
        try device.run(Self.migration)
        try await device.restart()
        try device.run(
            """
            INSERT OR REPLACE INTO item (id, title) VALUES ('r1', 'mine');
            INSERT OR REPLACE INTO item VALUES ('r4', 'mine', 'mine')
            """)
        await device.weir.close()
        try device.run("ALTER TABLE item ADD COLUMN extra TEXT")
        try await device.restart()
        if isPulled { try await device.pull(server) } else { try await device.attach(server) }
        try await device.weir.sync()
        let rows = (0..<10).map { id in
            "r\(id) \([1, 4].contains(id) ? "mine" : "T\(id)") \(id == 4 ? "mine" : "N\(id)") \(id == 1 ? "E1" : "-")"
        }
        let query = "SELECT id || ' ' || title || ' ' || note || ' ' || ifnull(extra, '-') FROM item ORDER BY id"
        #expect(try device.rows(query) == rows)
        #expect(server.live[1].hasPrefix(#"item r1 {"extra":"E1","note":"N1","title":"mine"}"#))
        #expect(server.live[4].hasPrefix(#"item r4 {"note":"mine","title":"mine"}"#))
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// As in an app that runs ANALYZE while nothing is pending: there are statistics of its tables, and none of Weir's that are empty.
    @Test func theWholeTableIsNotReadForTheEditsWhileTheColumnsValuesCome() async throws {
        let device = try await synced(ContractServer(Device.tables))
        try device.run("ANALYZE")
        await device.weir.close()
        try device.run(Self.migration)
        let updates = Mutex<Set<String>>([])
        StatementTrace.begin(device.folder.file()) { sql in
            if sql.hasPrefix("UPDATE weir_edit_1 AS e ") { _ = updates.withLock { $0.insert(sql) } }
        }
        try await device.restart()
        StatementTrace.end(device.folder.file())
        let found = updates.withLock { $0 }
        #expect(found.count == 2)
        for update in found {
            let plan = try device.database.map("EXPLAIN QUERY PLAN \(update)") { $0.string(at: 3) }
            #expect(plan.contains { $0.hasPrefix("SEARCH t ") }, "\(update)")
            #expect(!plan.contains { $0.hasPrefix("SCAN t") }, "\(update)")
        }
    }

    /// The batch is repeated, or its changes are sent again by another one.
    @Test(arguments: [Fault.lostRequest, .lostAnswer], [nil, "outcome_expired"])
    func aReplacedRowOfABatchLeavesTheColumnAsTheServerHasIt(fault: Fault, refusal: String?) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run(
            """
            INSERT OR REPLACE INTO item VALUES ('r1', 'mine'); DELETE FROM item WHERE id = 'r2';
            INSERT INTO item VALUES ('r2', 'mine')
            """)
        try await device.sync(with: server, losing: fault)
        await device.weir.close()
        try device.run(Self.migration)
        try await device.restart()
        server.state.withLock { $0.refusal = refusal }
        try await device.attach(server)
        try await device.weir.sync()
        let rows = (0..<10).map { "r\($0) \($0 == 1 || $0 == 2 ? "mine" : "T\($0)") N\($0)" }
        #expect(try device.rows() == rows)
        let fresh = try await Device()
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.rows() == rows)
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }
}
