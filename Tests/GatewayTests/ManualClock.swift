import Synchronization

/// A clock that stands still until a test moves it.
final class ManualClock: Clock {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let until: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now: Duration = .zero
        var next = 0
        var sleepers: [Int: Sleeper] = [:]
        var observers: [(until: Duration, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var now: Instant { Instant(offset: state.withLock(\.now)) }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let (mayPass, observers): (Bool, [CheckedContinuation<Void, Never>]) = state.withLock { state in
                    if Task.isCancelled || deadline.offset <= state.now { return (true, []) }
                    state.sleepers[number] = Sleeper(until: deadline.offset, continuation: continuation)
                    let observers = state.observers.filter { $0.until == deadline.offset }.map(\.1)
                    state.observers.removeAll { $0.until == deadline.offset }
                    return (false, observers)
                }
                for observer in observers { observer.resume() }
                if mayPass {
                    continuation.resume(with: Result { try Task.checkCancellation() })
                }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: number) }?.continuation.resume(
                throwing: CancellationError())
        }
    }

    /// Moves the time on and wakes whoever's time has come.
    func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in woken { continuation.resume() }
    }

    /// Waits until somebody sleeps until exactly this time.
    func sleeper(until time: Duration) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.sleepers.values.contains(where: { $0.until == time }) { return true }
                state.observers.append((time, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
