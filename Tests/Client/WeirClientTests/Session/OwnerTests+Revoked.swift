import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Owners whose rows are no longer granted.
extension OwnerTests {
    @Test func anOwnerThatIsRevokedIsNotAskedForAnyMore() async throws {
        let (server, device) = try await scene()
        server.state.withLock { $0.links = [] }
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM list") == ["own"])
        try await device.weir.sync()
        let last = try #require(server.requests.last { $0.url.path == "/v1/pull" })
        #expect(!String(decoding: last.body, as: UTF8.self).contains("xyz"))
    }

    /// The account's row comes with the answer that revokes the owner.
    @Test func aRowOfTheAccountUnderTheIDOfOneThatWasAddedForARevokedOwnerStays() async throws {
        let (server, device) = try await scene()
        try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs')")
        try await device.sync(with: server, losing: .lostRequest)
        server.state.withLock { $0.links = [] }
        server.write("item", "b", ["title": "account's", "list": "own"])
        try await device.pull(server)
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item") == ["account's"])
        #expect(try await device.weir.keptEdits().count == 1)
        #expect(try await device.weir.pendingRows() == 0)
        let fresh = try await Device(Self.sql, tables: ["mark", "item", "list"])
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.states() == device.states())
    }

    @Test(
        arguments: [
            "UPDATE item SET title = 'mine'", "DELETE FROM item", "INSERT INTO item VALUES ('new', 'N', 'theirs')",
        ], [true, false])
    func whatIsStoredForAnOwnerThatIsRevokedBeforeTheOutcomeArrivesIsNotOfTheAccount(
        sql: String, isListed: Bool
    ) async throws {
        let (server, device) = try await scene()
        try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs')")
        try await device.weir.sync()
        try await device.attach(FaultyTransport(server, .lostAnswer, at: 0))
        try device.run(sql)
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        server.state.withLock { $0.links = [] }
        if !isListed { try await device.restart(tables: ["mark", "list"]) }
        try await device.pull(server)
        try await device.weir.sync()
        if !isListed {
            try await device.restart(tables: ["mark", "item", "list"])
            try await device.attach(server)
        }
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try device.rows("SELECT id FROM item").isEmpty)
        #expect(try device.rows("SELECT id FROM weir_row_2").isEmpty)
        // The owner grants its rows again, and another device changes them.
        server.state.withLock { $0.links = ["xyz"] }
        for id in ["b", "new"] { server.write("item", id, ["title": "T", "list": "theirs"], owner: "xyz") }
        try await device.weir.sync()
        #expect(try device.rows("SELECT id || title FROM item ORDER BY id") == ["bT", "newT"])
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    /// Why a batch has no outcome, and its changes are pending again.
    enum Ending: CaseIterable {
        case outcomeExpired, batchMismatch, outcomeExpiredUnlisted, tooLarge, copiedFile
    }

    /// The row is gone, so that nothing but the batch has its values.
    @Test(arguments: Ending.allCases)
    func whatIsInABatchThatIsRefusedAfterItsOwnerWasRevokedIsKeptAside(ending: Ending) async throws {
        let (server, device) = try await scene()
        let markers = ["-first", "-second"].map { URL(fileURLWithPath: device.folder.file() + $0) }
        try await device.attach(FaultyTransport(server, .lostRequest, at: 0)) { $0.installMarker = markers[0] }
        try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs'), ('a', 'A', 'own')")
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        #expect(try device.rows("SELECT id FROM item") == ["a"])
        switch ending {
        case .outcomeExpired: server.state.withLock { $0.refusal = "outcome_expired" }
        case .batchMismatch: server.state.withLock { $0.refusal = "batch_mismatch" }
        case .outcomeExpiredUnlisted:
            server.state.withLock { $0.refusal = "outcome_expired" }
            try await device.restart(tables: ["mark", "list"])
            try await device.attach(server)
        case .tooLarge:
            let isFirst = Mutex(true)
            try await device.attach(
                ScriptedTransport { request, _ in
                    let isRefused = isFirst.withLock { isFirst in
                        defer { if request.url.path == "/v1/sync" { isFirst = false } }
                        return isFirst && request.url.path == "/v1/sync"
                    }
                    return isRefused ? .problem(413, "batch_too_large") : try await server.send(request)
                })
        case .copiedFile: try await device.attach(server) { $0.installMarker = markers[1] }
        }
        try await device.weir.sync()
        if ending == .outcomeExpiredUnlisted {
            try await device.restart(tables: ["mark", "item", "list"])
            try await device.attach(server)
            try await device.weir.sync()
        }
        let kept = try await device.weir.keptEdits()
        #expect(kept.map(\.code) == ["revoked"])
        #expect(kept.first?.local == ["title": .text("B"), "list": .text("theirs")])
        #expect(owners(server)["item a"] == "abc")
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// The server does not send what the device has written whole.
    @Test(arguments: [true, false]) func whatIsStoredForAnOwnerThatHasGrantedItsRowsAgainMeanwhileComesAgain(
        isKnown: Bool
    ) async throws {
        let (server, device) = try await scene()
        try await device.attach(FaultyTransport(server, .lostRequest, at: 0))
        try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs')")
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        #expect(try device.rows("SELECT id FROM item").isEmpty)
        server.state.withLock { $0.links = ["xyz"] }
        if isKnown { try await device.pull(server) }
        try await device.weir.sync()
        #expect(owners(server)["item b"] == "xyz")
        #expect(try device.rows("SELECT id || title FROM item") == ["bB"])
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func whatWasAddedForAnOwnerThatIsRevokedIsKeptAside() async throws {
        let (server, device) = try await scene()
        try device.run(
            """
            INSERT INTO item VALUES ('b', 'B', 'theirs'), ('own', 'O', 'own'); INSERT INTO mark VALUES ('m', 'b');
            INSERT INTO list VALUES ('assigned', 'N')
            """)
        try await device.weir.setOwner("xyz", of: "list", .text("assigned"))
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        #expect(device.weir.currentStatus.owners == [Owner(syncID: "abc", access: .write)])
        try await device.weir.sync()
        #expect(
            try device.rows("SELECT id FROM item UNION ALL SELECT id FROM list UNION ALL SELECT id FROM mark") == [
                "own", "own",
            ])
        let kept = try await device.weir.keptEdits()
        #expect(
            Set(kept.map { "\($0.table) \($0.key.string ?? "") \($0.code)" }) == [
                "item b revoked", "mark m revoked", "list assigned revoked",
            ])
        #expect(kept.allSatisfy { $0.change.contains(#""syncId":"xyz""#) })
        #expect(owners(server)["item b"] == nil)
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
    }

    @Test func aRevokedEditIsNotEndedByARowOfTheAccountUnderItsKey() async throws {
        let (server, device) = try await scene()
        try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs')")
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.code) == ["revoked"])
        try device.run("INSERT INTO item VALUES ('b', 'mine', 'own')")
        try await device.weir.sync()
        #expect(owners(server)["item b"] == "abc")
        #expect(try await device.weir.keptEdits().map(\.code) == ["revoked"])
    }

    @Test func whatWaitsForAColumnOfTheServerIsKeptAsideWithTheRowOfARevokedOwner() async throws {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { $0.links = ["xyz"] }
        server.write("item", "t", ["title": "T"], owner: "xyz")
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'kept' WHERE id = 't'")
        try await device.weir.sync()
        server.state.withLock { $0.links = [] }
        try await device.weir.sync()
        #expect(try device.rows().isEmpty)
        let kept = try await device.weir.keptEdits()
        #expect(kept.map(\.code) == ["revoked"])
        #expect(kept.first?.change == #"{"table":"item","id":"t","syncId":"xyz","values":{"note":"kept"}}"#)
        #expect(device.weir.currentStatus.needsAttention.contains(.unknownColumns(["item": ["note"]])) == false)
        try await device.weir.resolve(try #require(kept.first), .acceptServer)
        try await device.weir.detach()
    }
}
