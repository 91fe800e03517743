import FanOut
import FanOutLink
import RecordStore
import SyncModel
import Synchronization
import TestClocks
import Testing

@Suite(.timeLimit(.minutes(5))) struct SubscriptionTests {
    /// Records advances, and lets a test wait for them.
    private final class Moves: Sendable {
        let noted = Mutex<[String]>([])
        let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() { (stream, continuation) = AsyncStream.makeStream() }

        func note(_ owner: SyncID, _ head: TimeStamp) {
            noted.withLock { $0.append("\(owner) \(head)") }
            continuation.yield()
        }

        var all: [String] { noted.withLock { $0 } }
    }

    @Test func notifiesOfEachAdvanceUntilCancelled() async throws {
        let world = World()
        try await withFanOut(world) { service in
            let (abc, both) = (Moves(), Moves())
            let first = service.fanOut.subscribe(to: ["abc"], moved: abc.note)
            let second = service.fanOut.subscribe(to: ["abc", "def"], moved: both.note)
            try world.upload([.person("p1"), .person("p2", index: 1)])
            try await service.caughtUp(with: world)
            try world.upload([.person("p3")], owner: "def")
            try await service.caughtUp(with: world)
            // No row is written, so no head advances.
            try world.upload([.person("nobody", isDelete: true)])
            try await service.caughtUp(with: world)
            #expect(abc.all == ["abc 101"])
            #expect(both.all == ["abc 101", "def 102"])
            #expect(try await service.fanOut.heads(of: ["def", "abc", "ghi"]).map(\.rawValue) == [102, 101, 0])
            first.cancel()
            try world.upload([.person("p4")])
            try await service.caughtUp(with: world)
            #expect(abc.all == ["abc 101"])
            #expect(both.all == ["abc 101", "def 102", "abc 103"])
            second.cancel()
        }
    }

    @Test func startsNoCallAfterCancellationEvenDuringANotification() async throws {
        let world = World()
        try await withFanOut(world) { service in
            let others = Mutex<[Int: any FanOutSubscription]>([:])
            let calls = Mutex(0)
            // The first one called cancels the other.
            for index in 0..<2 {
                let subscription = service.fanOut.subscribe(to: ["abc"]) { _, _ in
                    calls.withLock { $0 += 1 }
                    others.withLock { $0[1 - index] }?.cancel()
                }
                others.withLock { $0[index] = subscription }
            }
            try world.upload([.person("p1")])
            try await service.caughtUp(with: world)
            #expect(calls.withLock { $0 } == 1)
            for subscription in others.withLock({ Array($0.values) }) { subscription.cancel() }
        }
    }

    @Test func notifiesAfterMemoryIsUpdated() async throws {
        let world = World()
        try await withFanOut(world) { service in
            let fanOut = service.fanOut
            let idle = Mutex<[Bool]>([])
            let (moves, continuation) = AsyncStream<Void>.makeStream()
            let subscription = fanOut.subscribe(to: ["abc"]) { owner, head in
                let page = fanOut.idlePage(OwnerPull(owner: owner, knowledge: OwnerKnowledge(floor: head)))
                idle.withLock { $0.append(page != nil) }
                continuation.yield()
            }
            try world.upload([.person("p1")])
            for await _ in moves { break }
            #expect(idle.withLock { $0 } == [true])
            subscription.cancel()
        }
    }

    @Test func manySubscriptionsAreAddedAndCancelled() async throws {
        let world = World()
        try await withFanOut(world) { service in
            let count = Mutex(0)
            let subscriptions = (0..<10_000).map { index in
                service.fanOut.subscribe(to: index % 10 == 0 ? ["abc", "def"] : [SyncID(unchecked: "o\(index)")]) {
                    _, _ in
                    count.withLock { $0 += 1 }
                }
            }
            try world.upload([.person("p1")])
            try await service.caughtUp(with: world)
            #expect(count.withLock { $0 } == 1000)
            for subscription in subscriptions { subscription.cancel() }
            try world.upload([.person("p2")])
            try await service.caughtUp(with: world)
            #expect(count.withLock { $0 } == 1000)
        }
    }

    @Test func notifiesOfHeadsThatARebuildAdvances() async throws {
        let world = World()
        try await withFolder { folder in
            world.writesTables = true
            try world.upload([.person("p1")])
            // The rows are from the tables' snapshot, not from records.
            world.log.removeRecords(below: try await world.end(), of: world.ordered())
            let moves = Moves()
            world.store.failSnapshots(with: [.init(.unavailable, message: "later", isRetriable: true)])
            let clock = ManualClock()
            try await withFanOut(world, in: folder, clock: clock, awaitReady: false) { service in
                let subscription = service.fanOut.subscribe(to: ["abc"], moved: moves.note)
                await clock.sleepers(1)
                #expect(moves.all.isEmpty)
                clock.advance(by: .seconds(1))
                for await _ in moves.stream { break }
                #expect(moves.all == ["abc 100"])
                subscription.cancel()
            }
        }
    }
}
