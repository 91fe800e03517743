import Foundation
import Synchronization
import Testing
import WeirClient

/// What a device sends where another device has written the row, and its app has not seen that.
@Suite struct UnseenRowsTests {
    private static let policies = ["lastSyncWins", "checkBase"]

    private func synced(_ server: ContractServer, _ policy: String, _ sql: String = "") async throws -> Device {
        server.state.withLock { $0.policy = policy }
        let device = try await Device()
        try await device.attach(server)
        try device.run(sql)
        try await device.weir.sync()
        return device
    }

    /// The changes of all batches that were sent, as text.
    private func sent(_ server: ContractServer) -> String {
        server.requests.filter { $0.url.path == "/v1/sync" }.map { String(decoding: $0.body, as: UTF8.self) }.joined()
    }

    // MARK: Creations

    @Test(arguments: policies) func aCreationOfARowThatAnotherDeviceHasCreatedIsLeftToTheServer(
        policy: String
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, policy)
        server.write("item", "a", ["title": "theirs", "note": "t"])
        try await device.pull(server, beneath: "INSERT INTO item VALUES ('a', 'mine', NULL)")
        #expect(try device.rows() == ["a mine -"])
        try await device.weir.sync()
        #expect(sent(server).contains(#""base":0}"#) && !sent(server).contains("ifBase"))
        let kept = try await device.weir.keptEdits()
        if policy == "checkBase" {
            #expect(server.live == [#"item a {"note":"t","title":"theirs"} 1"#])
            #expect(try device.rows() == ["a theirs t"])
            #expect(kept.map(\.code) == ["conflict"] && kept[0].change.contains("mine"))
        } else {
            #expect(server.live == [#"item a {"note":null,"title":"mine"} 2"#])
            #expect(try device.rows() == ["a mine -"] && kept.isEmpty)
        }
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test(arguments: ["", "; UPDATE item SET title = 'other'; UPDATE item SET title = 'same'"])
    func aCreationThatIsEqualToTheRowOfAnotherDeviceIsNotSent(updates: String) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        // Before an update of a unique column it is looked for what the update replaces.
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)")
        try await device.attach(server)
        try await device.weir.sync()
        server.write("item", "a", ["title": "same", "note": "n"])
        try await device.pull(server, beneath: "INSERT INTO item VALUES ('a', 'same', 'n')" + updates)
        try await device.weir.sync()
        #expect(sent(server).isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aRowThatTheAccountHasAsWellIsNotSentByTheFirstSession() async throws {
        let server = ContractServer(Device.tables)
        server.write("item", "a", ["title": "same", "note": "n"])
        let device = try await Device()
        try device.run("INSERT INTO item VALUES ('a', 'same', 'n')")
        try await device.attach(server)
        try await device.weir.sync()
        #expect(sent(server).isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func rowsThatWereThereBeforeTheFileWasAttachedDoNotOverwriteTheAccounts() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        server.write("item", "a", ["title": "theirs", "note": "t"])
        server.write("item", "b", ["title": "same", "note": "n"])
        let device = try await Device(
            Device.schema + "; INSERT INTO item VALUES ('a', 'mine', NULL), ('b', 'same', 'n'), ('c', 'mine', NULL)")
        #expect(try await device.attach(server) == .usedRemote)
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs t", "b same n", "c mine -"])
        #expect(server.live.map { $0.suffix(2) } == [" 1", " 1", " 1"])
        #expect(try await device.weir.keptEdits().map(\.key) == [.text("a")])
    }

    /// A word of the masks of edits has 63 columns.
    @Test func rowsOfManyColumnsThatWereThereBeforeDoNotOverwriteTheAccounts() async throws {
        let names = (1...70).map { "c\($0)" }
        let server = ContractServer(["wide": Dictionary(uniqueKeysWithValues: names.map { ($0, "text") })])
        server.state.withLock { $0.policy = "checkBase" }
        let values = Dictionary(uniqueKeysWithValues: names.map { ($0, $0) })
        for id in ["a", "b"] { server.write("wide", id, values) }
        let columns = names.map { "\($0) TEXT" }.joined(separator: ", ")
        let row = names.map { "'\($0)'" }.joined(separator: ", ")
        let device = try await Device(
            """
            CREATE TABLE wide (id TEXT PRIMARY KEY NOT NULL, \(columns)); INSERT INTO wide VALUES ('a', \(row));
            INSERT INTO wide VALUES ('b', \(row)); UPDATE wide SET c70 = 'mine' WHERE id = 'b'
            """, tables: ["wide"])
        #expect(try await device.attach(server) == .usedRemote)
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.key) == [.text("b")])
        #expect(try device.rows("SELECT c70 FROM wide") == ["c70", "c70"])
        #expect(server.live.map { $0.suffix(2) } == [" 1", " 1"])
    }

    @Test(arguments: policies) func aRowThatIsInsertedAndDeletedAgainLeavesThatOfAnotherDeviceAlone(
        policy: String
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, policy)
        server.write("item", "a", ["title": "theirs", "note": "t"])
        try await device.pull(
            server, beneath: "INSERT INTO item VALUES ('a', 'mine', NULL); DELETE FROM item WHERE id = 'a'")
        #expect(try device.rows() == ["a theirs t"])
        try await device.weir.sync()
        #expect(sent(server).isEmpty && server.live.count == 1)
        // And where it is pulled between the two.
        server.write("item", "b", ["title": "theirs", "note": "t"])
        try await device.pull(server, beneath: "INSERT INTO item VALUES ('b', 'mine', NULL)")
        try device.run("DELETE FROM item WHERE id = 'b'")
        try await device.weir.sync()
        #expect(server.live.count == 2)
        #expect(try device.rows() == ["a theirs t", "b theirs t"])
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// A deletion of a row that the app has not seen is none of its own.
    @Test func aCreationRevivesARowWhoseDeletionIsPulledBeneathIt() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "checkBase")
        for id in ["a", "b"] { server.write("item", id, ["title": "theirs"]) }
        server.write("item", "a", nil)
        try await device.pull(server, beneath: "INSERT INTO item VALUES ('a', 'mine', NULL), ('b', 'mine', NULL)")
        server.write("item", "b", nil)
        try await device.pull(server)
        try await device.weir.sync()
        #expect(server.live.map { $0.prefix { $0 != "{" } } == ["item a ", "item b "])
        #expect(try device.rows() == ["a mine -", "b mine -"])
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test(arguments: policies) func aChangeOfACreationThatTheServerHasNotStoredIsNotBasedOnTheRowOfAnotherDevice(
        policy: String
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, policy)
        try device.run("INSERT INTO item VALUES ('a', 'mine', NULL)")
        server.write("item", "a", ["title": "theirs", "note": "t"])
        try await device.attach(device.network(server, writing: "UPDATE item SET title = 'mine, later'"))
        try await device.weir.sync()
        #expect(try await device.weir.pendingRows() == 0)
        if policy == "checkBase" {
            #expect(server.live == [#"item a {"note":"t","title":"theirs"} 1"#])
            #expect(try await device.weir.keptEdits().count == 2)
        } else {
            #expect(server.live == [#"item a {"note":null,"title":"mine, later"} 3"#])
        }
    }

    /// What is pulled then is this device's own row.
    @Test func anInsertionWhoseOutcomeWasLostIsNoConflictWithItself() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server, "checkBase")
        try device.run("INSERT INTO item VALUES ('a', 'first', NULL), ('b', 'B', NULL)")
        try await device.sync(with: server, losing: .lostAnswer)
        try device.run("UPDATE item SET title = 'second' WHERE id = 'a'")
        server.state.withLock { $0.refusal = "outcome_expired" }
        try await device.weir.sync()
        #expect(
            server.live == [#"item a {"note":null,"title":"second"} 2"#, #"item b {"note":null,"title":"B"} 1"#])
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try device.rows() == ["a second -", "b B -"])
    }

    // MARK: Deletions

    private static let one = "INSERT INTO item VALUES ('a', 'A', 'n')"

    /// A device whose deletion of a row has had no answer.
    private func deleting(_ server: ContractServer, _ fault: Fault) async throws -> Device {
        let device = try await synced(server, "lastSyncWins", Self.one)
        try device.run("DELETE FROM item")
        try await device.sync(with: server, losing: fault)
        return device
    }

    @Test func aRowThatIsInsertedAgainAfterADeletionWithoutAnswerIsRevived() async throws {
        let server = ContractServer(Device.tables)
        let device = try await deleting(server, .lostAnswer)
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        try await device.pull(server)
        try await device.weir.sync()
        #expect(server.live == [#"item a {"note":null,"title":"again"} 3"#])
        #expect(try device.rows() == ["a again -"])
    }

    @Test(arguments: [false, true]) func aRowThatIsInsertedAgainIsRevivedAlsoIfTheDeletionsOutcomeIsNotKnown(
        isPulledFirst: Bool
    ) async throws {
        let server = ContractServer(Device.tables)
        let device = try await deleting(server, .lostAnswer)
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        if isPulledFirst { try await device.pull(server) }
        server.state.withLock { $0.refusal = "outcome_expired" }
        try await device.weir.sync()
        #expect(server.live == [#"item a {"note":null,"title":"again"} 3"#])
        #expect(try device.rows() == ["a again -"])
    }

    @Test(arguments: [false, true]) func aDeletionThatWasAppliedDoesNotRemoveTheRowThatWasCreatedAgain(
        isPulledBetween: Bool
    ) async throws {
        for refusal in [nil, "outcome_expired"] {
            let server = ContractServer(Device.tables)
            let device = try await deleting(server, .lostAnswer)
            if isPulledBetween { try await device.pull(server) }
            server.write("item", "a", ["title": "again", "note": "o"])
            try await device.pull(server)
            // Where it knows that the deletion was applied, the row is there at once.
            #expect(try device.rows() == (isPulledBetween ? ["a again o"] : []))
            server.state.withLock { $0.refusal = refusal }
            try await device.weir.sync()
            #expect(server.live == [#"item a {"note":"o","title":"again"} 3"#])
            #expect(try device.rows() == ["a again o"])
            // Else it is for the user to decide whether this row is to go, too.
            let kept = try await device.weir.keptEdits()
            #expect(kept.map(\.code) == (isPulledBetween || refusal == nil ? [] : ["conflict"]))
            #expect(try await device.weir.pendingRows() == 0)
        }
    }

    @Test func aDeletionThatWasNotAppliedIsRepeated() async throws {
        let server = ContractServer(Device.tables)
        let device = try await deleting(server, .lostRequest)
        server.state.withLock { $0.refusal = "outcome_expired" }
        try await device.weir.sync()
        #expect(server.live.isEmpty)
        #expect(try device.rows().isEmpty)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func aDeletionOfARowThatAnotherDeviceHasChangedFollowsThePolicy() async throws {
        for policy in Self.policies {
            let server = ContractServer(Device.tables)
            let device = try await synced(server, policy, Self.one)
            server.write("item", "a", ["title": "theirs"])
            try await device.pull(server, beneath: "DELETE FROM item")
            try await device.weir.sync()
            #expect(server.live.count == (policy == "checkBase" ? 1 : 0))
            #expect(try device.rows() == (policy == "checkBase" ? ["a theirs n"] : []))
        }
    }

    /// The insertion has recorded all values of the row, of which the change leaves one to the server.
    @Test func aRowWhoseInsertionWasIgnoredIsTakenBackToTheNewestVersion() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        server.write("item", "a", ["note": "theirs"])
        try await device.pull(
            server,
            beneath: """
                INSERT OR IGNORE INTO item VALUES ('a', 'ignored', NULL); UPDATE item SET title = 'mine' WHERE id = 'a'
                """)
        #expect(try device.rows() == ["a mine theirs", "b B -"])
        #expect(try await device.weir.discard("item", .text("a")))
        #expect(try device.rows() == ["a A theirs", "b B -"])
    }
}
