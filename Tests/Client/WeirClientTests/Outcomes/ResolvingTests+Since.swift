import Foundation
import Synchronization
import Testing
import WeirClient

/// What the app has written, and what has come, since a change was kept.
extension ResolvingTests {
    @Test func whatWasDecidedOnAnOlderVersionIsAnotherConflict() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        let version = server.write("item", "a", ["title": "newest"])
        try await device.weir.sync()
        let saved = try await device.weir.resolve(edit, .merge(["title": .text("mine and theirs")]))
        #expect(try await outcome(saved, device) == [.conflict])
        let next = try #require(try await device.weir.keptEdits().first)
        #expect(next.number > edit.number && next.version == version)
        #expect(next.base == ["title": .text("theirs")] && next.server?["title"] == .text("newest"))
        let last = try await device.weir.resolve(next, .merge(["title": .text("all three")]))
        #expect(try await outcome(last, device) == [.applied])
    }

    @Test func aRowThatIsDeletedMeanwhileIsInsertedAgainOrStaysDeleted() async throws {
        for resolution in [Resolution.keepLocal, .acceptServer, .merge([:])] {
            let server = ContractServer(Device.tables)
            let (device, shown) = try await conflicted(server)
            server.write("item", "a", nil)
            try await device.weir.sync()
            #expect(try device.rows() == ["b B n"])
            let edit = try #require(try await device.weir.keptEdits().first)
            #expect(edit.server == nil && edit.version != nil && shown.server != nil)
            let saved = try await device.weir.resolve(edit, resolution)
            let found = try await outcome(saved, device)
            #expect(found == (resolution == .acceptServer ? [] : [.applied]), "\(resolution)")
            let rows = resolution == .acceptServer ? ["b B n"] : ["a mine n", "b B n"]
            #expect(try device.rows() == rows, "\(resolution)")
            #expect(server.live.count == rows.count)
            // A merge with a row that was not seen deleted follows the policy.
            #expect(try await device.weir.keptEdits().isEmpty)
        }
    }

    @Test func aLaterChangeOfAnotherColumnDecidesNothing() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        try device.run("UPDATE item SET note = 'later' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.number) == [edit.number])
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.conflictLog().map(\.ending) == [.sentAgain])
    }

    @Test(arguments: [Resolution.keepLocal, .merge(["title": .text("both"), "note": .text("merged")])])
    func whatTheAppHasWrittenSinceIsNotReplaced(resolution: Resolution) async throws {
        for sql in [
            "UPDATE item SET title = 'newer' WHERE id = 'a'",
            "DELETE FROM item WHERE id = 'a'; INSERT INTO item VALUES ('a', 'newer', 'n')",
            "DELETE FROM item WHERE id = 'a'",
        ] {
            let server = ContractServer(Device.tables)
            let (device, edit) = try await conflicted(server)
            try device.run(sql)
            let row = try device.rows().first { $0.hasPrefix("a newer ") }
            let saved = try await device.weir.resolve(edit, resolution)
            #expect(saved.value)
            let isUpdate = sql.hasPrefix("UPDATE")
            let note = isUpdate && resolution != .keepLocal ? "merged" : "n"
            #expect(try device.rows() == (row == nil ? [] : ["a newer \(note)"]) + ["b B n"])
            try await device.weir.sync()
            #expect(try device.rows() == (row == nil ? [] : ["a newer \(note)"]) + ["b B n"])
            #expect(server.live.count == (row == nil ? 1 : 2))
        }
    }

    @Test func aDeletionIsNotRepeatedOnceTheAppHasWrittenTheRowAgain() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server, "DELETE FROM item WHERE id = 'a'")
        try device.run("UPDATE item SET note = 'newer' WHERE id = 'a'")
        try await device.weir.resolve(edit, .keepLocal)
        #expect(try await device.weir.pendingRows() == 1)
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs newer", "b B n"])
    }

    @Test func ofTwoChangesOfARowTheLaterOneIsNotReplacedByTheEarlierOne() async throws {
        for order in [[0, 1], [1, 0]] {
            let server = ContractServer(Device.tables)
            let (device, _) = try await conflicted(server)
            server.write("item", "a", ["title": "theirs again"])
            try device.run("UPDATE item SET title = 'second' WHERE id = 'a'")
            try await device.weir.sync()
            let edits = try await device.weir.keptEdits()
            try #require(edits.map(\.local) == [["title": .text("mine")], ["title": .text("second")]])
            for index in order { try await device.weir.resolve(edits[index], .keepLocal) }
            #expect(try device.rows() == ["a second n", "b B n"])
            try await device.weir.sync()
            #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"n","title":"second"}"#) })
            #expect(try await device.weir.keptEdits().isEmpty)
        }
    }

    /// What the server has is not known between the answer that says so and the end of the pull.
    @Test(arguments: [true, false]) func aRowWhoseVersionWasForgottenIsNotRemovedAsOneThatTheServerDoesNotHave(
        isLost: Bool
    ) async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        server.state.withLock { $0.changeHistory(to: "e2", losing: isLost ? ["item a"] : []) }
        let pulls = Counter()
        let transport = ScriptedTransport { request, _ in
            if request.url.path == "/v1/pull", pulls.next() > 1 { throw ScriptedTransport.Lost() }
            return try await server.send(request)
        }
        try await device.attach(transport)
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        let saved = try await device.weir.resolve(edit, .acceptServer)
        #expect(saved.value && saved.rows.isEmpty)
        #expect(try device.rows() == ["a theirs n", "b B n"])
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs n", "b B n"])
        #expect(server.live.count == 2)
        #expect(try await device.weir.conflictLog().map(\.ending) == [.acceptedServer])
    }
}
