import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Logging out, and another account on the same file.
@Suite struct DetachingTests {
    /// Another account's server.
    private func otherServer() -> ContractServer {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.syncID = "xyz" }
        server.write("item", "x", ["title": "X"])
        return server
    }

    private func attach(_ device: Device, _ account: String, _ server: ContractServer) async throws -> AttachOutcome {
        try await device.weir.attach(account, server: Device.url, options: Device.options(server))
    }

    @Test func aFileIsAttachedToAnotherAccountAfterItWasDetached() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        await #expect(throws: WeirError.otherAccount(attached: "abc")) {
            try await attach(device, "xyz", otherServer())
        }
        try await device.weir.detach()
        #expect(try device.rows().isEmpty)
        #expect(device.weir.currentStatus.lastSuccess == nil && !device.weir.currentStatus.isComplete)
        await #expect(throws: WeirError.notAttached) { try await device.weir.sync() }
        let other = otherServer()
        #expect(try await attach(device, "xyz", other) == .usedRemote)
        try await device.weir.sync()
        #expect(try device.rows() == ["x X -"])
        try device.run("INSERT INTO item VALUES ('y', 'Y', NULL)")
        try await device.weir.sync()
        // Nothing of it was sent to the first account, nor its deletions.
        #expect(server.live.count == 2)
        #expect(other.live.map { $0.prefix(6) } == ["item x", "item y"])
        // And back again, as a new device.
        try await device.weir.detach()
        #expect(try await attach(device, "abc", server) == .usedRemote)
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -", "b B -"])
    }

    @Test func outcomesAndKeptEditsOfTheNextAccountAreNumberedOn() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.refusedText = "bad" }
        let device = try await Device.synced(server)
        func write(_ title: String) async throws -> (place: Int64, kept: Int64?) {
            let saved = try await device.weir.write {
                try $0.execute("INSERT INTO item VALUES ('\(title)', '\(title)', NULL)")
            }
            try await device.weir.sync()
            let outcome = try #require(try await saved.outcome.first)
            return (outcome.place, try await device.weir.keptEdits().first?.number)
        }
        let first = try await write("bad")
        try await device.weir.detach(discardingUnsent: true)
        let other = otherServer()
        other.state.withLock { $0.refusedText = "bad" }
        _ = try await attach(device, "xyz", other)
        try await device.weir.sync()
        let second = try await write("bad")
        #expect(second.place > first.place)
        #expect(try #require(second.kept) > first.kept ?? 0)
        #expect(try await device.weir.outcomes(after: first.place).map(\.place) == [second.place])
    }

    @Test func rowsWithoutAKeyAreRemovedAsWellIfTheyAreDiscarded() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, note TEXT)")
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES (NULL, 'N', NULL), ('a', 'A', NULL)")
        try await device.weir.sync()
        // It was never sent.
        await #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try await device.weir.detach() }
        #expect(try device.rows("SELECT title FROM item") == ["N", "A"])
        try await device.weir.detach(discardingUnsent: true)
        #expect(try device.rows("SELECT title FROM item").isEmpty)
    }

    @Test func rowsThatAreKeptBecomeTheNextAccounts() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try await device.weir.detach(.keep)
        #expect(try device.rows() == ["a A -", "b B -"])
        let other = otherServer()
        #expect(try await attach(device, "xyz", other) == .usedRemote)
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -", "b B -", "x X -"])
        #expect(other.live.count == 3)
    }

    /// They are other people's, of whom the next account may know nothing.
    @Test(arguments: [Access.read, .write]) func rowsOfLinkedOwnersAreNotKept(access: Access) async throws {
        let tables = ["list": ["name": "text"], "item": ["title": "text", "list": "text"]]
        let server = ContractServer(tables)
        server.state.withLock { ($0.links, $0.linkAccess) = (["bob"], access) }
        server.write("list", "own", ["name": "L"])
        server.write("list", "theirs", ["name": "T"], owner: "bob")
        server.write("item", "mine", ["title": "M", "list": "theirs"])
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, list TEXT REFERENCES list)
            """, tables: ["list", "item"])
        try await device.attach(server)
        try await device.weir.sync()
        // What was added to their list is theirs as well.
        if access == .write { try device.run("INSERT INTO item VALUES ('new', 'N', 'theirs')") }
        try await device.weir.detach(.keep, discardingUnsent: true)
        #expect(try device.rows("SELECT id FROM list UNION ALL SELECT id FROM item") == ["own", "mine"])
        let other = ContractServer(tables)
        other.state.withLock { $0.syncID = "xyz" }
        _ = try await attach(device, "xyz", other)
        try await device.weir.sync()
        #expect(other.live.map { $0.prefix(9) } == ["item mine", "list own "])
        // It waits for its list, as where a link has ended.
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows().map(\.id) == ["mine"])
    }

    @Test func itIsRefusedWhileEditsAreUnsentOrKept() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'")
        await #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try await device.weir.detach() }
        // Also one that is being sent.
        try await device.sync(with: server, losing: .lostAnswer)
        await #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try await device.weir.detach() }
        #expect(try device.rows() == ["a mine -", "b B -"])
        server.state.withLock { $0.policy = "checkBase" }
        server.write("item", "b", ["title": "theirs"])
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'b'")
        try await device.attach(server)
        try await device.weir.sync()
        await #expect(throws: WeirError.unsent(rows: 0, keptEdits: 1)) { try await device.weir.detach() }
        try await device.weir.detach(discardingUnsent: true)
        #expect(try device.rows().isEmpty)
        #expect(try await device.weir.keptEdits().isEmpty)
        await #expect(throws: WeirError.notAttached) { try await device.weir.detach() }
    }

    /// A device with a second table.
    private func tagged(_ server: ContractServer) async throws -> Device {
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT); CREATE TABLE tag (id TEXT PRIMARY KEY, title TEXT)",
            tables: ["item", "tag"])
        try await device.attach(server)
        return device
    }

    @Test func itIsRefusedWhileEditsOfATableThatIsNotListedAreUnsent() async throws {
        let tables = ["item": ["title": "text"], "tag": ["title": "text"]]
        let device = try await tagged(ContractServer(tables))
        try device.run("INSERT INTO tag VALUES ('t', 'T')")
        try await device.weir.sync()
        await device.weir.close()
        try device.run("UPDATE tag SET title = 'mine'; INSERT INTO tag VALUES ('u', 'U'), (NULL, 'N')")
        try device.run("UPDATE tag SET title = 'again'")
        try await device.restart(tables: ["item"])
        await #expect(throws: WeirError.unsent(rows: 2, keptEdits: 0)) { try await device.weir.detach() }
        try await device.weir.detach(discardingUnsent: true)
        // Nothing of it is the next account's.
        let other = ContractServer(tables)
        other.state.withLock { $0.syncID = "xyz" }
        #expect(try await attach(device, "xyz", other) == .startedEmpty)
        try await device.restart(tables: ["item", "tag"])
        _ = try await attach(device, "xyz", other)
        try await device.weir.sync()
        #expect(other.live.isEmpty)
    }

    @Test func rowsOfATableThatIsNotListedAreNotTheNextAccounts() async throws {
        let tables = ["item": ["title": "text"], "tag": ["title": "text"]]
        let device = try await tagged(ContractServer(tables))
        try device.run("INSERT INTO tag VALUES ('t', 'T'), ('u', 'U')")
        try await device.weir.sync()
        await device.weir.close()
        try device.run("INSERT INTO tag VALUES ('v', 'V')")
        try await device.restart(tables: ["item"])
        // What the app writes to a table of its own is no account's.
        try device.run("INSERT INTO tag VALUES ('local', 'L')")
        try await device.weir.detach(discardingUnsent: true)
        #expect(try device.rows("SELECT id FROM tag") == ["local"])
        try await device.restart(tables: ["item", "tag"])
        let other = ContractServer(tables)
        other.state.withLock { $0.syncID = "xyz" }
        _ = try await attach(device, "xyz", other)
        try await device.weir.sync()
        #expect(other.live == [#"tag local {"title":"L"} 1"#])
    }

    @Test func aFileThatAnotherProcessSyncsIsNotDetached() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let lease = Lease(holder: "another", process: 1)
        try lease.take(in: device.database, now: Date())
        await #expect(throws: WeirError.inUse) { try await device.weir.detach() }
        try lease.release(in: device.database)
        try await device.weir.detach()
        #expect(try device.rows().isEmpty)
    }

    @Test func aDeviceThatIsKilledWhileItIsDetachedLosesNothing() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let snapshots = StatementSnapshots(path: device.folder.file()) {}
        try await device.restart()
        try await device.attach(server)
        try await device.weir.detach()
        await device.weir.close()
        snapshots.stop()
        #expect(snapshots.count >= 3)
        for number in 0..<snapshots.count {
            let comment = Comment("killed at state \(number) of \(snapshots.count)")
            for isRepeated in [true, false] {
                let killed = try await Device(copying: { try snapshots.write(number, to: $0) })
                var options = Device.options(server)
                options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
                if isRepeated {
                    try await killed.weir.attach("abc", server: Device.url, options: options)
                    try await killed.weir.detach()
                    #expect(try killed.rows().isEmpty, comment)
                } else {
                    try await killed.weir.attach("abc", server: Device.url, options: options)
                    try await killed.weir.sync()
                    #expect(try killed.rows() == ["a A -", "b B -"], comment)
                }
                #expect(server.live.count == 2, comment)
            }
        }
    }

    @Test func manyRowsAreRemovedInSlicesBetweenWhichAnEditEndsIt() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.pageRows = 10_000 }
        for number in 0..<3000 { server.write("item", "\(number)", ["title": "T"]) }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        let file = try ClientFile(path: device.folder.file(), tables: ["item"])
        let detaching = Detaching(file: file, rows: .remove, discardsUnsent: false)
        try detaching.begin()
        #expect(try detaching.removeNextRows())
        #expect(try device.rows("SELECT count(*) FROM item") == ["2000"])
        try device.run("INSERT INTO item VALUES ('mine', 'M', NULL)")
        #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try detaching.removeNextRows() }
        #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try detaching.end() }
        file.database.close()
        try await device.restart()
        // The account is as it was: everything comes again.
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows("SELECT count(*) FROM item") == ["3001"])
        #expect(server.live.count == 3001)
    }

    /// Detaches a device with 2500 rows, of which a trigger keeps the first 2400.
    private func expectAllButKeptAreRemoved(
        _ device: Device, tables: [String], _ rows: DetachedRows, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        await device.weir.close()
        let file = try ClientFile(path: device.folder.file(), tables: tables)
        let detaching = Detaching(file: file, rows: rows, discardsUnsent: false)
        try detaching.begin()
        #expect(try detaching.removeNextRows(), sourceLocation: sourceLocation)
        #expect(try device.rows("SELECT count(*) FROM item") == ["2400"], sourceLocation: sourceLocation)
        #expect(try !detaching.removeNextRows(), sourceLocation: sourceLocation)
        try detaching.end()
        #expect(try device.rows("SELECT count(*) FROM item") == ["2400"], sourceLocation: sourceLocation)
        file.database.close()
    }

    /// As in an app whose trigger makes deletions updates.
    @Test func rowsOfLinkedOwnersWhoseDeletionATriggerIgnoresStayAndTheOthersAreRemoved() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { ($0.links, $0.pageRows) = (["bob"], 10_000) }
        for number in 0..<2500 { server.write("item", "\(1000 + number)", ["title": "T"], owner: "bob") }
        let device = try await Device(
            """
            \(Device.schema);
            CREATE TRIGGER keep BEFORE DELETE ON item WHEN OLD.id < '3400' BEGIN SELECT RAISE(IGNORE); END
            """)
        try await device.attach(server)
        try await device.weir.sync()
        try await expectAllButKeptAreRemoved(device, tables: ["item"], .keep)
    }

    /// Also of a table that is no longer listed.
    @Test(arguments: [true, false])
    func rowsWhoseDeletionATriggerIgnoresStayAndTheOthersAreRemoved(isListed: Bool) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.pageRows = 10_000 }
        for number in 0..<2500 { server.write("item", "\(1000 + number)", ["title": "T"]) }
        let device = try await Device(
            """
            \(Device.schema); CREATE TABLE tag (id TEXT PRIMARY KEY);
            CREATE TRIGGER keep BEFORE DELETE ON item WHEN OLD.id < '3400' BEGIN SELECT RAISE(IGNORE); END
            """)
        try await device.attach(server)
        try await device.weir.sync()
        try await expectAllButKeptAreRemoved(device, tables: [isListed ? "item" : "tag"], .remove)
    }
}
