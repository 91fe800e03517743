import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Resolvers of tables, which decide about conflicts.
@Suite(.timeLimit(.minutes(2))) struct ResolverTests {
    private struct Failure: Error {}

    private func conflicted(
        _ server: ContractServer, _ resolver: ConflictResolver?,
        _ sql: String = "UPDATE item SET title = 'mine' WHERE id = 'a'", theirs: [String: String]? = ["title": "theirs"]
    ) async throws -> Device {
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n')")
        try await device.weir.sync()
        if let resolver { try await device.weir.setResolver(resolver, for: "Item") }
        server.write("item", "a", theirs)
        try device.run(sql)
        try await device.weir.sync()
        await device.weir.finishResolving()
        return device
    }

    private func expect(
        _ device: Device, _ server: ContractServer, _ rows: [String], open: Int = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await device.weir.sync()
        await device.weir.finishResolving()
        #expect(try device.rows() == rows, sourceLocation: sourceLocation)
        #expect(server.live.count == rows.count, sourceLocation: sourceLocation)
        #expect(try await device.weir.keptEdits().count == open, sourceLocation: sourceLocation)
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
    }

    @Test func theBuiltInOnesDecide() async throws {
        let server = ContractServer(Device.tables)
        try await expect(try await conflicted(server, .keepLocal), server, ["a mine n", "b B n"])
        let second = ContractServer(Device.tables)
        try await expect(try await conflicted(second, .acceptServer), second, ["a theirs n", "b B n"])
        // Without one, the user decides.
        let third = ContractServer(Device.tables)
        try await expect(try await conflicted(third, nil), third, ["a theirs n", "b B n"], open: 1)
    }

    @Test func differentColumnsAreMergedAndOneThatBothHaveChangedIsLeftToTheUser() async throws {
        let server = ContractServer(Device.tables)
        try await expect(
            try await conflicted(server, .mergeColumns, theirs: ["note": "theirs"]), server, ["a mine theirs", "b B n"])
        let second = ContractServer(Device.tables)
        try await expect(try await conflicted(second, .mergeColumns), second, ["a theirs n", "b B n"], open: 1)
        // Both have made the same change of it.
        let third = ContractServer(Device.tables)
        try await expect(
            try await conflicted(third, .mergeColumns, theirs: ["title": "mine", "note": "t"]), third,
            ["a mine t", "b B n"])
    }

    @Test func aClosureIsGivenAllThreeVersions() async throws {
        let server = ContractServer(Device.tables)
        let resolver = ConflictResolver { edit in
            let parts = [edit.base["title"], edit.local["title"], edit.server?["title"]].map { $0?.string ?? "-" }
            return .merge(["title": .text(parts.joined(separator: "/"))])
        }
        try await expect(try await conflicted(server, resolver), server, ["a A/mine/theirs n", "b B n"])
    }

    @Test func deletionsWinUnlessTheResolverSaysOtherwise() async throws {
        let never = ConflictResolver { _ in
            Issue.record("it is not asked about deletions")
            return nil
        }
        let server = ContractServer(Device.tables)
        try await expect(try await conflicted(server, never, "DELETE FROM item WHERE id = 'a'"), server, ["b B n"])
        let second = ContractServer(Device.tables)
        let device = try await conflicted(second, never, theirs: nil)
        try await expect(device, second, ["b B n"])
        #expect(try await device.weir.conflictLog().map(\.ending) == [.acceptedServer])
        let third = ContractServer(Device.tables)
        let reviving = ConflictResolver(deletionsWin: false) { $0.isDeletion ? .acceptServer : .keepLocal }
        try await expect(
            try await conflicted(third, reviving, "DELETE FROM item WHERE id = 'a'"), third, ["a theirs n", "b B n"])
        let fourth = ContractServer(Device.tables)
        try await expect(try await conflicted(fourth, reviving, theirs: nil), fourth, ["a mine n", "b B n"])
    }

    @Test func oneThatFailsLeavesTheConflictToTheUserAndIsAskedOnceAboutAVersion() async throws {
        let server = ContractServer(Device.tables)
        let asked = Mutex<[String]>([])
        let resolver = ConflictResolver { edit in
            asked.withLock { $0.append(edit.server?["title"]?.string ?? "-") }
            throw Failure()
        }
        let device = try await conflicted(server, resolver)
        try await expect(device, server, ["a theirs n", "b B n"], open: 1)
        #expect(asked.withLock { $0 } == ["theirs"])
        server.write("item", "a", ["title": "newer"])
        try await expect(device, server, ["a newer n", "b B n"], open: 1)
        #expect(asked.withLock { $0 } == ["theirs", "newer"])
    }

    @Test func whatIsOnItsWayAlreadyIsNotReplacedByADecisionAboutAnEarlierChange() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device()
        try await device.attach(server)
        try await device.weir.sync()
        let asked = ScriptedTransport { request, number in
            // The next edit is in a batch when the conflict is decided about, and its answer is lost.
            if number > 0, String(decoding: request.body, as: UTF8.self).contains("newer") {
                throw ScriptedTransport.Lost()
            }
            return try await server.send(request)
        }
        let writing = device.network(asked, writing: "UPDATE item SET title = 'newer'")
        try await device.attach(writing)
        try await device.weir.setResolver(ConflictResolver { .merge($0.local) }, for: "item")
        server.write("item", "a", ["title": "theirs", "note": "theirs"])
        try device.run("INSERT INTO item VALUES ('a', 'mine', 'n')")
        await #expect(throws: SyncError.self) { try await device.weir.sync() }
        await device.weir.finishResolving()
        #expect(try device.rows() == ["a newer n"])
        try await device.attach(server)
        for _ in 0..<3 {
            try await device.weir.sync()
            await device.weir.finishResolving()
        }
        #expect(try device.rows() == ["a newer n"])
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"n","title":"newer"}"#) })
    }

    @Test func oneThatNeverEndsKeepsNothingWaiting() async throws {
        let server = ContractServer(Device.tables)
        let begun = AsyncStream<Void>.makeStream()
        let ended = AsyncStream<Void>.makeStream()
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n'), ('b', 'B', 'n')")
        try await device.weir.sync()
        try await device.weir.setResolver(
            ConflictResolver { _ in
                begun.continuation.yield()
                for await _ in AsyncStream<Never>.makeStream().stream {}
                ended.continuation.yield()
                return .keepLocal
            }, for: "item")
        server.write("item", "a", ["title": "theirs"])
        server.write("item", "b", ["title": "theirs"])
        try device.run("UPDATE item SET title = 'mine'")
        try await device.weir.sync()
        for await _ in begun.stream { break }
        server.write("item", "c", ["title": "C", "note": "n"])
        try device.run("INSERT INTO item VALUES ('d', 'D', 'n')")
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs n", "b theirs n", "c C n", "d D n"])
        #expect(server.live.count == 4)
        // The user decides meanwhile, and closing ends it.
        let open = try await device.weir.keptEdits()
        #expect(open.count == 2)
        try await device.weir.resolve(open[0], .acceptServer)
        await device.weir.close()
        for await _ in ended.stream { break }
        try await device.restart()
        #expect(try await device.weir.keptEdits().map(\.number) == [open[1].number])
    }

    @Test func oneThatDecidesAboutAnOlderVersionIsAskedAgain() async throws {
        let server = ContractServer(Device.tables)
        let device = try await conflicted(server, nil)
        let weir = device.weir
        let asked = Mutex<[String]>([])
        try await weir.setResolver(
            ConflictResolver { edit in
                let count = asked.withLock { asked in
                    asked.append(edit.server?["title"]?.string ?? "-")
                    return asked.count
                }
                if count > 1 { return .acceptServer }
                server.write("item", "a", ["title": "newer"])
                try await weir.sync()
                return .keepLocal
            }, for: "item")
        await weir.finishResolving()
        #expect(asked.withLock { $0 } == ["theirs", "newer"])
        try await expect(device, server, ["a newer n", "b B n"])
        // The resolver holds it.
        await weir.close()
    }

    @Test func whatWasKeptBeforeIsDecidedWhenAResolverIsSet() async throws {
        let server = ContractServer(Device.tables)
        let device = try await conflicted(server, nil)
        try await device.restart()
        try await device.attach(server)
        try await device.weir.setResolver(.keepLocal, for: "item")
        await device.weir.finishResolving()
        try await expect(device, server, ["a mine n", "b B n"])
        try await device.weir.setResolver(nil, for: "item")
        server.write("item", "a", ["title": "theirs again"])
        try device.run("UPDATE item SET title = 'mine again' WHERE id = 'a'")
        try await expect(device, server, ["a theirs again n", "b B n"], open: 1)
    }

    @Test func aDecisionThatMeetsABusyFileIsTakenAgainWithTheNextSession() async throws {
        let server = ContractServer(Device.tables)
        let device = try await conflicted(server, nil)
        let path = device.folder.file()
        StatementTrace.beginWithoutWaiting(path)
        defer { StatementTrace.end(path) }
        try await device.restart()
        try await device.attach(server)
        let app = Mutex(try Database(path: path))
        let asked = Counter()
        try await device.weir.setResolver(
            ConflictResolver { _ in
                if asked.next() == 1 { try app.withLock { try $0.execute("BEGIN IMMEDIATE") } }
                return .keepLocal
            }, for: "item")
        await device.weir.finishResolving()
        #expect(try await device.weir.keptEdits().count == 1)
        try app.withLock { try $0.execute("ROLLBACK") }
        try await device.weir.sync()
        await device.weir.finishResolving()
        try await expect(device, server, ["a mine n", "b B n"])
        // While the file is busy once, or once more if it was asked again before the session.
        #expect(3...4 ~= asked.next())
    }

    @Test func oneWhoseDecisionsMeetTheSameVersionAgainIsNotFollowedWithoutEnd() async throws {
        let server = ContractServer(Device.tables)
        let device = try await conflicted(server, nil)
        // What is sent is never based on the server's version.
        let transport = ScriptedTransport { request, number in
            if number > 100 { throw ScriptedTransport.Lost() }
            var request = request
            let body = String(decoding: request.body, as: UTF8.self)
            request.body = Array(body.replacing(/"base":[0-9]+/, with: #""base":1"#).utf8)
            return try await server.send(request)
        }
        try await device.attach(transport)
        let asked = Mutex(0)
        let resolver = ConflictResolver { _ in
            asked.withLock { $0 += 1 }
            return .keepLocal
        }
        try await device.weir.setResolver(resolver, for: "item")
        for _ in 0..<20 {
            await device.weir.finishResolving()
            try await device.weir.sync()
        }
        #expect(asked.withLock { $0 } == 11)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try await device.weir.keptEdits().count == 1)
        // Another version may be stored.
        try await device.attach(server)
        server.write("item", "a", ["title": "newer"])
        try await device.weir.sync()
        await device.weir.finishResolving()
        try await expect(device, server, ["a mine n", "b B n"])
        #expect(asked.withLock { $0 } == 12)
    }

    @Test func aDecisionThatTheTableRefusesIsLeftToTheUser() async throws {
        let server = ContractServer(Device.tables)
        let resolver = ConflictResolver { _ in .merge(["no such column": .null]) }
        try await expect(try await conflicted(server, resolver), server, ["a theirs n", "b B n"], open: 1)
    }
}
