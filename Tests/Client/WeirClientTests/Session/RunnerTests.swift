import Foundation
import Seeded
import Synchronization
import TestClocks
import TestSignals
import Testing
import WeirClient

@Suite(.timeLimit(.minutes(2))) struct RunnerTests {
    /// A runner whose sessions, writes and event stream are a test's.
    private final class Scene: Sendable {
        let clock = ManualClock()
        let begun = Signal<Void>()
        let ends = Signal<Result<Bool, any Error>>()
        let idle = Signal<Duration?>()
        let connected = Signal<Void>()
        let events = Signal<Result<Bool, any Error>>()
        let hasWrites = Mutex(false)
        let looks = Signal<Void>()
        let writes = AsyncStream.makeStream(of: Void.self)
        let isFileClosed = Signal<Void>()
        let runner = Mutex<Runner?>(nil)

        func start(watches: Bool = false, watchesFile: Bool = false) -> Task<Void, Never> {
            let work = Runner.Work {
                self.begun.send()
                return try await self.ends.next().get()
            } hasWrites: {
                // What a test says after a look is for the next one.
                defer { self.looks.send() }
                return self.hasWrites.withLock { has in
                    defer { has = false }
                    return has
                }
            } watchFile: {
                watchesFile ? Runner.FileEvents(self.writes.stream) { self.isFileClosed.send() } : nil
            } watch: { event in
                guard watches else { throw SyncError(.forbidden, "no events") }
                self.connected.send()
                while true {
                    let moved: Bool
                    switch await self.events.next() {
                    case .success(let hasMoved): moved = hasMoved
                    case .failure(is CancellationError): return
                    case .failure(let error): throw error
                    }
                    await event(moved)
                }
            } isIdle: {
                self.idle.send($0)
            }
            let runner = Runner(
                work, writeCheck: .seconds(1), clock: RunClock(clock), random: SeededRandom(seed: 1))
            self.runner.withLock { $0 = runner }
            return Task {
                await runner.run()
                // What it does keeps the scene, which keeps it.
                self.runner.withLock { $0 = nil }
            }
        }

        func record(_ event: AttemptSchedule.Event) async { await runner.withLock { $0 }?.record(event) }
    }

    @Test func aWriteOfAnotherConnectionIsSentWithoutAnyCall() async throws {
        let scene = Scene()
        let task = scene.start()
        try await scene.begun.nextOrCancellation()
        scene.ends.send(.success(false))
        #expect(try await scene.idle.nextOrCancellation() == .seconds(300))
        scene.hasWrites.withLock { $0 = true }
        await scene.clock.sleeper(until: .seconds(1))
        scene.clock.advance(by: .seconds(1))
        // The event stream that is refused is another reason to say when the next session is due.
        while try await scene.idle.nextOrCancellation() != .milliseconds(1100) {}
        await scene.clock.sleeper(until: .milliseconds(1100))
        scene.clock.advance(by: .milliseconds(100))
        try await scene.begun.nextOrCancellation()
        task.cancel()
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }

    @Test func anIdleRunnerSleepsWithoutTimersAndLooksAfterWritesToTheFile() async throws {
        let scene = Scene()
        let task = scene.start(watches: true, watchesFile: true)
        try await scene.begun.nextOrCancellation()
        try await scene.connected.nextOrCancellation()
        scene.events.send(.success(false))
        // One since the watch has begun, and one for the event.
        for _ in 0..<2 { try await scene.looks.nextOrCancellation() }
        scene.ends.send(.success(false))
        while try await scene.idle.nextOrCancellation() != nil {}
        #expect(scene.clock.sleeping == 0)
        // A commit may be seen only later than the event.
        scene.writes.continuation.yield()
        for (pause, sleepers) in [(20, 1), (1000, 2), (4000, 1)] {
            await scene.clock.sleepers(sleepers)
            await scene.clock.sleeper(for: .milliseconds(pause))
            scene.clock.advance(by: .milliseconds(pause))
            try await scene.looks.nextOrCancellation()
        }
        scene.hasWrites.withLock { $0 = true }
        await scene.clock.sleeper(for: .seconds(16))
        scene.clock.advance(by: .seconds(16))
        try await scene.looks.nextOrCancellation()
        while try await scene.idle.nextOrCancellation() == nil {}
        await scene.clock.sleeper(for: .milliseconds(100))
        scene.clock.advance(by: .milliseconds(100))
        try await scene.begun.nextOrCancellation()
        scene.ends.send(.success(false))
        while try await scene.idle.nextOrCancellation() != nil {}
        #expect(scene.clock.sleeping == 0)
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        await task.value
        try await scene.isFileClosed.nextOrCancellation()
    }

    /// What was committed before the watch has begun is no event of it.
    @Test func theFileIsLookedAtWhenTheWatchBegins() async throws {
        let scene = Scene()
        let task = scene.start(watches: true, watchesFile: true)
        try await scene.looks.nextOrCancellation()
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }

    @Test func manyWritesInARowCostALookInEachInterval() async throws {
        let scene = Scene()
        let task = scene.start(watches: true, watchesFile: true)
        try await scene.begun.nextOrCancellation()
        try await scene.looks.nextOrCancellation()
        scene.writes.continuation.yield()
        await scene.clock.sleeper(for: .milliseconds(20))
        scene.clock.advance(by: .milliseconds(20))
        try await scene.looks.nextOrCancellation()
        // The pause, and the looks after the last event.
        await scene.clock.sleepers(2)
        scene.writes.continuation.yield()
        scene.clock.advance(by: .seconds(1))
        await scene.clock.sleeper(until: .milliseconds(1040))
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }

    /// What an app's keep-alive is for, too.
    @Test func eachPieceOfTheEventStreamIsAReasonToLookForWrites() async throws {
        let scene = Scene()
        let task = scene.start(watches: true, watchesFile: true)
        try await scene.begun.nextOrCancellation()
        scene.ends.send(.success(false))
        try await scene.looks.nextOrCancellation()
        scene.hasWrites.withLock { $0 = true }
        scene.events.send(.success(false))
        while try await scene.idle.nextOrCancellation() != .milliseconds(100) {}
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        await task.value
    }

    @Test func aFailedSessionIsRepeatedAndANudgeRepeatsItAtOnce() async throws {
        let scene = Scene()
        // An event stream that is refused would say again when the next session is due.
        let task = scene.start(watches: true)
        for _ in 0..<20 {
            try await scene.begun.nextOrCancellation()
            scene.ends.send(.failure(SyncError(.unreachable, "lost")))
            guard let due = try await scene.idle.nextOrCancellation() else {
                Issue.record("no session is due")
                break
            }
            let now = scene.clock.now.offset
            #expect(due >= now && due <= now + .seconds(300))
            await scene.clock.sleeper(until: due)
            scene.clock.advance(by: due - now)
        }
        try await scene.begun.nextOrCancellation()
        scene.ends.send(.failure(SyncError(.forbidden, "no")))
        _ = try await scene.idle.nextOrCancellation()
        await scene.record(.nudged)
        try await scene.begun.nextOrCancellation()
        task.cancel()
        scene.ends.send(.failure(CancellationError()))
        scene.events.send(.failure(CancellationError()))
        await task.value
    }

    @Test func anEventOfTheServerBeginsASessionAndAnOpenStreamNeedsNoTimer() async throws {
        let scene = Scene()
        let task = scene.start(watches: true)
        try await scene.begun.nextOrCancellation()
        try await scene.connected.nextOrCancellation()
        scene.events.send(.success(false))
        scene.ends.send(.success(false))
        var due: Duration? = .zero
        while due != nil { due = try await scene.idle.nextOrCancellation() }
        scene.events.send(.success(true))
        try await scene.begun.nextOrCancellation()
        scene.ends.send(.success(false))
        // The stream ends: the timer is needed again, and the stream is opened again after a pause.
        while try await scene.idle.nextOrCancellation() != nil {}
        scene.events.send(.failure(CancellationError()))
        while due == nil { due = try await scene.idle.nextOrCancellation() }
        #expect(due == .seconds(300))
        // The looks at the file, the timer, and the pause before the next stream.
        await scene.clock.sleepers(3)
        scene.clock.advance(by: .seconds(1))
        try await scene.connected.nextOrCancellation()
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        await task.value
    }

    @Test func aStreamWhoseTokenHasExpiredIsOpenedWithTheNextOneAtOnce() async throws {
        let scene = Scene()
        let task = scene.start(watches: true)
        try await scene.connected.nextOrCancellation()
        scene.events.send(.failure(SyncError(.unauthenticated, "expired")))
        try await scene.connected.nextOrCancellation()
        // And once only.
        scene.events.send(.failure(SyncError(.unauthenticated, "expired")))
        await scene.clock.sleepers(2)
        task.cancel()
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }

    /// A rejection is tried again after minutes, and by itself up to an hour later.
    @Test(arguments: [true, false]) func anEventStreamThatWasRejectedIsOpenedAfterANudgeAndAfterASession(
        isNudged: Bool
    ) async throws {
        let scene = Scene()
        let task = scene.start(watches: true)
        try await scene.begun.nextOrCancellation()
        try await scene.connected.nextOrCancellation()
        scene.events.send(.failure(SyncError(.forbidden, "no")))
        // The look at the file, and the pause.
        await scene.clock.sleepers(2)
        if isNudged { await scene.record(.nudged) } else { scene.ends.send(.success(false)) }
        try await scene.connected.nextOrCancellation()
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }

    @Test func aNudgeDoesNotOpenTheEventStreamBeforeTheTimeThatTheServerAsksFor() async throws {
        let scene = Scene()
        let task = scene.start(watches: true)
        try await scene.begun.nextOrCancellation()
        try await scene.connected.nextOrCancellation()
        scene.events.send(.failure(try #require(SyncError(.problem(503, "overloaded", retryAfter: "30"), now: Date()))))
        await scene.clock.sleepers(2)
        await scene.record(.nudged)
        await scene.clock.sleeper(until: .seconds(30))
        scene.clock.advance(by: .seconds(30))
        try await scene.connected.nextOrCancellation()
        task.cancel()
        scene.events.send(.failure(CancellationError()))
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }

    @Test func aSessionOfAnotherProcessIsWaitedFor() async throws {
        let scene = Scene()
        let task = scene.start()
        try await scene.begun.nextOrCancellation()
        scene.ends.send(.failure(LeaseHeld()))
        #expect(try await scene.idle.nextOrCancellation() == .seconds(5))
        await scene.clock.sleeper(until: .seconds(5))
        scene.clock.advance(by: .seconds(5))
        try await scene.begun.nextOrCancellation()
        task.cancel()
        scene.ends.send(.failure(CancellationError()))
        await task.value
    }
}
