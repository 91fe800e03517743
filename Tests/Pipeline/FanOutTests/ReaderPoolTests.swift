import AsyncPrimitives
import Dispatch
import FanOutLink
import Foundation
import Metrics
import SyncModel
import Synchronization
import Testing
import ThreadExecutor

@testable import FanOut

/// Reads take turns, and make way for the truncation of a stream's write-ahead log.
@Suite(.timeLimit(.minutes(5))) struct ReaderPoolTests {
    /// Of 8 reads, one owner may have 4, and the next one 2.
    @Test func readsOfOneOwnerDelayThoseOfAnotherByOneRead() async throws {
        let world = World()
        try world.upload([.person("p1")])
        let oneThread = { (configuration: inout FanOutConfiguration) in
            configuration.readerThreads = 1
            configuration.maximumReads = 8
        }
        try await withFanOut(world, configure: oneThread) { service in
            try await service.caughtUp(with: world)
            let reads = HeldReads(fanOut: service.fanOut, partition: try service.fanOut.served("abc"))
            let first = Task { await reads.run(5, of: "a") }
            await reads.began.value()
            await reads.refused("a").value()
            let second = Task { await reads.run(3, of: "b") }
            await reads.refused("b").value()
            reads.release.signal()
            await first.value
            await second.value
            #expect(reads.order.withLock { $0 } == ["a", "a", "b", "a", "b", "a"])
        }
    }

    private func withTwoThreads(_ test: (OrderedReads) async throws -> Void) async throws {
        let world = World()
        let twoThreads = { (configuration: inout FanOutConfiguration) in
            configuration.readerThreads = 2
            configuration.longReadMemory = 3600
        }
        try world.upload([.person("p1")])
        try await withFanOut(world, configure: twoThreads) { service in
            try await service.caughtUp(with: world)
            try await test(OrderedReads(fanOut: service.fanOut, partition: try service.fanOut.served("abc")))
        }
    }

    @Test func anOwnerWithLongReadsLeavesAThreadToOthers() async throws {
        try await withTwoThreads { reads in
            let releases = (0..<3).map { _ in DispatchSemaphore(value: 0) }
            // Not known yet to be long, so that it may have either thread.
            try await reads.start("a", computing: .milliseconds(6)).task.value
            let ofA = reads.start("a", until: releases[0])
            await ofA.1.value()
            let alsoOfA = reads.start("a", until: releases[1])
            let ofB = reads.start("b", until: releases[2])
            await ofB.1.value()
            #expect(reads.order.withLock { $0 } == ["a", "a", "b"])
            // Also while that thread has nothing to do.
            releases[2].signal()
            try await ofB.task.value
            try await reads.start("c").task.value
            #expect(reads.order.withLock { $0 } == ["a", "a", "b", "c"])
            for release in releases[..<2] { release.signal() }
            for (task, _) in [ofA, alsoOfA] { try await task.value }
        }
    }

    @Test func readsQueuedBeforeTheFirstLongOneHasEndedLeaveAThreadToOthers() async throws {
        try await withTwoThreads { reads in
            let releases = (0..<4).map { _ in DispatchSemaphore(value: 0) }
            let ofB = releases[..<2].map { reads.start("b", until: $0) }
            for (_, began) in ofB { await began.value() }
            let first = reads.start("a", computing: .milliseconds(6))
            let others = releases[2...].map { reads.start("a", until: $0) }
            // The first thread was taken first; the other one has the long read, and the next.
            releases[1].signal()
            await others[0].1.value()
            releases[0].signal()
            try await reads.start("c").task.value
            #expect(reads.order.withLock { $0 } == ["b", "b", "a", "a", "c"])
            for release in releases[2...] { release.signal() }
            for (task, _) in ofB + [first] + others { try await task.value }
        }
    }

    /// As of a device that syncs while another one has a long poll: both read what the first has written.
    @Test func anOwnerWithShortReadsHasBothThreads() async throws {
        try await withTwoThreads { reads in
            let releases = (0..<2).map { _ in DispatchSemaphore(value: 0) }
            var held: [Task<Void, any Error>] = []
            for (owner, release) in zip(["a", "b"] as [SyncID], releases) {
                let (task, began) = reads.start(owner, until: release)
                await began.value()
                held.append(task)
            }
            let queued = (0..<2).map { _ in reads.start("c").task }
            // The first thread was taken first.
            releases[0].signal()
            for task in queued { try await task.value }
            #expect(reads.order.withLock { $0 } == ["a", "b", "c", "c"])
            releases[1].signal()
            for task in held { try await task.value }
        }
    }

    @Test func theWriteAheadLogIsBoundedWhilePullsOverlap() async throws {
        let registry = MetricRegistry()
        let world = World()
        let name = String(repeating: "n", count: 1000)
        for batch in 0..<10 {
            try world.upload((0..<100).map { .person("p\(batch)-\($0)", name: name, index: $0) })
        }
        let checkpointBytes = 256 << 10
        let isOver = AwaitableState(false)
        try await withFolder { folder in
            try await withFanOut(
                world, in: folder, metrics: FanOutMetrics(registry),
                configure: {
                    $0.readerThreads = 4
                    $0.checkpointBytes = checkpointBytes
                }
            ) { service in
                try await service.caughtUp(with: world)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let fanOut = service.fanOut
                    let request = PagePull(
                        owners: [OwnerPull(owner: "abc", knowledge: OwnerKnowledge())], limit: 1000,
                        maximumBytes: 1 << 30)
                    for _ in 0..<8 {
                        group.addTask {
                            while !isOver.value { _ = try await fanOut.pull(request, within: .seconds(60)) }
                        }
                    }
                    var largest = 0
                    for batch in 0..<100 {
                        try world.upload((0..<50).map { .person("q\(batch)-\($0)", name: name, index: $0) })
                        try await service.caughtUp(with: world)
                        largest = max(largest, FileOnDisk.size(of: service.file() + "-wal"))
                    }
                    isOver.update { $0 = true }
                    try await group.waitForAll()
                    // The transaction that exceeds the limit is some hundred kilobytes.
                    #expect(largest < 2 * checkpointBytes + (1 << 20))
                }
                #expect(registry.counter(.fanOutLogTruncations).value > 0)
                let rows = try await service.pull(limit: 10_000)
                let isSame = rows.text == world.stream(of: "abc").map(world.json).joined(separator: ",")
                #expect(isSame && rows.count == 6000)
            }
        }
    }
}

/// Reads in the order in which they begin.
private final class OrderedReads: Sendable {
    let fanOut: TestFanOut
    let partition: ServedPartition
    let order = Mutex<[SyncID]>([])

    init(fanOut: TestFanOut, partition: ServedPartition) {
        self.fanOut = fanOut
        self.partition = partition
    }

    /// Starts a read, which is queued or runs when this returns.
    ///
    /// - Parameter time: that it has a processor for.
    func start(
        _ owner: SyncID, until release: DispatchSemaphore? = nil, computing time: Duration = .zero
    ) -> (task: Task<Void, any Error>, Promise<Void>) {
        let began = Promise<Void>()
        let task = Task.immediate {
            try await self.fanOut.read(self.partition, of: owner, generation: self.partition.generation()) { _ in
                self.order.withLock { $0.append(owner) }
                began.fulfil(())
                let computing = ComputingTime()
                while computing.nanoseconds < Int(time / .nanoseconds(1)) {
                    computing.measure { _ = (0..<10_000).reduce(0, ^) }
                }
                release?.wait()
            }
        }
        return (task, began)
    }
}

/// Reads of which the first waits until it is released.
private final class HeldReads: Sendable {
    let fanOut: TestFanOut
    let partition: ServedPartition
    let order = Mutex<[SyncID]>([])
    let began = Promise<Void>()
    let release = DispatchSemaphore(value: 0)
    private let refusals: [SyncID: Promise<Void>] = ["a": Promise(), "b": Promise()]

    init(fanOut: TestFanOut, partition: ServedPartition) {
        self.fanOut = fanOut
        self.partition = partition
    }

    /// Fulfilled when a read of the owner was refused: all others are then queued.
    func refused(_ owner: SyncID) -> Promise<Void> { refusals[owner]! }

    func run(_ count: Int, of owner: SyncID) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<count { group.addTask { await self.run(owner) } }
        }
    }

    private func run(_ owner: SyncID) async {
        do throws(FanOutError) {
            try await fanOut.read(partition, of: owner, generation: partition.generation()) { _ in
                let isFirst = self.order.withLock { order in
                    order.append(owner)
                    return order.count == 1
                }
                guard isFirst else { return }
                self.began.fulfil(())
                self.release.wait()
            }
        } catch {
            #expect(error == .notReady("too many reads are queued"))
            refused(owner).fulfil(())
        }
    }
}
