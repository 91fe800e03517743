import Synchronization

/// A clock that a test advances; the test can wait for sleeping tasks.
package final class ManualClock: Clock {
    /// The time since the clock's creation.
    package struct Instant: InstantProtocol {
        package var offset: Duration

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        package static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    /// A test that waits for sleepers.
    private struct Waiter {
        let isMet: @Sendable ([Instant]) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var next = 0
        var sleepers: [Int: Sleeper] = [:]
        var cancelled: Set<Int> = []
        var waiters: [Int: Waiter] = [:]

        func satisfies(_ waiter: Waiter) -> Bool { waiter.isMet(sleepers.values.map(\.deadline)) }
    }

    private let state = Mutex(State())

    package init() {}

    package var now: Instant { state.withLock { $0.now } }

    /// How many tasks sleep.
    package var sleeping: Int { state.withLock { $0.sleepers.count } }

    package var minimumResolution: Duration { .nanoseconds(1) }

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if deadline <= state.now { return .success(()) }
                    state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) } else { wakeWaiters() }
            }
        } onCancel: {
            let sleeper = state.withLock { state -> Sleeper? in
                guard let sleeper = state.sleepers.removeValue(forKey: id) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Waits until at least so many tasks sleep.
    package func sleepers(_ count: Int) async { await wait { $0.count >= count } }

    /// Waits until a task sleeps until exactly this time since the clock's creation.
    package func sleeper(until time: Duration) async { await wait { $0.contains(Instant(offset: time)) } }

    /// Waits until a task sleeps for exactly this duration from now.
    package func sleeper(for duration: Duration) async { await sleepers(1, for: duration) }

    /// Waits until at least so many tasks sleep for exactly this duration from now.
    package func sleepers(_ count: Int, for duration: Duration) async {
        let deadline = now.advanced(by: duration)
        await wait { $0.count { $0 == deadline } >= count }
    }

    /// Returns early if the test is cancelled, which its time limit does.
    private func wait(_ isMet: @escaping @Sendable ([Instant]) -> Bool) async {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return true }
                    state.waiters[id] = Waiter(isMet: isMet, continuation: continuation)
                    return false
                }
                if isCancelled { continuation.resume() } else { wakeWaiters() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: id)
                if waiter == nil { state.cancelled.insert(id) }
                return waiter
            }
            waiter?.continuation.resume()
        }
    }

    /// Advances the time and wakes the sleepers that are due.
    package func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    private func wakeWaiters() {
        let ready = state.withLock { state in
            let ready = state.waiters.filter { state.satisfies($0.value) }
            for id in ready.keys { state.waiters[id] = nil }
            return ready.values
        }
        for waiter in ready { waiter.continuation.resume() }
    }
}
