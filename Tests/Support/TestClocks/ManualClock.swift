import Synchronization

/// A clock that stands still until a test moves it, and tells who sleeps.
package final class ManualClock: Clock {
    /// A time since the clock's making.
    package struct Instant: InstantProtocol {
        /// Since the clock's making.
        package var offset: Duration

        /// Later by a duration.
        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// The time until another instant.
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Whether one is earlier.
        package static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    /// Somebody who waits until sleepers with certain deadlines are there.
    private struct Watcher {
        let isContent: @Sendable ([Instant]) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var next = 0
        var sleepers: [Int: Sleeper] = [:]
        var cancelled: Set<Int> = []
        var watchers: [Watcher] = []

        func satisfies(_ watcher: Watcher) -> Bool { watcher.isContent(sleepers.values.map(\.deadline)) }
    }

    private let state = Mutex(State())

    /// At zero.
    package init() {}

    /// As far as it was moved.
    package var now: Instant { state.withLock { $0.now } }

    /// Exact.
    package var minimumResolution: Duration { .nanoseconds(1) }

    /// Sleeps until the clock is moved there.
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
                if let outcome { continuation.resume(with: outcome) } else { wakeWatchers() }
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

    /// Waits until so many sleep.
    package func sleepers(_ count: Int) async { await watch { $0.count >= count } }

    /// Waits until somebody sleeps until exactly this time since the clock's making.
    package func sleeper(until time: Duration) async { await watch { $0.contains(Instant(offset: time)) } }

    private func watch(_ isContent: @escaping @Sendable ([Instant]) -> Bool) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.watchers.append(Watcher(isContent: isContent, continuation: continuation)) }
            wakeWatchers()
        }
    }

    /// Moves the time on and wakes those whose time has come.
    package func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    private func wakeWatchers() {
        let ready = state.withLock { state in
            let ready = state.watchers.filter(state.satisfies)
            state.watchers = state.watchers.filter { !state.satisfies($0) }
            return ready
        }
        for watcher in ready { watcher.continuation.resume() }
    }
}
