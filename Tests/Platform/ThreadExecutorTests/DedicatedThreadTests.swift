import CThreads
import Glibc
import Synchronization
import TestResources
import Testing
import ThreadExecutor

/// The calling thread.
///
/// The C library declares `pthread_self()` free of side effects, so the optimizer may reuse its result after a suspension,
/// on another thread; the counter is a side effect that prevents it.
@inline(never)
private func currentThread() -> UInt {
    calls.add(1, ordering: .relaxed)
    return UInt(pthread_self())
}

private let calls = Atomic(0)

private actor Resident {
    nonisolated let thread: DedicatedThread
    private var entries: [Int] = []

    init(thread: DedicatedThread) {
        self.thread = thread
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    func append(_ value: Int) -> UInt {
        entries.append(value)
        return currentThread()
    }

    func appendBothSides(of other: Resident) async -> [UInt] {
        var threads = [append(0)]
        threads.append(await other.append(1))
        threads.append(currentThread())
        return threads
    }

    /// Queues a job that waits at the gate and then starts a chain of jobs, each queued by the previous one.
    func startChain(of count: Int, countedBy counter: Counter, behind gate: ThreadGate) {
        Task {
            gate.pass()
            runChain(count, countedBy: counter)
        }
    }

    private func runChain(_ count: Int, countedBy counter: Counter) {
        guard count > 0 else { return }
        counter.value.add(1, ordering: .relaxed)
        Task { runChain(count - 1, countedBy: counter) }
    }

    var all: [Int] { entries }
}

@Suite struct DedicatedThreadTests {
    @Test func runsAllJobsOfAnActorOnItsThread() async throws {
        let thread = try DedicatedThread(name: "test")
        let resident = Resident(thread: thread)
        let places = await withTaskGroup(of: (caller: UInt, resident: UInt).self) { group in
            for value in 0..<2000 {
                group.addTask { (currentThread(), await resident.append(value)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let threads = Set(places.map(\.resident))
        #expect(threads.count == 1)
        let callers = Set(places.map(\.caller))
        #expect(threads.isDisjoint(with: callers))
        #expect(await resident.all.sorted() == Array(0..<2000))
        await thread.close()
    }

    @Test func returnsToItsThreadAfterASuspension() async throws {
        let first = try DedicatedThread(name: "first")
        let second = try DedicatedThread(name: "second")
        let threads = await Resident(thread: first).appendBothSides(of: Resident(thread: second))
        #expect(threads[0] == threads[2])
        #expect(threads[0] != threads[1])
        await first.close()
        await second.close()
    }

    @Test func runsASingleClosureWithItsTypedError() async throws {
        struct Refusal: Error, Equatable { let code: Int }
        let thread = try DedicatedThread(name: "test")
        let isCurrent = await thread.run { thread.isCurrent }
        #expect(isCurrent)
        #expect(!thread.isCurrent)
        await #expect(throws: Refusal(code: 7)) {
            try await thread.run { () throws(Refusal) -> Int in throw Refusal(code: 7) }
        }
        await thread.close()
    }

    @Test func runsJobsInTheOrderOfArrival() async throws {
        let thread = try DedicatedThread(name: "test")
        let resident = Resident(thread: thread)
        for value in 0..<100 { _ = await resident.append(value) }
        #expect(await resident.all == Array(0..<100))
        await thread.close()
    }

    @Test func runsATaskThatPrefersIt() async throws {
        @concurrent func place() async -> UInt { currentThread() }
        let thread = try DedicatedThread(name: "test")
        let own = await thread.run { currentThread() }
        let preferred = await withTaskExecutorPreference(thread) { await place() }
        #expect(preferred == own)
        #expect(await place() != own)
        await thread.close()
    }

    @Test func knowsItsOwnIsolation() async throws {
        let thread = try DedicatedThread(name: "test")
        let other = try DedicatedThread(name: "other")
        let resident = Resident(thread: thread)
        await thread.run { resident.assumeIsolated { _ in } }
        #expect(await thread.run { thread.isIsolatingCurrentContext() } == true)
        #expect(await other.run { thread.isIsolatingCurrentContext() } == false)
        #expect(!thread.isSameExclusiveExecutionContext(other: other))
        await thread.close()
        await other.close()
    }

    @Test func cutsItsNameTo15Bytes() async throws {
        let thread = try DedicatedThread(name: "weir-ünïcode-names")
        let name = await thread.run {
            var bytes = [CChar](repeating: 0, count: 64)
            pthread_getname_np(pthread_self(), &bytes, bytes.count)
            return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        #expect(name == "weir-ünïcode-")
        await thread.close()
    }

    /// Where the system has time slices of threads, as for none with the policy `idle`.
    @Test(.enabled(if: sched_getscheduler(0) == SCHED_OTHER))
    func threadsInTheBackgroundHaveLongerTimeSlicesThanOthers() async throws {
        let first = try DedicatedThread(name: "first")
        let second = try DedicatedThread(name: "second", isBackground: true)
        let own = await first.run { weir_time_slice() }
        let (background, third) = try await second.run {
            (weir_time_slice(), try DedicatedThread(name: "started by the second"))
        }
        #expect(own == 0 || background > own)
        #expect(await third.run { weir_time_slice() } == own)
        for thread in [first, second, third] { await thread.close() }
    }

    @Test func closesAfterTheQueuedJobs() async throws {
        let thread = try DedicatedThread(name: "test")
        let gate = ThreadGate()
        let counter = Counter()
        await Resident(thread: thread).startChain(of: 50, countedBy: counter, behind: gate)
        let closers = (0..<2).map { _ in Task.immediate { await thread.close() } }
        gate.open()
        for closer in closers { await closer.value }
        #expect(counter.value.load(ordering: .relaxed) == 50)
        await thread.close()
    }

    @Test func trapsWhenAJobArrivesAfterTheClose() async {
        await #expect(processExitsWith: .trap) {
            let thread = try DedicatedThread(name: "test")
            await thread.close()
            await thread.run {}
        }
    }

    @Test func trapsWhenIsolationIsAssumedElsewhere() async {
        await #expect(processExitsWith: .trap) {
            let thread = try DedicatedThread(name: "test")
            enterWithoutHop(Resident(thread: thread))
        }
    }
}

/// Wrongly assumes that the caller is on the resident's thread.
private func enterWithoutHop(_ resident: Resident) {
    resident.assumeIsolated { _ in }
}

private final class Counter: Sendable {
    let value = Atomic(0)
}
