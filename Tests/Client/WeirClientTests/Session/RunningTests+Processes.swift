import Foundation
import Synchronization
import TestClocks
import TestResources
import TestSignals
import Testing
import WeirClient

/// Several processes.
extension RunningTests {
    @Test func whatAnotherProcessFindsAndDecidesIsShown() async throws {
        let scene = try await Scene.running()
        let server = scene.server.server
        let other = try await scene.device.otherWeir()
        try await other.attach("abc", server: Device.url, options: Device.options(server))
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await other.sync()
        server.state.withLock { $0.policy = "checkBase" }
        server.write("item", "a", ["title": "theirs"])
        try scene.device.run("UPDATE item SET title = 'mine'")
        try await other.sync()
        await scene.clock.sleeper(until: .milliseconds(500))
        scene.clock.advance(by: .milliseconds(500))
        _ = try await scene.status { $0.needsAttention == [.keptEdits(1)] }
        try await other.resolve(try #require(try await other.keptEdits().first), .acceptServer)
        await scene.clock.sleeper(until: .seconds(1))
        scene.clock.advance(by: .milliseconds(500))
        _ = try await scene.status { $0.needsAttention.isEmpty }
        await other.close()
        await scene.device.weir.close()
    }

    @Test func oneProcessSyncsAtATimeAndOneThatIsGoneKeepsOthersWaitingForAWhileOnly() async throws {
        let scene = try await Scene()
        var options = scene.options
        let time = ManualClock()
        options.now = { Date(timeIntervalSince1970: 1000 + time.now.offset / .seconds(1)) }
        try await scene.device.weir.attach("abc", server: Device.url, options: options)
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        let other = try await scene.device.otherWeir()
        try await other.attach("abc", server: Device.url, options: options)
        let held = scene.server.hold()
        let weir = scene.device.weir
        let first = Task { try await weir.sync() }
        while try await scene.server.arrived.nextOrCancellation() != "GET /v1/schema" {}
        // The second one waits.
        let second = Task { try await other.sync() }
        await scene.clock.sleeper(until: .seconds(5))
        #expect(other.currentStatus.phase == .waiting)
        // The first one does not answer for so long that its lease runs out.
        time.advance(by: .seconds(91))
        scene.clock.advance(by: .seconds(5))
        #expect(try await second.value)
        #expect(scene.server.server.live.count == 1)
        held.finish()
        _ = await first.result
        #expect(scene.server.server.live == [#"item a {"note":null,"title":"A"} 1"#])
        #expect(try await weir.sync())
        #expect(try await weir.pendingRows() == 0)
        await other.close()
    }

    @Test func aRunningWeirWaitsForAnotherProcessAndEndsWithItsLastReference() async throws {
        let scene = try await Scene()
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        let database = try Database(path: scene.device.folder.file())
        try Lease(holder: "other", process: 1).take(in: database, now: Date())
        var other: Weir? = try await scene.device.otherWeir()
        let statuses = try #require(other?.status)
        try await other?.attach("abc", server: Device.url, options: scene.options)
        try await other?.start()
        var phases: [SyncStatus.Phase] = []
        for await status in statuses {
            phases.append(status.phase)
            if status.phase == .waiting { break }
        }
        #expect(phases.last == .waiting)
        let last = try #require(other?.status)
        other = nil
        for await _ in last {}
        database.close()
    }

    @Test func aWriteThatAnotherProcessHasLookedAtIsStillNoticed() async throws {
        let scene = try await Scene.running()
        let other = try await scene.device.otherWeir()
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        // It makes an edit of what the triggers have recorded.
        #expect(try await other.pendingRows() == 1)
        await scene.clock.sleeper(until: .milliseconds(500))
        scene.clock.advance(by: .milliseconds(500))
        await scene.clock.sleeper(until: .milliseconds(600))
        scene.clock.advance(by: .milliseconds(100))
        try await scene.idle()
        #expect(scene.server.server.live.count == 1)
        await other.close()
        await scene.device.weir.close()
    }

    @Test func aBatchOfAnotherProcessThatHasEndedBeforeTheAnswerIsSent() async throws {
        let scene = try await Scene.running()
        let before = scene.device.weir.currentStatus
        let server = scene.server.server
        // A look before which nothing was written.
        await scene.clock.sleeper(until: .milliseconds(500))
        scene.clock.advance(by: .milliseconds(500))
        await scene.clock.sleeper(until: .seconds(1))
        let other = try await scene.device.otherWeir()
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        let lost = FaultyTransport(server, .lostRequest, at: 0)
        try await other.attach("abc", server: Device.url, options: Device.options(lost))
        await #expect(throws: SyncError.self) { try await other.sync() }
        await other.close()
        #expect(server.live.isEmpty)
        scene.clock.advance(by: .milliseconds(500))
        await scene.clock.sleeper(until: .milliseconds(1100))
        scene.clock.advance(by: .milliseconds(100))
        try await scene.synced(since: before)
        #expect(server.live.count == 1)
        await scene.device.weir.close()
    }
}
