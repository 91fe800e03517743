import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// What a device does when the server does not go on from where it was.
@Suite struct RecoveryTests {
    @Test func afterAnotherHistoryEverythingIsPulledAndPendingEditsAreSentAgain() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET note = 'edited' WHERE id = 'a'; INSERT INTO item VALUES ('c', 'C', NULL)")
        server.state.withLock { $0.changeHistory(to: "e2") }
        server.write("item", "d", ["title": "D"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a A edited", "b B -", "c C -", "d D -"])
        #expect(server.live.count == 4)
        #expect(server.live.contains { $0.hasPrefix("item a") && $0.contains("edited") })
        #expect(try await device.weir.pendingRows() == 0)
        // A frozen batch, too, whose epoch is the old one.
        let transport = FaultyTransport(server, .lostRequest, at: 1)
        try await device.attach(transport)
        try device.run("UPDATE item SET note = 'again' WHERE id = 'b'")
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'frozen' WHERE id = 'b'")
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        server.state.withLock { $0.changeHistory(to: "e3") }
        try await device.weir.sync()
        #expect(server.live.contains { $0.hasPrefix("item b") && $0.contains("frozen") })
        #expect(try await device.weir.pendingRows() == 0)
        let fresh = try await Device()
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.rows() == device.rows())
        #expect(try fresh.states() == device.states())
    }

    /// They are the app's alone, since the server reserves some of these names.
    @Test func aTableWhoseColumnsAreNamedAsThoseOfWeirsTablesIsPulledAgain() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.links = ["xyz"] }
        let columns = "deleted INTEGER DEFAULT 1, time_stamp INTEGER, owner TEXT"
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT, \(columns))")
        server.write("item", "t", ["title": "T"], owner: "xyz")
        try await device.attach(server)
        try await device.weir.sync()
        server.state.withLock { $0.changeHistory(to: "e2", losing: ["item t"]) }
        try device.run("INSERT INTO item (id, title) VALUES ('a', 'A')")
        try await device.weir.sync()
        #expect(server.live.map { $0.prefix(6) } == ["item a", "item t"])
        #expect(server.state.withLock { $0.rows["item t"]?.owner } == "xyz")
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func anEditIsNotBasedOnAVersionOfAnotherHistory() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device.synced(server)
        server.write("item", "a", ["title": "theirs"])
        try await device.pull(server, beneath: "UPDATE item SET note = 'mine' WHERE id = 'a'")
        server.state.withLock { $0.changeHistory(to: "e2") }
        try await device.weir.sync()
        #expect(server.live.first == #"item a {"note":"mine","title":"theirs"} 3"#)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func anEditThatIsMadeWhileAHistoryBeginsAgainIsBasedOnThatHistory() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device.synced(server)
        server.write("item", "a", ["title": "theirs"])
        try await device.weir.sync()
        server.state.withLock { $0.changeHistory(to: "e2") }
        try await device.attach(device.network(server, writing: "UPDATE item SET note = 'mine' WHERE id = 'a'"))
        try await device.weir.sync()
        #expect(server.live.first == #"item a {"note":"mine","title":"theirs"} 3"#)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func aBatchWhoseOutcomeIsNoLongerKnownIsNotAppliedTwice() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        for isApplied in [true, false] {
            let applied = server.state.withLock { $0.applied }
            try device.run("UPDATE item SET note = 'once \(isApplied)' WHERE id = 'a'")
            let transport = FaultyTransport(server, isApplied ? .lostAnswer : .lostRequest, at: 0)
            try await device.attach(transport)
            await #expect(throws: SyncError.self) { try await device.weir.sync() }
            server.state.withLock { $0.refusal = "outcome_expired" }
            try await device.weir.sync()
            #expect(server.state.withLock { $0.applied } == applied + 1)
            #expect(server.live.contains { $0.hasPrefix("item a") && $0.contains("once \(isApplied)") })
            #expect(try await device.weir.pendingRows() == 0)
        }
    }

    @Test func aRowThatTheServerHasLostIsDeletedWhereTheAppHasDeletedIt() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        server.state.withLock { $0.changeHistory(to: "e1", losing: ["item a"]) }
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try device.rows() == ["b B -"])
        #expect(try await device.weir.pendingRows() == 0)
        #expect(server.live.map { $0.prefix(6) } == ["item b"])
    }

    /// It must pull before it decides what to send, also if it is killed in between.
    @Test func afterAnOutcomeThatIsNotKnownNothingIsFrozenBeforeAllIsPulled() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET note = 'mine' WHERE id = 'a'")
        let transport = FaultyTransport(server, .lostAnswer, at: 0)
        try await device.attach(transport)
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        // It was applied, and another device has changed it since.
        server.write("item", "a", ["note": "newer"])
        for id in 0..<20 { server.write("item", "\(id)", ["title": "t"]) }
        server.state.withLock { ($0.refusal, $0.pageRows) = ("outcome_expired", 4) }
        let batches = { server.requests.filter { $0.url.path == "/v1/sync" }.count }
        let sent = batches()
        let stopping = FaultyTransport(server, .lostRequest, at: 2)
        try await device.attach(stopping)
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try await device.weir.pendingRows() == 0)
        let requests = server.requests.map(\.url.path)
        let again = try #require(requests.indices.filter { requests[$0] == "/v1/sync" }.dropFirst(sent).first)
        // After the refusal come pulls alone, to the end.
        #expect(requests[(again + 1)...].prefix(4).allSatisfy { $0 == "/v1/pull" }, "\(requests[again...])")
    }

    @Test func aCopyOfAFileBecomesAnotherDevice() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let copy = try await Device()
        await copy.weir.close()
        let path = copy.folder.file()
        try FileManager.default.removeItem(atPath: path)
        try device.run("VACUUM INTO '\(path)'")
        for (app, note) in [(device, "first"), (copy, "second")] {
            if app === copy {
                try await app.restart()
                try await app.attach(server)
            }
            let database = try Database(path: app.folder.file())
            try database.run("UPDATE item SET note = '\(note)' WHERE id = '\(note == "first" ? "a" : "b")'")
            database.close()
            let before = server.requests.count
            try await app.weir.sync()
            #expect(server.requests[before...].allSatisfy { $0.continuesFromAVector })
            #expect(try await app.weir.pendingRows() == 0)
        }
        #expect(server.live.contains { $0.hasPrefix("item a") && $0.contains("first") })
        #expect(server.live.contains { $0.hasPrefix("item b") && $0.contains("second") })
        let devices = server.requests.filter { $0.url.path == "/v1/sync" }.map {
            String(decoding: $0.body, as: UTF8.self).prefix { $0 != "," }
        }
        #expect(Set(devices).count == 2)
    }

    /// With a token the first request is a pull, under the name that both have.
    @Test func aCopyTakesNoVersionOfTheOriginalForItsOwn() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device.synced(server)
        let path = device.folder.file() + ".copy"
        try device.run("VACUUM INTO '\(path)'")
        try device.run("UPDATE item SET title = 'original' WHERE id = 'a'")
        try await device.weir.sync()
        let copy = try await Device(copying: { try FileManager.default.moveItem(atPath: path, toPath: $0) })
        try copy.run("UPDATE item SET title = 'copy' WHERE id = 'a'")
        try await copy.weir.attach("abc", server: Device.url, options: Device.options(server)) { "t" }
        try await copy.weir.sync()
        #expect(try copy.rows() == ["a original -", "b B -"])
        #expect(try await copy.weir.keptEdits().map(\.code) == ["conflict"])
        #expect(server.live.first == #"item a {"note":null,"title":"original"} 2"#)
    }

    /// The server has seen its next numbers, and keeps the outcomes of the last sixteen of them.
    @Test(arguments: [1, 10, 40]) func aFileThatWasRestoredFromABackupBecomesAnotherDeviceAtOnce(
        batches: Int
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let backup = device.folder.file() + ".backup"
        try device.run("VACUUM INTO '\(backup)'")
        for number in 0..<batches {
            try device.run("UPDATE item SET note = 'n\(number)' WHERE id = 'a'")
            try await device.weir.sync()
        }
        let restored = try await Device(copying: { try FileManager.default.moveItem(atPath: backup, toPath: $0) })
        try restored.run(
            "UPDATE item SET title = 'restored' WHERE id = 'b'; INSERT INTO item VALUES ('c', 'C', NULL)")
        let count = server.requests.count
        try await restored.attach(server)
        try await restored.weir.sync()
        #expect(try restored.rows() == ["a A n\(batches - 1)", "b restored -", "c C -"])
        #expect(server.live.count == 3 && server.live[1].contains("restored"))
        #expect(try await restored.weir.pendingRows() == 0)
        #expect(try await restored.weir.keptEdits().isEmpty)
        // The first batch is refused, whatever the reason, and the second one is another device's.
        let requests = server.requests[count...].filter { $0.url.path == "/v1/sync" }
        let devices = requests.map { String(decoding: $0.body, as: UTF8.self).prefix { $0 != "," } }
        #expect(devices.count == 2 && Set(devices).count == 2)
    }

    /// A request may be answered after another process has had the outcome of its batch, and has sent many more.
    @Test func aRefusalOfABatchThatHasItsOutcomeChangesNothing() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let other = try await device.otherWeir()
        // It finds that the lease has run out.
        var options = Device.options(server)
        options.now = { Date(timeIntervalSinceNow: 2 * Lease.duration) }
        try await other.attach("abc", server: Device.url, options: options)
        try device.run("UPDATE item SET note = 'first' WHERE id = 'a'")
        let path = device.folder.file()
        let transport = ScriptedTransport { request, number in
            guard number == 0 else { return try await server.send(request) }
            let database = try Database(path: path)
            for count in 0..<20 {
                try await other.sync()
                try database.run("UPDATE item SET note = 'n\(count)' WHERE id = 'a'")
            }
            try await other.sync()
            database.close()
            return try await server.send(request)
        }
        var patient = Device.options(transport)
        patient.now = { Date(timeIntervalSinceNow: 4 * Lease.duration) }
        try await device.weir.attach("abc", server: Device.url, options: patient)
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'last' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(server.live.first?.contains("last") == true)
        let devices = server.requests.filter { $0.url.path == "/v1/sync" }
            .map { String(decoding: $0.body, as: UTF8.self).prefix { $0 != "," } }
        #expect(devices.count > 20 && Set(devices).count == 1)
        await other.close()
    }

    @Test func rowsOfConflictsThatComeInPagesAreAllFetched() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { ($0.policy, $0.shownRows) = ("checkBase", 2) }
        let device = try await Device()
        try await device.attach(server)
        let ids = (0..<7).map { "r\($0)" }
        for id in ids { try device.run("INSERT INTO item VALUES ('\(id)', 'old', NULL)") }
        try await device.weir.sync()
        for id in ids { server.write("item", id, ["title": "theirs"]) }
        try device.run("UPDATE item SET title = 'mine'")
        try await device.weir.sync()
        #expect(server.live.count == 7 && server.live.allSatisfy { $0.contains("theirs") })
        let pages = server.requests.filter { $0.url.path.hasPrefix("/v1/batches/") }
        #expect(pages.map { $0.url.query?.split(separator: "=").last } == ["2", "4", "6"])
        try await device.weir.sync()
        #expect(try device.states().map { $0.split(separator: " ")[1] } == (108...114).map { "\($0)" })
    }

    @Test func aNewSchemaOfTheServerIsFetchedBeforeAnythingElseIsSent() async throws {
        let server = ContractServer(["item": ["title": "text"]])
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'kept here')")
        try await device.weir.sync()
        #expect(server.live == [#"item a {"title":"A"} 1"#])
        server.state.withLock { ($0.schemaVersion, $0.tables) = ("s2", Device.tables) }
        // The server's new version is known from its next answer.
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'sent'")
        try await device.weir.sync()
        #expect(server.live == [#"item a {"note":"sent","title":"A"} 3"#])
        #expect(server.requests.filter { $0.url.path == "/v1/schema" }.count == 2)
    }

    @Test func aBatchThatTheServerFindsTooLargeIsSentInParts() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        for id in 0..<40 {
            try device.run("INSERT INTO item VALUES ('\(id)', '\(String(repeating: "t", count: 10_000))', NULL)")
        }
        let transport = FaultyTransport(server, .lostAnswer, at: 0)
        try await device.attach(transport)
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        // Its limit is lowered while a batch is without outcome, which was applied.
        server.state.withLock { $0.maxBatchBytes = 200_000 }
        try await device.weir.sync()
        #expect(try await device.weir.pendingRows() == 0)
        #expect(server.live.count == 40)
        #expect(server.live.allSatisfy { $0.hasSuffix(" 1") })
        try device.run("UPDATE item SET note = 'n', title = title || 'x'")
        try await device.weir.sync()
        #expect(server.live.allSatisfy { $0.hasSuffix(" 2") })
    }

    /// A proxy has a limit of its own, of which the server's schema says nothing.
    @Test func whatAProxyFindsTooLargeIsSentInPartsAndARowThatIsTooLargeAloneIsReported() async throws {
        let server = ContractServer(Device.tables)
        let proxy = ScriptedTransport { request, _ in
            if request.body.count <= 30_000 { return try await server.send(request) }
            return TransportResponse(status: 413, headers: ["content-type": "text/html"], body: Array("<html>".utf8))
        }
        func refused() -> Int { proxy.requests.filter { $0.body.count > 30_000 }.count }
        let device = try await Device()
        try await device.attach(proxy)
        try await device.weir.sync()
        let insertion = "INSERT INTO item SELECT value, hex(zeroblob(5000)), NULL FROM json_each(?1)"
        try device.database.run(insertion, [.text("[\((10..<50).map { "\"\($0)\"" }.joined(separator: ","))]")])
        try device.run("INSERT INTO item VALUES ('20 large', hex(zeroblob(20000)), NULL)")
        try await device.weir.sync()
        #expect(server.live.count == 40)
        #expect(try await device.weir.pendingRows() == 1)
        #expect(device.weir.currentStatus.needsAttention == [.unsendableRows(1)])
        // Half of 400 KB, again, and so on; then the row alone.
        let first = refused()
        #expect(first <= 6)
        // It is not tried with each of the app's changes.
        try device.run("INSERT INTO item VALUES ('new', 'N', NULL)")
        try await device.weir.sync()
        #expect(server.live.count == 41)
        #expect(refused() == first)
        // A new start tries it again.
        try await device.restart()
        try await device.attach(proxy)
        try await device.weir.sync()
        #expect(refused() == first + 1)
        #expect(device.weir.currentStatus.needsAttention == [.unsendableRows(1)])
        try device.run("UPDATE item SET title = 'short' WHERE id = '20 large'")
        try await device.weir.sync()
        #expect(server.live.count == 42)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(device.weir.currentStatus.needsAttention == [])
    }

    /// Neither a batch that the server refuses as a whole nor an outcome that cannot be recorded follows.
    @Test(arguments: ["'[1,]'", "replace(hex(zeroblob(100)), '0', '[') || replace(hex(zeroblob(100)), '0', ']')"])
    func jsonThatTheServerDoesNotTakeBlocksNothing(value: String) async throws {
        let server = ContractServer(["item": ["title": "json", "note": "text"]])
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('bad', \(value), NULL), ('good', '[1]', NULL)")
        server.write("item", "theirs", ["note": "theirs"])
        try await device.weir.sync()
        #expect(server.live.map { $0.prefix(9) } == ["item good", "item thei"])
        #expect(try device.rows("SELECT note FROM item WHERE id = 'theirs'") == ["theirs"])
        #expect(device.weir.currentStatus.needsAttention == [.unsendableRows(1)])
        try device.run("UPDATE item SET title = '[]' WHERE id = 'bad'")
        try await device.weir.sync()
        #expect(server.live.count == 3)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(device.weir.currentStatus.needsAttention == [])
    }
}
