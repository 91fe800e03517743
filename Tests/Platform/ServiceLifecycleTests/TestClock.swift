import Synchronization

/// A clock that moves only when it is told to.
final class TestClock: Clock, Sendable {
    typealias Duration = Swift.Duration

    struct Instant: InstantProtocol {
        var offset = Duration.zero

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        func duration(to other: Instant) -> Duration { other.offset - offset }

        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant()
        var next = 0
        var sleeping: [Int: (deadline: Instant, continuation: CheckedContinuation<Bool, Never>)] = [:]
        /// Who waits for somebody to sleep that long.
        var watchers: [(duration: Duration, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var now: Instant { state.withLock(\.now) }
    let minimumResolution = Duration.zero

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let ticket = state.withLock { state in
            state.next += 1
            return state.next
        }
        let isOver = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answer, watchers): (Bool?, [CheckedContinuation<Void, Never>]) = state.withLock { state in
                    if deadline <= state.now { return (true, []) }
                    if Task.isCancelled { return (false, []) }
                    state.sleeping[ticket] = (deadline, continuation)
                    let duration = state.now.duration(to: deadline)
                    let met = state.watchers.filter { $0.duration == duration }.map(\.continuation)
                    state.watchers.removeAll { $0.duration == duration }
                    return (nil, met)
                }
                if let answer { continuation.resume(returning: answer) }
                for watcher in watchers { watcher.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleeping.removeValue(forKey: ticket) }?.continuation.resume(returning: false)
        }
        guard isOver else { throw CancellationError() }
    }

    /// Waits until somebody sleeps for so long from now.
    func untilSomebodySleeps(for duration: Duration) async {
        await withCheckedContinuation { continuation in
            let isMet = state.withLock { state in
                if state.sleeping.values.contains(where: { state.now.duration(to: $0.deadline) == duration }) {
                    return true
                }
                state.watchers.append((duration, continuation))
                return false
            }
            if isMet { continuation.resume() }
        }
    }

    /// Moves on and wakes whose time has come.
    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleeping.filter { $0.value.deadline <= state.now }
            for ticket in due.keys { state.sleeping[ticket] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume(returning: true) }
    }
}
