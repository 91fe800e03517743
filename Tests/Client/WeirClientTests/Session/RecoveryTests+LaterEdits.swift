import Synchronization
import Testing
import WeirClient

/// Edits of rows that are in a batch whose outcome is not known.
extension RecoveryTests {
    @Test func anEditThatWasTakenBackWhileItWasBeingSentIsNotSentAgain() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET title = 'other' WHERE id = 'a'")
        try await device.sync(with: server, losing: .lostRequest)
        try device.run("UPDATE item SET title = 'A' WHERE id = 'a'")
        let applied = server.state.withLock { state in
            state.refusal = "outcome_expired"
            return state.applied
        }
        try await device.weir.sync()
        #expect(server.state.withLock { $0.applied } == applied)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try device.rows().first == "a A -")
    }

    /// The value is the server's, but the batch that is applied after the pull sets another one.
    @Test func aValueThatIsSetBackWhileItIsBeingSentIsSentAfterAPullOfTheRow() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET note = 'n' WHERE id = 'a'")
        try await device.sync(with: server, losing: .lostRequest)
        try device.run("UPDATE item SET note = NULL WHERE id = 'a'")
        server.write("item", "a", ["title": "B"])
        try await device.pull(server)
        #expect(try device.rows().first == "a B -")
        try await device.weir.sync()
        #expect(try device.rows().first == "a B -")
        #expect(server.live.first == #"item a {"note":null,"title":"B"} 4"#)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aDeletionThatFollowsABatchIsTakenBackToWhatTheServerHas() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'")
        try await device.sync(with: server, losing: .lostAnswer)
        try device.run("DELETE FROM item WHERE id = 'a'")
        server.write("item", "a", ["title": "theirs"])
        try await device.pull(server)
        // The outcome of the batch comes, and the deletion is not sent yet.
        try await device.pull(server, beneath: "SELECT 1")
        #expect(try device.rows() == ["b B -"])
        #expect(try await device.weir.discard("item", .text("a")))
        #expect(try device.rows() == ["a theirs -", "b B -"])
        try await device.weir.sync()
        #expect(server.live.first?.hasPrefix(#"item a {"note":null,"title":"theirs"}"#) == true, "\(server.live)")
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func whatIsChangedWhileABatchIsSentIsSentWithItOnceItIsPendingAgain() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'")
        try await device.sync(with: server, losing: .lostRequest)
        try device.run("UPDATE item SET note = 'later' WHERE id = 'a'")
        server.state.withLock { $0.refusal = "outcome_expired" }
        try await device.weir.sync()
        #expect(server.live.first == #"item a {"note":"later","title":"mine"} 2"#)
    }

    /// An insertion that has updated the row, or was ignored, has replaced none.
    @Test(arguments: [
        "INSERT INTO item VALUES ('a', 'T', 'n') ON CONFLICT (id) DO UPDATE SET title = excluded.title",
        "INSERT OR IGNORE INTO item VALUES ('a', 'T', 'n')",
    ])
    func aRowThatAnotherDeviceHasDeletedStaysDeletedAfterAnInsertionThatReplacesNothing(sql: String) async throws {
        for isPulled in [false, true] {
            let server = ContractServer(Device.tables)
            let device = try await Device.synced(server)
            try device.run("UPDATE item SET note = 'n' WHERE id = 'a'")
            try await device.sync(with: server, losing: .lostRequest)
            server.write("item", "a", nil)
            try device.run(sql)
            if isPulled { try await device.pull(server) }
            try await device.attach(server)
            try await device.weir.sync()
            #expect(!server.live.contains { $0.hasPrefix("item a") }, "\(server.live)")
            #expect(try device.rows() == ["b B -"])
            #expect(try await device.weir.pendingRows() == 0)
        }
    }
}
