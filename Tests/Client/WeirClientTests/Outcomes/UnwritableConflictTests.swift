import Synchronization
import Testing
import WeirClient

/// Conflicts whose row of the server the app's table cannot have.
@Suite struct UnwritableConflictTests {
    private static let schema =
        "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)"

    /// A device with a conflict about row `a`, whose title `X` at the server its own row `c` has.
    ///
    /// - Parameter theirs: besides the title.
    private func conflicted(
        _ server: ContractServer, _ sql: String = "UPDATE item SET note = 'mine' WHERE id = 'a'",
        theirs: [String: String] = [:], isNew: Bool = false
    ) async throws -> (device: Device, edit: KeptEdit) {
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device(Self.schema)
        try await device.attach(server)
        if !isNew { try device.run("INSERT INTO item VALUES ('a', 'A', 'n')") }
        try await device.weir.sync()
        server.write("item", "a", ["title": "X"].merging(theirs) { $1 })
        try device.run("INSERT INTO item VALUES ('c', 'X', 'n'); \(sql)")
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.code == "conflict" && edit.server?["title"] == .text("X"))
        #expect(try await device.weir.parkedRows().map(\.id) == ["a"])
        return (device, edit)
    }

    private func sync(_ device: Device, _ saved: SavedChanges<Bool>) async throws -> [RowOutcome.Status] {
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
        return try await saved.outcome.map(\.status)
    }

    @Test(arguments: [Resolution.keepLocal, .merge(["note": .text("mine")])])
    func anUpdateIsStoredAndTheOtherColumnsFollowOnceTheTableCanHaveThem(resolution: Resolution) async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        #expect(try await sync(device, try await device.weir.resolve(edit, resolution)) == [.applied])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"mine","title":"X"}"#) })
        #expect(try device.rows() == ["a A mine", "c X n"])
        #expect(try await device.weir.parkedRows().map(\.id) == ["a"])
        try device.run("UPDATE item SET title = 'free' WHERE id = 'c'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a X mine", "c free n"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    /// The table has it in the older version, so that nothing of it is changed there.
    @Test func aValueIsStoredThatTheServersRowAloneDiffersFrom() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server, theirs: ["note": "theirs"])
        let saved = try await device.weir.resolve(edit, .merge(["note": .text("n")]))
        #expect(try await sync(device, saved) == [.applied])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"n","title":"X"}"#) })
        try device.run("UPDATE item SET title = 'free' WHERE id = 'c'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a X n", "c free n"])
    }

    @Test func aDeletionIsRepeated() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server, "DELETE FROM item WHERE id = 'a'")
        #expect(edit.isDeletion)
        #expect(try await sync(device, try await device.weir.resolve(edit, .keepLocal)) == [.applied])
        #expect(try device.rows() == ["c X n"])
        #expect(server.live.map { $0.prefix(6) } == ["item c"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    @Test func aDeletionIsRepeatedOfARowThatTheTableDoesNotHave() async throws {
        let server = ContractServer(Device.tables)
        // The title of the version before is taken as well.
        let (device, edit) = try await conflicted(
            server, "DELETE FROM item WHERE id = 'a'; INSERT INTO item VALUES ('d', 'A', 'n')")
        #expect(try device.rows() == ["c X n", "d A n"])
        #expect(try await sync(device, try await device.weir.resolve(edit, .keepLocal)) == [.applied])
        #expect(server.live.map { $0.prefix(6) } == ["item c", "item d"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    @Test(arguments: [Resolution.keepLocal, .merge(["note": .text("n")])])
    func anInsertionIsStoredOverTheServersRow(resolution: Resolution) async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server, "INSERT INTO item VALUES ('a', 'mine', 'n')", isNew: true)
        #expect(try await sync(device, try await device.weir.resolve(edit, resolution)) == [.applied])
        #expect(try device.rows() == ["a mine n", "c X n"])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"n","title":"mine"}"#) })
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    @Test func aVersionThatWaitsIsTheOneToDecideAbout() async throws {
        let server = ContractServer(Device.tables)
        let (device, shown) = try await conflicted(server)
        let version = server.write("item", "a", ["note": "newer"])
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.version == version && edit.server == ["title": .text("X"), "note": .text("newer")])
        #expect(edit.base == ["note": .text("n")])
        // Values that were merged with the version before meet the newer one at the server.
        let saved = try await device.weir.resolve(shown, .merge(["note": .text("merged")]))
        try await device.weir.sync()
        #expect(try await saved.outcome.map(\.status) == [.conflict])
        let next = try #require(try await device.weir.keptEdits().first)
        #expect(try await sync(device, try await device.weir.resolve(next, .keepLocal)) == [.applied])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"merged","title":"X"}"#) })
    }

    /// What the app has written is based on the version that the table has.
    @Test func aChangeThatTheAppHasMadeSinceIsNotBasedOnTheVersionThatWaits() async throws {
        let server = ContractServer(Device.tables)
        let (device, edit) = try await conflicted(server)
        try device.run("UPDATE item SET title = 'newer' WHERE id = 'a'")
        let saved = try await device.weir.resolve(edit, .keepLocal)
        try await device.weir.sync()
        #expect(try await saved.outcome.map(\.status) == [.conflict])
        let both = try #require(try await device.weir.keptEdits().first)
        #expect(both.local == ["title": .text("newer"), "note": .text("mine")])
        #expect(try await sync(device, try await device.weir.resolve(both, .keepLocal)) == [.applied])
        #expect(try device.rows() == ["a newer mine", "c X n"])
    }

    @Test func aResolverDecidesWithinOneSync() async throws {
        let server = ContractServer(Device.tables)
        let (device, _) = try await conflicted(server)
        // A session without end ends there.
        server.state.withLock { $0.requestsLeft = 100 }
        try await device.weir.setResolver(.mergeColumns, for: "item")
        await device.weir.finishResolving()
        try await device.weir.sync()
        await device.weir.finishResolving()
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"mine","title":"X"}"#) })
    }
}
