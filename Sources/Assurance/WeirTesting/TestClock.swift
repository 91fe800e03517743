import AsyncPrimitives
import Synchronization

/// The time of a kit's networks, which passes where a test says so.
public final class TestClock: Sendable {
    private struct State {
        var now: Duration = .zero
        var next = 0
        var sleepers: [Int: (until: Duration, end: Promise<Bool>)] = [:]
        var observers: [(count: Int, end: Promise<Bool>)] = []

        mutating func takeDue() -> [Promise<Bool>] {
            let due = sleepers.filter { $0.value.until <= now }
            for number in due.keys { sleepers[number] = nil }
            return due.values.map(\.end)
        }

        mutating func takeObservers() -> [Promise<Bool>] {
            let met = observers.filter { $0.count <= sleepers.count }
            observers.removeAll { $0.count <= sleepers.count }
            return met.map(\.end)
        }
    }

    private let state = Mutex(State())

    init() {}

    /// The time since the kit was made.
    public var now: Duration { state.withLock { $0.now } }

    /// Lets time pass: requests that were delayed as long go on.
    public func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            return state.takeDue()
        }
        for end in due { end.fulfil(true) }
    }

    /// Waits until at least so many requests are delayed.
    ///
    /// - Throws: `CancellationError`.
    public func delayedRequests(_ count: Int = 1) async throws {
        let end = Promise<Bool>()
        let met = state.withLock { state in
            state.observers.append((count, end))
            return state.takeObservers()
        }
        for end in met { end.fulfil(true) }
        if await !end.value(cancelled: false) { throw CancellationError() }
    }

    /// Waits until so much time has passed.
    func sleep(for duration: Duration) async throws {
        let end = Promise<Bool>()
        let (number, met) = state.withLock { state in
            state.next += 1
            state.sleepers[state.next] = (state.now + duration, end)
            return (state.next, state.takeObservers())
        }
        for end in met { end.fulfil(true) }
        let hasPassed = await end.value(cancelled: false)
        state.withLock { $0.sleepers[number] = nil }
        if !hasPassed { throw CancellationError() }
    }

    /// Ends all delays.
    func releaseAll() {
        let ends = state.withLock { state in
            defer { state.sleepers = [:] }
            return state.sleepers.values.map(\.end)
        }
        for end in ends { end.fulfil(true) }
    }
}
