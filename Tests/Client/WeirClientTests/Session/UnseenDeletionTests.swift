import Synchronization
import Testing
import WeirClient

/// Rows that another device has deleted, and whose deletion the app has not seen when it writes them.
@Suite(.timeLimit(.minutes(5))) struct UnseenDeletionTests {
    private static let policies = ["lastSyncWins", "checkBase"]

    private func server(_ policy: String = "lastSyncWins") -> ContractServer {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = policy }
        return server
    }

    /// A tombstone of a row that only other devices had.
    private func writeTombstone(_ server: ContractServer, _ id: String = "a") {
        server.write("item", id, ["title": "theirs"])
        server.write("item", id, nil)
    }

    /// An edit of a deleted row by another device, after which the row is deleted still.
    private func editTombstone(_ server: ContractServer) {
        server.state.withLock { state in
            state.write("item", "a", ["title": "late"], device: "other")
            state.delete("item", "a")
        }
    }

    // MARK: Rows that the app never had

    /// Whether the tombstone is pulled before the insertion is sent.
    @Test(arguments: policies, [false, true]) func aNewRowUnderTheKeyOfADeletedOneIsStored(
        policy: String, isPulled: Bool
    ) async throws {
        let server = server(policy)
        let device = try await Device.synced(server)
        try device.run("DELETE FROM item")
        try await device.weir.sync()
        writeTombstone(server, "c")
        if isPulled {
            try await device.pull(server, beneath: "INSERT INTO item VALUES ('c', 'mine', NULL)")
        } else {
            try device.run("INSERT INTO item VALUES ('c', 'mine', NULL)")
        }
        try await device.weir.sync()
        #expect(try device.rows() == ["c mine -"])
        #expect(server.live == [#"item c {"note":null,"title":"mine"} \#(isPulled || policy == "checkBase" ? 3 : 4)"#])
        #expect(server.requests.suffix(2).contains { String(decoding: $0.body, as: UTF8.self).contains("ifBase") })
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func aRowThatIsInsertedAgainAfterItsDeletionIsStoredAlsoWhereItsTombstoneWasEdited() async throws {
        let server = server()
        let device = try await Device.synced(server)
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await device.weir.sync()
        editTombstone(server)
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        try await device.weir.sync()
        #expect(try device.rows() == ["a again -", "b B -"])
        #expect(server.live.first?.contains("again") == true)
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// Each has sent it before it has pulled the tombstone, which each of them then has written.
    @Test(arguments: policies) func ofDevicesThatInsertOneDeletedRowEachIsStoredOrShown(policy: String) async throws {
        let server = server(policy)
        writeTombstone(server)
        var devices: [Device] = []
        for _ in 0..<3 {
            let device = try await Device()
            try await device.attach(server)
            // Nothing is pulled before.
            let transport = ScriptedTransport { request, number in
                if number > 0 { throw ScriptedTransport.Lost() }
                return try await server.send(request)
            }
            try device.run("INSERT INTO item VALUES ('a', 'mine \(devices.count)', NULL)")
            try await device.attach(transport)
            await #expect(throws: SyncError.self) { try await device.weir.sync() }
            try await device.attach(server)
            devices.append(device)
        }
        for _ in 0..<2 { for device in devices { try await device.weir.sync() } }
        for (number, device) in devices.enumerated() {
            #expect(try device.rows() == devices[0].rows() && device.rows().count == 1)
            #expect(try await device.weir.pendingRows() == 0)
            // None of them has seen the row of the first one.
            let kept = try await device.weir.keptEdits()
            #expect(kept.count == (policy == "checkBase" && number > 0 ? 1 : 0))
            #expect(kept.allSatisfy { $0.base.isEmpty })
        }
        #expect(server.live.count == 1)
    }

    /// What is pulled beneath the insertion before it is sent: another tombstone, or the row of another device.
    @Test(arguments: policies, [false, true]) func aRowThatIsInsertedOverATombstoneIsBasedOnWhatIsPulledBeneathIt(
        policy: String, isLive: Bool
    ) async throws {
        let server = server(policy)
        let device = try await Device.synced(server)
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        server.state.withLock { state in
            state.write("item", "a", ["title": "late", "note": "n"], device: "other")
            if !isLive { state.delete("item", "a") }
        }
        try await device.pull(server)
        try await device.weir.sync()
        let isShown = isLive && policy == "checkBase"
        #expect(try device.rows().first == (isShown ? "a late n" : "a again -"))
        #expect(try await device.weir.keptEdits().count == (isShown ? 1 : 0))
        #expect(server.live.count == 2)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func anInsertionThatTheServerRefusesForTheTombstoneThatItNamesIsShown() async throws {
        let server = server("lastWriteWins")
        let device = try await Device.synced(server)
        writeTombstone(server, "c")
        server.write("item", "c", nil, updatedAt: "2999-01-01T00:00:00.000Z")
        try device.run("INSERT INTO item VALUES ('c', 'mine', NULL)")
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.key) == [.text("c")])
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// Another device has brought the row back, which is pulled while the outcome of the insertion is not known.
    @Test func aRowThatWasBroughtBackMeanwhileIsNotTakenForOneThatTheAppHasSeen() async throws {
        let server = server()
        let device = try await Device.synced(server)
        writeTombstone(server, "c")
        try device.run("INSERT INTO item VALUES ('c', 'mine', NULL)")
        try await device.sync(with: server, losing: .lostAnswer)
        server.write("item", "c", ["title": "back", "note": "n"])
        try await device.pull(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -", "b B -", "c back n"])
        #expect(server.live.last?.contains("back") == true)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aKeyThatIsChangedBackOverAnEditedTombstoneIsStored() async throws {
        let server = server()
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET id = 'c' WHERE id = 'a'")
        try await device.weir.sync()
        editTombstone(server)
        try device.run("UPDATE item SET id = 'a' WHERE id = 'c'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a A -", "b B -"])
        #expect(server.live.count == 2)
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func whatTheAppDoesWithANewRowWhileItMeetsATombstoneIsStored() async throws {
        for (sql, rows) in [
            ("UPDATE item SET note = 'later' WHERE id = 'c'", ["a A -", "b B -", "c mine later"]),
            ("DELETE FROM item WHERE id = 'c'", ["a A -", "b B -"]),
        ] {
            let server = server()
            let device = try await Device.synced(server)
            writeTombstone(server, "c")
            try device.run("INSERT INTO item VALUES ('c', 'mine', NULL)")
            try await device.attach(device.network(server, writing: sql))
            try await device.weir.sync()
            #expect(try device.rows() == rows)
            #expect(server.live.count == rows.count)
            #expect(try await device.weir.pendingRows() == 0)
        }
    }

    // MARK: Rows that the app had

    /// Whether the batch with the row, whose outcome was lost, had reached the server.
    @Test(arguments: ["outcome_expired", "batch_mismatch"], [Fault.lostAnswer, .lostRequest])
    func aNewRowThatWasStoredAndDeletedByAnotherDeviceStaysDeleted(code: String, fault: Fault) async throws {
        let server = server()
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        if fault == .lostRequest { writeTombstone(server) }
        try device.run("INSERT INTO item VALUES ('a', 'mine', NULL)")
        try await device.sync(with: server, losing: fault)
        if fault == .lostAnswer { server.write("item", "a", nil) }
        server.state.withLock { $0.refusal = code }
        try await device.attach(server)
        try await device.weir.sync()
        // A tombstone of another row says nothing of this one.
        #expect(try device.rows() == (fault == .lostAnswer ? [] : ["a mine -"]))
        #expect(server.live.count == (fault == .lostAnswer ? 0 : 1))
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// The row has come from the server before another device deletes it, so the app has seen it.
    @Test func aNewRowThatHasComeBackIsNotRevivedWhereItIsDeletedThen() async throws {
        let server = server()
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('a', 'mine', NULL)")
        try await device.sync(with: server, losing: .lostAnswer)
        try device.run("UPDATE item SET title = 'later' WHERE id = 'a'")
        server.state.withLock { $0.refusal = "outcome_expired" }
        // The batch is refused, the row is pulled, and what is sent of it is lost.
        try await device.attach(
            ScriptedTransport { request, number in
                if number > 1 { throw ScriptedTransport.Lost() }
                return try await server.send(request)
            })
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        #expect(server.live.count == 1)
        server.write("item", "a", nil)
        try await device.attach(server)
        try await device.weir.sync()
        #expect(server.live.isEmpty)
        #expect(try device.rows().isEmpty)
        #expect(try await device.weir.keptEdits().map(\.code) == ["conflict"])
    }

    /// It was pulled beneath the edit before.
    @Test func aDeletionThatTheAppHasNotSeenStaysUnseenInAnotherHistory() async throws {
        let server = server()
        let device = try await Device.synced(server)
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'")
        server.write("item", "a", nil)
        try await device.pull(server)
        server.state.withLock { $0.changeHistory(to: "e2") }
        try await device.weir.sync()
        #expect(try device.rows() == ["b B -"])
        #expect(server.live.count == 1)
    }

    @Test(arguments: [
        "UPDATE item SET title = 'mine' WHERE id = 'a'",
        "DELETE FROM item WHERE id = 'a'; INSERT INTO item VALUES ('a', 'mine', NULL)",
        "INSERT OR REPLACE INTO item VALUES ('a', 'mine', NULL)",
    ])
    func anEditOfADeletedRowDoesNotReviveItInAnotherHistory(sql: String) async throws {
        let server = server()
        let device = try await Device.synced(server)
        try device.run(sql)
        server.write("item", "a", nil)
        server.state.withLock { $0.changeHistory(to: "e2") }
        try await device.weir.sync()
        #expect(try device.rows() == ["b B -"])
        #expect(server.live.count == 1)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aRowThatTheAppHasDeletedAndInsertsAgainLivesInAnotherHistory() async throws {
        let server = server()
        let device = try await Device.synced(server)
        try device.run("DELETE FROM item WHERE id = 'a'")
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        server.state.withLock { $0.changeHistory(to: "e2") }
        try await device.weir.sync()
        #expect(try device.rows() == ["a again -", "b B -"])
        #expect(server.live.count == 2)
    }
}
