import Foundation
import Synchronization
import Testing
import WeirClient

/// What can be done about changes that were not stored.
@Suite struct ResolvingTests {
    /// A device whose title of row `a` is in conflict with `theirs`.
    func conflicted(
        _ server: ContractServer, _ sql: String = "UPDATE item SET title = 'mine' WHERE id = 'a'",
        theirs: [String: String]? = ["title": "theirs"], schema: String = Device.schema
    ) async throws -> (device: Device, edit: KeptEdit) {
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device(schema)
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n')")
        try await device.weir.sync()
        server.write("item", "a", theirs)
        try device.run(sql)
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.code == "conflict")
        return (device, edit)
    }

    func outcome(_ saved: SavedChanges<Bool>, _ device: Device) async throws -> [RowOutcome.Status] {
        try await device.weir.sync()
        return try await saved.outcome.map(\.status)
    }

    @Test func whatWaitsForADecisionIsShownAfterANewStart() async throws {
        let (device, edit) = try await conflicted(ContractServer(Device.tables))
        #expect(device.weir.currentStatus.needsAttention == [.keptEdits(1)])
        try await device.restart()
        // Without a network.
        try await device.attach(ScriptedTransport { _, _ in throw ScriptedTransport.Lost() })
        #expect(device.weir.currentStatus.needsAttention == [.keptEdits(1)])
        try await device.weir.resolve(edit, .acceptServer)
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
    }

    @Test func theAppsValuesAreWrittenOverTheServersVersion() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        // Both sides have changed the row since.
        server.write("item", "a", ["note": "newer", "title": "newest"])
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().first?.server?["title"] == .text("newest"))
        try await device.restart()
        try await device.attach(server)
        let saved = try await device.weir.resolve(edit, .keepLocal)
        #expect(saved.value && device.weir.currentStatus.needsAttention.isEmpty)
        #expect(try device.rows() == ["a mine newer", "b B n"])
        #expect(try await outcome(saved, device) == [.applied])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"newer","title":"mine"}"#) })
        // Once.
        let again = try await device.weir.resolve(edit, .acceptServer)
        #expect(!again.value && again.rows.isEmpty)
        let log = try await device.weir.conflictLog()
        #expect(log.map(\.ending) == [.keptLocal] && log[0].server?["title"] == .text("theirs"))
    }

    @Test func theServersRowIsThatOfTheNewHistory() async throws {
        let server = ContractServer(Device.tables)
        let (device, old) = try await conflicted(server)
        server.state.withLock { $0.changeHistory(to: "e2") }
        server.write("item", "a", ["title": "newest"])
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(try #require(edit.version) < old.version ?? 0)
        #expect(edit.server?["title"] == .text("newest"))
        let saved = try await device.weir.resolve(edit, .keepLocal)
        #expect(try await outcome(saved, device) == [.applied])
        #expect(try device.rows() == ["a mine n", "b B n"])
    }

    @Test func theServersRowStays() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        try device.run("UPDATE item SET note = 'later' WHERE id = 'a'")
        #expect(try await device.weir.keptEdits().first?.server?["note"] == .text("n"))
        let saved = try await device.weir.resolve(edit, .acceptServer)
        #expect(saved.value && saved.rows.isEmpty)
        // What was written since is another change.
        #expect(try device.rows() == ["a theirs later", "b B n"])
        try await device.weir.sync()
        #expect(server.live.contains { $0.contains(#"{"note":"later","title":"theirs"}"#) })
        #expect(try await device.weir.conflictLog().map(\.ending) == [.acceptedServer])
    }

    @Test func aDecisionForWhichAnExpressionOfTheTableFailsSaysSoAndLeavesTheChange() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(
            server,
            schema: Device.schema
                + "; CREATE INDEX i ON item (json_extract(CASE title WHEN 'bad' THEN title ELSE '{}' END, '$.a'))")
        await #expect(throws: WeirError.taken(reason: "malformed JSON")) {
            try await device.weir.resolve(edit, .merge(["title": .text("bad")]))
        }
        #expect(try await device.weir.keptEdits() == [edit])
        #expect(try device.rows() == ["a theirs n", "b B n"])
    }

    @Test func mergedValuesAreWritten() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        let saved = try await device.weir.resolve(edit, .merge(["title": .text("both")]))
        #expect(try await outcome(saved, device) == [.applied])
        #expect(try device.rows() == ["a both n", "b B n"])
        #expect(try await device.weir.conflictLog().map(\.ending) == [.merged])
    }

    @Test func anUpdateOfARowThatWasDeletedBeforeIsInsertedWithAllItsValues() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server, theirs: nil)
        #expect(edit.server == nil && edit.local == ["title": .text("mine")])
        #expect(try device.rows() == ["b B n"])
        let saved = try await device.weir.resolve(edit, .keepLocal)
        #expect(try await outcome(saved, device) == [.applied])
        #expect(try device.rows() == ["a mine n", "b B n"])
    }

    @Test func aDeletionOfAChangedRowIsRepeatedOrNot() async throws {
        for resolution in [Resolution.keepLocal, .acceptServer, .merge(["note": .text("kept")])] {
            let server = ContractServer(Device.tables)
            let (device, edit) = try await conflicted(server, "DELETE FROM item WHERE id = 'a'")
            #expect(edit.isDeletion && edit.local.isEmpty)
            #expect(edit.base == ["title": .text("A"), "note": .text("n")])
            #expect(try device.rows() == ["a theirs n", "b B n"])
            let saved = try await device.weir.resolve(edit, resolution)
            _ = try await outcome(saved, device)
            let rows: [String] =
                switch resolution {
                case .keepLocal: ["b B n"]
                case .acceptServer: ["a theirs n", "b B n"]
                case .merge: ["a theirs kept", "b B n"]
                }
            #expect(try device.rows() == rows)
            #expect(server.live.count == rows.count)
        }
    }

    @Test func aRefusedCreationIsSentAgainRemovedOrCorrected() async throws {
        for way in ["keepLocal", "acceptServer", "edit", "merge"] {
            let server = ContractServer(Device.tables)
            server.state.withLock { $0.refusedText = "bad" }
            let device = try await Device()
            try await device.attach(server)
            try device.run("INSERT INTO item VALUES ('a', 'bad', 'n'), ('b', 'B', 'n')")
            try await device.weir.sync()
            #expect(try device.rows() == ["a bad n", "b B n"])
            #expect(server.live.count == 1)
            let edit = try #require(try await device.weir.keptEdits().first)
            #expect(edit.server == nil && edit.version == nil && edit.code == "value_too_large")
            switch way {
            case "keepLocal":
                server.state.withLock { $0.refusedText = nil }
                let saved = try await device.weir.resolve(edit, .keepLocal)
                #expect(try await outcome(saved, device) == [.applied])
                #expect(try device.rows() == ["a bad n", "b B n"])
            case "acceptServer":
                #expect(try await device.weir.resolve(edit, .acceptServer).rows.isEmpty)
                #expect(try device.rows() == ["b B n"])
            case "merge":
                let saved = try await device.weir.resolve(edit, .merge(["title": .text("good")]))
                #expect(try await outcome(saved, device) == [.applied])
                #expect(try device.rows() == ["a good n", "b B n"])
            default:
                try device.run("UPDATE item SET title = 'good' WHERE id = 'a'")
                try await device.weir.sync()
                #expect(try await device.weir.conflictLog().map(\.ending) == [.sentAgain])
            }
            try await device.weir.sync()
            #expect(try await device.weir.keptEdits().isEmpty, "\(way)")
            #expect(try await device.weir.pendingRows() == 0)
            #expect(try device.rows().count == server.live.count, "\(way)")
        }
    }

    @Test func aDecisionForValuesThatTheTableCannotHaveIsNotCarriedOut() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(
            server, schema: "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)")
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'b'")
        await #expect(throws: WeirError.self) { try await device.weir.resolve(edit, .keepLocal) }
        #expect(try device.rows() == ["a theirs n", "b mine n"])
        #expect(try await device.weir.keptEdits().count == 1)
        let saved = try await device.weir.resolve(edit, .merge(["title": .text("mine too")]))
        #expect(try await outcome(saved, device).count == 1)
        #expect(try device.rows() == ["a mine too n", "b mine n"])
    }

    /// The rule that the base is what the app had seen, also where another version was pulled beneath the edit.
    @Test func theBaseIsWhatTheAppHadSeen() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n')")
        try await device.weir.sync()
        for title in ["second", "third"] {
            server.write("item", "a", ["title": title])
            try await device.pull(server, beneath: "UPDATE item SET title = 'mine'")
        }
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.base == ["title": .text("A")] && edit.server?["title"] == .text("third"))
    }

    @Test func valuesAreSpelledAsTheAppSpellsThem() async throws {
        let server = ContractServer(["item": ["title": "uuid", "note": "timestamp"]])
        let uuids = (1...3).map { "0a112233-4455-6677-8899-aabbccddee0\($0)" }
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title BLOB, note DATETIME)")
        server.state.withLock { $0.policy = "checkBase" }
        try await device.attach(server)
        try device.run(
            "INSERT INTO item VALUES ('a', x'0a112233445566778899aabbccddee01', '2026-01-02 03:04:05.678')")
        try await device.weir.sync()
        server.write("item", "a", ["title": uuids[1], "note": "2026-02-03T04:05:06.000000Z"])
        try device.run("UPDATE item SET title = x'0a112233445566778899aabbccddee03', note = '2026-03-04 05:06:07.800'")
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        func blob(_ last: UInt8) -> SQLValue {
            .blob([0x0A, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, last])
        }
        #expect(edit.base == ["title": blob(1), "note": .text("2026-01-02 03:04:05.678")])
        #expect(edit.local == ["title": blob(3), "note": .text("2026-03-04 05:06:07.800")])
        #expect(edit.server == ["title": blob(2), "note": .text("2026-02-03 04:05:06.000")])
        try await device.weir.resolve(edit, .keepLocal)
        #expect(try device.rows("SELECT note FROM item") == ["2026-03-04 05:06:07.800"])
    }

    @Test func aRowWhoseNewKeyIsTakenIsDecidedAboutUnderBothKeys() async throws {
        let server = ContractServer(Device.tables)
        let (device, _) = try await conflicted(server)
        try await device.weir.removeKeptEdits(through: .max)
        server.write("item", "z", ["title": "theirs", "note": "t"])
        let saved = try await device.weir.write {
            try $0.execute("UPDATE item SET id = 'z', title = 'moved' WHERE id = 'b'")
        }
        try await device.weir.sync()
        #expect(
            try await saved.outcome.map { "\($0.row.key) \($0.status)" }.sorted() == ["'b' refused", "'z' conflict"])
        #expect(try device.rows() == ["a theirs n", "b B n", "z theirs t"])
        for edit in try await device.weir.keptEdits() { try await device.weir.resolve(edit, .keepLocal) }
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs n", "z moved n"])
        #expect(server.live.count == 2)
    }

    @Test func theLogIsBoundedAndCanBeCleared() async throws {
        let server = ContractServer(Device.tables)
        let (device, first) = try await conflicted(server)
        try await device.weir.resolve(first, .acceptServer)
        var options = Device.options(server)
        options.conflictLog = ConflictLogLimit(edits: 3)
        try await device.weir.attach("abc", server: Device.url, options: options)
        for number in 0..<5 {
            server.write("item", "a", ["title": "theirs \(number)"])
            try device.run("UPDATE item SET title = 'mine \(number)' WHERE id = 'a'")
            try await device.weir.sync()
            let open = try #require(try await device.weir.keptEdits().last)
            if number > 0 { try await device.weir.resolve(open, .acceptServer) }
        }
        let log = try await device.weir.conflictLog()
        #expect(log.map { $0.local["title"]?.string } == ["mine 4", "mine 3", "mine 2"])
        #expect(try await device.weir.conflictLog(limit: 1).count == 1)
        options.conflictLog = ConflictLogLimit(bytes: 400)
        try await device.weir.attach("abc", server: Device.url, options: options)
        try device.run("INSERT INTO item VALUES ('x', 'X', NULL)")
        try await device.weir.sync()
        #expect(try await device.weir.conflictLog().count == 1)
        try await device.weir.clearConflictLog()
        #expect(try await device.weir.conflictLog().isEmpty)
        // What nobody has decided about stays, and its number is not given again.
        let open = try await device.weir.keptEdits()
        #expect(open.count == 1)
        try await device.weir.removeKeptEdits(through: .max)
        #expect(try await device.weir.conflictLog().map(\.ending) == [.removed])
        try await device.weir.clearConflictLog()
        server.write("item", "a", ["title": "theirs"])
        try device.run("UPDATE item SET title = 'last' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try #require(try await device.weir.keptEdits().first).number > log[0].number)
    }

    @Test func keptChangesAreObserved() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        var updates = device.weir.keptEditUpdates.makeAsyncIterator()
        #expect(try await updates.next() == [])
        server.state.withLock { $0.refusedText = "bad" }
        try device.run("INSERT INTO item VALUES ('a', 'bad', 'n')")
        try await device.weir.sync()
        let open = try #require(try await updates.next())
        #expect(open.count == 1)
        try await device.weir.resolve(open[0], .acceptServer)
        #expect(try await updates.next() == [])
        await device.weir.close()
        #expect(try await updates.next() == nil)
    }
}
