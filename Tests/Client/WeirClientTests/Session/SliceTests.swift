import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Answers are applied in transactions, between which the app writes and the process may be killed.
@Suite struct SliceTests {
    private static let sql = Device.schema + "; CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, name TEXT)"
    private static let tables = Device.tables.merging(["mark": ["name": "text"]]) { $1 }

    private func options(_ server: ContractServer, slice: Int = Applying.slice) -> SyncOptions {
        var options = Device.options(server)
        options.slice = slice
        return options
    }

    @Test func aSmallAnswerIsThereAsAWholeOrNotAtAll() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'mine'")
        for id in 0..<100 { server.write("item", "b\(id)", ["title": "B"]) }
        let snapshots = StatementSnapshots(path: device.folder.file()) {}
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        snapshots.stop()
        var found: Set<String> = []
        for number in 0..<snapshots.count {
            let copy = try TemporaryFolder()
            try snapshots.write(number, to: copy.file())
            let database = try Database(path: copy.file())
            let state = try database.map(
                """
                SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM weir_batch),
                (SELECT max(last_time_stamp) FROM weir_vector)
                """
            ) { "\($0.integer(at: 0)) rows, \($0.integer(at: 1)) batches, \($0.integer(at: 2))" }
            found.formUnion(state)
        }
        #expect(found == ["1 rows, 0 batches, 101", "1 rows, 1 batches, 101", "101 rows, 0 batches, 202"])
    }

    @Test func whileAnAnswerIsWrittenInSlicesTheStatusSaysThatTheDeviceCatchesUp() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let weir = device.weir
        let phases = Mutex<[SyncStatus.Phase]>([])
        var options = options(server, slice: 1)
        options.clock = RunClock(WaitingClock { phases.withLock { $0.append(weir.currentStatus.phase) } })
        try await weir.attach("abc", server: Device.url, options: options)
        for id in ["c", "d", "e"] { server.write("item", id, ["title": "T"]) }
        try await weir.sync()
        #expect(phases.withLock { $0.count >= 2 && $0.allSatisfy { $0 == .catchingUp } })
        #expect(weir.currentStatus.phase != .catchingUp)
        // One that is a transaction alone shows nothing in between.
        let before = phases.withLock(\.count)
        server.write("item", "f", ["title": "T"])
        try await weir.sync()
        #expect(phases.withLock(\.count) == before)
        await weir.close()
    }

    @Test(arguments: [(bytes: 100, transactions: 1), (100_000, 2), (300_000, 6)])
    func largeRowsAreWrittenInMoreTransactions(bytes: Int, transactions: Int) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let pauses = Mutex(0)
        var options = options(server)
        options.clock = RunClock(WaitingClock { pauses.withLock { $0 += 1 } })
        try await device.weir.attach("abc", server: Device.url, options: options)
        for id in 1...6 { server.write("item", "large\(id)", ["title": String(repeating: "t", count: bytes)]) }
        try await device.weir.sync()
        #expect(try device.rows("SELECT count(*) FROM item WHERE id LIKE 'large%'") == ["6"])
        // One follows each transaction but the last.
        #expect(pauses.withLock(\.self) == transactions - 1)
    }

    /// It is waited for; but an app that writes meanwhile finds the file unlocked from then on.
    @Test(arguments: [false, true]) func aFirstSyncHasPausesOnceTheAppWrites(writes: Bool) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.pageRows = 4 }
        for id in 1...12 { server.write("item", "b\(id)", ["title": "B"]) }
        let device = try await Device()
        let path = device.folder.file()
        let pages = Mutex(0)
        let pauses = Mutex<[Int]>([])
        let transport = ScriptedTransport { request, _ in
            let response = try await server.send(request)
            guard request.url.path == "/v1/pull" else { return response }
            let page = pages.withLock { pages in
                pages += 1
                return pages
            }
            // The first was of attaching, and the second may have come before anything was written.
            if writes, page == 4 {
                let app = try Database(path: path)
                defer { app.close() }
                try app.execute("INSERT INTO item VALUES ('mine', 'M', NULL)")
            }
            return response
        }
        try await device.attach(transport) { options in
            options.slice = 1
            options.clock = RunClock(WaitingClock { pauses.withLock { $0.append(pages.withLock(\.self)) } })
        }
        try await device.weir.sync()
        #expect(pages.withLock(\.self) >= 4)
        let found = Set(pauses.withLock(\.self))
        #expect(writes ? !found.isEmpty : found.isEmpty, "\(found)")
    }

    /// Between the transactions of a long answer too, in which Weir's own connection fires no triggers.
    @Test func whatTheAppWritesThroughWeirIsCapturedWhileALongAnswerIsWritten() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let weir = device.weir
        let writes = Mutex(0)
        var options = options(server)
        options.clock = RunClock(
            WaitingClock {
                let number = writes.withLock { writes in
                    writes += 1
                    return writes
                }
                _ = try await weir.write { try $0.execute("INSERT INTO item VALUES ('mine\(number)', 'M', NULL)") }
            })
        try await weir.attach("abc", server: Device.url, options: options)
        for id in 1...(3 * Applying.slice) { server.write("item", "b\(id)", ["title": "B"]) }
        try await weir.sync()
        _ = try await weir.write { try $0.execute("UPDATE item SET note = 'mine' WHERE id = 'b1'") }
        try await weir.sync()
        let mine = server.live.filter { $0.contains("mine") }
        #expect(mine.count == writes.withLock(\.self) + 1)
        #expect(writes.withLock(\.self) >= 2)
        await weir.close()
    }

    @Test func triggersOfTheAppFireForEachRowOfALongAnswer() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("CREATE TABLE seen (id)")
        try device.run("CREATE TRIGGER see AFTER INSERT ON item BEGIN INSERT INTO seen VALUES (NEW.id); END")
        let count = 3 * Applying.slice
        for id in 1...count { server.write("item", "b\(id)", ["title": "B"]) }
        try await device.weir.sync()
        #expect(try device.rows("SELECT count(DISTINCT id) FROM seen") == ["\(count)"])
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// A device with 5 rows of its own and 5 of a linked owner in each of two tables.
    private func linked(_ server: ContractServer) async throws -> Device {
        server.state.withLock { $0.links = ["friend"] }
        let device = try await Device(Self.sql, tables: ["item", "mark"])
        for id in 0..<5 {
            server.write("item", "own\(id)", ["title": "T"])
            server.write("item", "friend\(id)", ["title": "T"], owner: "friend")
            server.write("mark", "own\(id)", ["name": "N"])
            server.write("mark", "friend\(id)", ["name": "N"], owner: "friend")
        }
        try await device.attach(server)
        try await device.weir.sync()
        return device
    }

    private func edit(_ device: Device) throws {
        try device.run(
            """
            UPDATE item SET title = 'mine' WHERE id IN ('own1', 'friend1');
            UPDATE mark SET name = 'mine' WHERE id = 'friend2'
            """)
    }

    /// Kills a device before each statement of the session that removes a revoked owner's rows, and starts it again.
    ///
    /// - Parameters:
    ///   - isGrantedAgain: before the device is started again.
    ///   - token: with one, the first request is a pull, so that edits are not sent before the owner is removed.
    ///   - check: is called after the next session.
    private func killWhileAnOwnersRowsAreRemoved(
        isGrantedAgain: Bool = false, token: String? = nil,
        _ check: (_ killed: Device, _ server: ContractServer, _ comment: Comment) async throws -> Void
    ) async throws {
        func attach(_ device: Device, _ options: SyncOptions) async throws {
            if let token {
                try await device.weir.attach("abc", server: Device.url, options: options) { token }
            } else {
                try await device.weir.attach("abc", server: Device.url, options: options)
            }
        }
        let server = ContractServer(Self.tables)
        let device = try await linked(server)
        try edit(device)
        server.state.withLock { $0.links = [] }
        let states = Mutex<[ContractServer.State]>([])
        let snapshots = StatementSnapshots(path: device.folder.file()) {
            let state = server.state.withLock { $0 }
            states.withLock { $0.append(state) }
        }
        try await device.restart()
        try await attach(device, options(server, slice: 2))
        try await device.weir.sync()
        await device.weir.close()
        snapshots.stop()
        #expect(snapshots.count > 10)
        for number in 0..<snapshots.count {
            let restored = ContractServer(Self.tables)
            let state = states.withLock { $0[number] }
            restored.state.withLock {
                $0 = state
                if isGrantedAgain { $0.links = ["friend"] }
            }
            let killed = try await Device(copying: { try snapshots.write(number, to: $0) }, tables: ["item", "mark"])
            var options = options(restored, slice: 2)
            options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
            try await attach(killed, options)
            try await killed.weir.sync()
            let comment = Comment("killed at state \(number) of \(snapshots.count)")
            #expect(try await killed.weir.pendingRows() == 0, comment)
            #expect(try killed.rows("SELECT title FROM item WHERE id LIKE 'own%' ORDER BY id").count == 5, comment)
            try await check(killed, restored, comment)
        }
    }

    @Test(arguments: [false, true])
    func aDeviceThatIsKilledWhileAnOwnersRowsAreRemovedHasNoneOrAllOfThem(isGrantedAgain: Bool) async throws {
        try await killWhileAnOwnersRowsAreRemoved(isGrantedAgain: isGrantedAgain) { killed, server, comment in
            let count = isGrantedAgain ? "5" : "0"
            #expect(try killed.rows("SELECT count(*) FROM item WHERE id LIKE 'friend%'") == [count], comment)
            #expect(try killed.rows("SELECT count(*) FROM mark WHERE id LIKE 'friend%'") == [count], comment)
            // Every edit is at the server or kept.
            let kept = try await killed.weir.keptEdits().filter { $0.change.contains("mine") }.map(\.table)
            let stored = server.live.filter { $0.contains(" friend") && $0.contains("mine") }.count
            #expect(Set(kept).count + stored >= 2, comment)
        }
    }

    @Test func anOwnerThatIsRevokedAfterADeviceWasKilledAmongTheFirstOfItsRowsLeavesNone() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        server.state.withLock { $0.links = ["friend"] }
        for id in 0..<3 { server.write("item", "friend\(id)", ["title": "T"], owner: "friend") }
        try await device.attach(server) { options in
            options.slice = 1
            options.clock = RunClock(WaitingClock { withUnsafeCurrentTask { $0?.cancel() } })
        }
        let weir = device.weir
        try await Task { do { try await weir.sync() } catch is CancellationError {} }.value
        #expect(try device.rows("SELECT id FROM item WHERE id LIKE 'friend%'") == ["friend0"])
        server.state.withLock { $0.links = [] }
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -", "b B -"])
    }

    @Test func unsentEditsOfARevokedOwnerAreKeptOnceAndShownWhereverTheDeviceIsKilled() async throws {
        try await killWhileAnOwnersRowsAreRemoved(token: "t") { killed, server, comment in
            #expect(
                try killed.rows("SELECT id FROM item WHERE id LIKE 'friend%' UNION SELECT id FROM mark ORDER BY id")
                    == (0..<5).map { "own\($0)" }, comment)
            let kept = try await killed.weir.keptEdits().map { "\($0.table) \($0.key) \($0.code) \($0.local)" }
            #expect(
                kept.sorted() == [
                    "item 'friend1' revoked \(["title": SQLValue.text("mine")])",
                    "mark 'friend2' revoked \(["name": SQLValue.text("mine")])",
                ], comment)
            let status = killed.weir.currentStatus
            #expect(status.needsAttention == [.keptEdits(2)], comment)
            #expect(status.owners == [Owner(syncID: "abc", access: .write)], comment)
            #expect(!server.live.contains { $0.contains(" friend") && $0.contains("mine") }, comment)
        }
    }

    @Test func rowsOfTablesThatTheServerOrTheAppHasRetiredAreRemovedWithTheirOwner() async throws {
        let server = ContractServer(Self.tables)
        let device = try await linked(server)
        server.state.withLock { ($0.tables["mark"], $0.schemaVersion) = (nil, "s2") }
        try await device.weir.sync()
        // Edits of the one wait for its table, and those of the other until it is listed.
        try edit(device)
        await device.weir.close()
        server.state.withLock { $0.links = [] }
        let weir = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: ["mark"])
        try await weir.attach("abc", server: Device.url, options: options(server, slice: 2))
        try await weir.sync()
        #expect(try device.rows("SELECT id FROM item WHERE id LIKE 'friend%'").isEmpty)
        #expect(try device.rows("SELECT id FROM mark WHERE id LIKE 'friend%'").isEmpty)
        #expect(try device.rows("SELECT id FROM item").count == 5)
        let kept = try await weir.keptEdits()
        #expect(kept.map(\.table).sorted() == ["item", "mark"])
        #expect(kept.allSatisfy { $0.code == "revoked" && $0.change.contains("mine") })
        await weir.close()
    }

    @Test func anOwnerWhoseHistoryBeginsAgainIsPulledInSlices() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        for id in 0..<20 { server.write("item", "a\(id)", ["title": "T"]) }
        try await device.weir.attach("abc", server: Device.url, options: options(server, slice: 3))
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'mine' WHERE id = 'a3'")
        server.state.withLock { $0.changeHistory(to: "e2") }
        server.write("item", "a4", ["title": "new"])
        try await device.weir.sync()
        #expect(try device.rows().count == 20)
        let titles = try device.rows("SELECT title || ifnull(note, '') FROM item WHERE id IN ('a3', 'a4') ORDER BY id")
        #expect(titles == ["Tmine", "new"])
        #expect(try await device.weir.pendingRows() == 0)
        #expect(server.live.contains { $0.contains("mine") })
    }

    @Test(arguments: [false, true])
    func anOwnerThatIsRevokedBeforeEverythingHasComeAgainIsRemoved(hasHistoryChanged: Bool) async throws {
        let server = ContractServer(Self.tables)
        let device = try await linked(server)
        await device.weir.close()
        if hasHistoryChanged {
            try await device.restart()
            server.state.withLock { $0.changeHistory(to: "e2") }
            // Revoked after the answer that says so.
            try await device.attach(
                ScriptedTransport { request, _ in
                    defer { server.state.withLock { $0.links = [] } }
                    return try await server.send(request)
                })
        } else {
            try device.run("ALTER TABLE item ADD COLUMN more TEXT")
            server.state.withLock { $0.links = [] }
            try await device.restart()
            try await device.attach(server)
        }
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM item UNION SELECT id FROM mark") == (0..<5).map { "own\($0)" })
        #expect(try await device.weir.pendingRows() == 0)
        #expect(server.live.count == 20)
    }
}
