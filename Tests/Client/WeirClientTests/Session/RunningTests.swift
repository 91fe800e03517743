import Foundation
import Seeded
import Synchronization
import TestClocks
import TestResources
import TestSignals
import Testing
import WeirClient

/// Weir running in an app: with a clock of the test's, and a server in memory.
@Suite(.timeLimit(.minutes(2))) struct RunningTests {
    final class Scene {
        let device: Device
        let clock = ManualClock()
        let server: EventfulServer
        private var statuses: AsyncStream<SyncStatus>.Iterator

        init(_ server: ContractServer = ContractServer(Device.tables)) async throws {
            device = try await Device()
            self.server = EventfulServer(server)
            statuses = device.weir.status.makeAsyncIterator()
        }

        var options: SyncOptions {
            var options = SyncOptions(transport: server)
            options.clock = RunClock(clock)
            // Looked at by the test's clock.
            options.watchFile = { _ in nil }
            options.random = SeededRandom(seed: 1)
            return options
        }

        func start() async throws {
            try await device.weir.attach("abc", server: Device.url, options: options)
            try await device.weir.start()
        }

        /// Waits for a status.
        func status(_ isMet: (SyncStatus) -> Bool) async throws -> SyncStatus {
            while let status = await statuses.next() {
                if isMet(status) { return status }
            }
            throw WeirError.closed
        }

        /// One whose device has synced and is idle.
        static func running() async throws -> Scene {
            let scene = try await Scene()
            try await scene.start()
            try await scene.server.opened.nextOrCancellation()
            try await scene.device.weir.firstSync()
            try await scene.idle()
            return scene
        }

        /// Waits until a session has succeeded since a status, and Weir is idle with nothing pending.
        func synced(since before: SyncStatus) async throws {
            _ = try await status { $0.phase == .idle && $0.lastSuccess != before.lastSuccess && $0.pendingRows == 0 }
        }

        /// Waits until Weir is idle, with its event stream open and nothing pending.
        func idle() async throws {
            _ = try await status { $0.phase == .idle && $0.lastSuccess != nil && $0.pendingRows == 0 }
        }
    }

    @Test func theAppsWritesAreSentAndOthersArriveWithoutAnyCall() async throws {
        let scene = try await Scene.running()
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        // A look at the file, then the pause in which more writes may come.
        await scene.clock.sleeper(until: .milliseconds(500))
        scene.clock.advance(by: .milliseconds(500))
        let noticed = try await scene.status { $0.pendingRows == 1 }
        #expect(noticed.isComplete)
        await scene.clock.sleeper(until: .milliseconds(600))
        scene.clock.advance(by: .milliseconds(100))
        try await scene.idle()
        #expect(scene.server.server.live.count == 1)
        // Another device's write.
        let before = scene.device.weir.currentStatus
        let head = scene.server.server.write("item", "b", ["title": "B"])
        scene.server.event(head: head)
        try await scene.synced(since: before)
        #expect(try scene.device.rows().count == 2)
        await scene.device.weir.close()
    }

    @Test func anEventOfWhatTheFileHasIsNoReason() async throws {
        let scene = try await Scene()
        let old = scene.server.server.write("item", "a", ["title": "A"])
        let weir = scene.device.weir
        try await weir.attach("abc", server: Device.url, options: scene.options)
        try await weir.sync()
        let moved = Signal<Bool>()
        let watching = Task { try await Weir.watch({ weir }) { moved.send($0) } }
        try await scene.server.opened.nextOrCancellation()
        scene.server.event(head: old)
        #expect(try await moved.nextOrCancellation() == false)
        let new = scene.server.server.write("item", "b", ["title": "B"])
        scene.server.event(head: new)
        #expect(try await moved.nextOrCancellation() == true)
        try await weir.sync()
        scene.server.event(head: new)
        #expect(try await moved.nextOrCancellation() == false)
        scene.server.endEvents()
        try await watching.value
    }

    @Test func aFailureIsShownAndRepeatedAndANudgeShortensThePause() async throws {
        let scene = try await Scene()
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        scene.server.refuse(.problem(503, "overloaded", retryAfter: "20"))
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await scene.device.weir.start()
        let failed = try await scene.status { $0.phase == .waiting }
        #expect(failed.lastError?.code == "overloaded")
        #expect(failed.pendingRows == 1)
        // The server's time is respected.
        await scene.device.weir.nudge()
        scene.server.refuse(nil)
        let count = scene.server.server.requests.count
        await scene.clock.sleeper(until: .seconds(20))
        #expect(scene.server.server.requests.count == count)
        scene.clock.advance(by: .seconds(20))
        try await scene.idle()
        #expect(scene.server.server.live.count == 1)
        await scene.device.weir.close()
    }

    /// Without pauses that grow from one interruption to the next.
    @Test func aFirstSyncOverABadNetworkContinuesSoonAfterEachInterruption() async throws {
        let server = ContractServer(Device.tables)
        for id in 0..<8 { server.write("item", "\(id)", ["title": "t"]) }
        server.state.withLock { $0.pageRows = 1 }
        let scene = try await Scene(server)
        let pulls = Counter()
        let network = ScriptedTransport { request, _ in
            if request.url.path == "/v1/pull", pulls.next() % 2 == 0 { throw ScriptedTransport.Lost() }
            return try await server.send(request)
        }
        var options = scene.options
        options.transport = network
        try await scene.device.weir.attach("abc", server: Device.url, options: options)
        try await scene.device.weir.start()
        while try await !scene.status({ $0.phase == .waiting || $0.isComplete }).isComplete {
            scene.clock.advance(by: .seconds(1))
        }
        #expect(try scene.device.rows().count == 8)
        await scene.device.weir.close()
    }

    @Test func aSessionAtATimeAndEachCallSendsWhatWasWrittenBefore() async throws {
        let scene = try await Scene()
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        let held = scene.server.hold()
        let weir = scene.device.weir
        let first = Task { try await weir.sync() }
        while try await scene.server.arrived.nextOrCancellation() != "GET /v1/schema" {}
        try scene.device.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        let second = Task { try await weir.sync() }
        let third = Task { try await weir.sync() }
        held.finish()
        for task in [first, second, third] { #expect(try await task.value) }
        #expect(scene.server.server.live.count == 2)
        #expect(scene.server.server.state.withLock { $0.applied } <= 2)
    }

    @Test func aSessionEndsAtItsDeadlineAndTheNextOneContinues() async throws {
        let server = ContractServer(Device.tables)
        for id in 0..<20 { server.write("item", "\(id)", ["title": "t"]) }
        server.state.withLock { $0.pageRows = 5 }
        let scene = try await Scene(server)
        var options = scene.options
        options.now = { Date(timeIntervalSince1970: 1000) }
        try await scene.device.weir.attach("abc", server: Device.url, options: options)
        while try await scene.server.arrived.nextOrCancellation() != "POST /v1/pull" {}
        let weir = scene.device.weir
        let held = scene.server.hold("POST /v1/pull", after: 2)
        let session = Task { try await weir.sync(until: Date(timeIntervalSince1970: 1030)) }
        // The schema and two pages; the third is held back.
        for _ in 0..<4 { _ = try await scene.server.arrived.nextOrCancellation() }
        await scene.clock.sleeper(until: .seconds(30))
        scene.clock.advance(by: .seconds(30))
        let isOver = try await session.value
        let count = try scene.device.rows().count
        #expect(!isOver)
        #expect(count == 10)
        #expect(!weir.currentStatus.isComplete)
        held.finish()
        #expect(try await weir.sync())
        #expect(try scene.device.rows().count == 20)
        let limits = server.requests.filter { $0.url.path == "/v1/pull" }.map {
            String(decoding: $0.body, as: UTF8.self)
        }
        // Rows that were applied are not requested again.
        #expect(limits.filter { $0.contains(#""knowledge":[]"#) }.count <= 3)
    }

    @Test func theFirstSyncShowsHowMuchHasCome() async throws {
        let server = ContractServer(Device.tables)
        for id in 0..<100 { server.write("item", "\(id)", ["title": "t"]) }
        server.state.withLock { $0.pageRows = 10 }
        let scene = try await Scene(server)
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        #expect(scene.device.weir.currentStatus.firstSync == nil)
        var shown: [Double] = []
        let statuses = scene.device.weir.status
        let weir = scene.device.weir
        let session = Task { try await weir.sync() }
        for await status in statuses {
            if let fraction = status.firstSync, fraction != shown.last { shown.append(fraction) }
            if let fraction = status.firstSync, fraction < 1, fraction > 0 { #expect(!status.isComplete) }
            if status.isComplete { break }
        }
        #expect(try await session.value)
        #expect(shown == shown.sorted() && shown.last == 1, "\(shown)")
        try await scene.device.weir.firstSync()
        // It is known in the next run of the app.
        try await scene.device.restart()
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        try await scene.device.weir.firstSync()
    }

    @Test func aDetachThatIsRefusedLeavesItStarted() async throws {
        let scene = try await Scene.running()
        let before = scene.device.weir.currentStatus
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        await #expect(throws: WeirError.unsent(rows: 1, keptEdits: 0)) { try await scene.device.weir.detach() }
        try #require(scene.device.weir.currentStatus.phase != .stopped)
        try await scene.synced(since: before)
        #expect(scene.server.server.live.count == 1)
        try await scene.device.weir.detach()
        #expect(scene.device.weir.currentStatus.phase == .stopped)
        // It is not started for the next account.
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        #expect(scene.device.weir.currentStatus.phase == .stopped)
    }

    @Test func whatIsAdoptedWhileItRunsIsSent() async throws {
        let scene = try await Scene()
        try await scene.device.weir.attach("abc", server: Device.url, options: scene.options)
        // As if it was written while the table had no triggers.
        try scene.device.run(
            """
            BEGIN; INSERT INTO weir_applying (active) VALUES (1); INSERT INTO item VALUES ('a', 'A', NULL);
            DELETE FROM weir_applying; COMMIT
            """)
        try await scene.device.weir.start()
        try await scene.server.opened.nextOrCancellation()
        try await scene.device.weir.firstSync()
        try await scene.idle()
        #expect(scene.server.server.live.isEmpty)
        #expect(try await scene.device.weir.seed() == 1)
        try #require(scene.device.weir.currentStatus.pendingRows == 1)
        await scene.clock.sleeper(until: .milliseconds(100))
        scene.clock.advance(by: .milliseconds(100))
        try await scene.idle()
        #expect(scene.server.server.live.count == 1)
        await scene.device.weir.close()
    }

    @Test func whatIsTakenBackIsNoLongerShownAsPending() async throws {
        let device = try await Device.synced(ContractServer(Device.tables))
        try await device.weir.write { try $0.execute("UPDATE item SET title = 'mine'") }
        #expect(device.weir.currentStatus.pendingRows == 2)
        try await device.weir.discard("item", .text("a"))
        #expect(device.weir.currentStatus.pendingRows == 1)
    }

    @Test func aSuspendedWeirHoldsNoLockAndCapturesStill() async throws {
        let scene = try await Scene()
        try await scene.start()
        try await scene.server.opened.nextOrCancellation()
        try await scene.device.weir.firstSync()
        let before = scene.device.weir.currentStatus
        // In the middle of a session.
        let held = scene.server.hold("POST /v1/sync")
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        await scene.device.weir.nudge()
        while try await scene.server.arrived.nextOrCancellation() != "POST /v1/sync" {}
        await scene.device.weir.suspend()
        #expect(scene.device.weir.currentStatus.phase == .suspended)
        await #expect(throws: WeirError.suspended) { try await scene.device.weir.pendingRows() }
        await #expect(throws: WeirError.suspended) { try await scene.device.weir.sync() }
        // The app's connection has the file for itself.
        try scene.device.run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;")
        try scene.device.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        try scene.device.run("PRAGMA locking_mode = NORMAL; PRAGMA journal_mode = WAL;")
        _ = try scene.device.rows()
        held.finish()
        try await scene.device.weir.resume()
        try await scene.synced(since: before)
        #expect(scene.server.server.live.count == 2)
        await scene.device.weir.close()
    }

    @Test func aCallThatSyncsEndsWhenWeirIsSuspended() async throws {
        let scene = try await Scene()
        try await scene.start()
        try await scene.device.weir.firstSync()
        try await scene.idle()
        let held = scene.server.hold("POST /v1/sync")
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        let weir = scene.device.weir
        let call = Task { try await weir.sync() }
        while try await scene.server.arrived.nextOrCancellation() != "POST /v1/sync" {}
        await weir.suspend()
        await #expect(throws: (any Error).self) { try await call.value }
        held.finish()
        // Nor is the lease held.
        let other = try await scene.device.otherWeir()
        try await other.attach("abc", server: Device.url, options: scene.options)
        try await other.sync()
        #expect(scene.server.server.live.count == 1)
        await other.close()
        await weir.close()
    }

    @Test func afterStopNothingIsSentUntilStart() async throws {
        let scene = try await Scene()
        try await scene.start()
        try await scene.device.weir.firstSync()
        await scene.device.weir.stop()
        let before = scene.device.weir.currentStatus
        #expect(before.phase == .stopped)
        let count = scene.server.server.requests.count
        try scene.device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        await scene.device.weir.nudge()
        scene.clock.advance(by: .seconds(1000))
        #expect(scene.server.server.requests.count == count)
        try await scene.device.weir.start()
        try await scene.synced(since: before)
        #expect(scene.server.server.live.count == 1)
        await scene.device.weir.close()
        var last: SyncStatus?
        for await status in scene.device.weir.status { last = status }
        #expect(last?.phase == .stopped)
        await #expect(throws: WeirError.closed) { try await scene.device.weir.sync() }
    }
}
