import Synchronization

/// Time that passes only by sleeping: a sleep ends at once, or, when stuck, by cancellation alone.
final class TestClock: Clock {
    struct Instant: InstantProtocol {
        var offset: Swift.Duration = .zero

        func advanced(by duration: Swift.Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Swift.Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    let minimumResolution = Swift.Duration.nanoseconds(1)
    let sleeps = Tally()
    private let isStuck: Bool
    private let state = Mutex((now: Instant(), slept: [Swift.Duration]()))

    init(isStuck: Bool = false) { self.isStuck = isStuck }

    var now: Instant { state.withLock { $0.now } }

    /// How long each sleep was to be.
    var slept: [Swift.Duration] { state.withLock { $0.slept } }

    func sleep(until deadline: Instant, tolerance: Swift.Duration?) async throws {
        state.withLock { state in
            state.slept.append(state.now.duration(to: deadline))
            state.now = deadline
        }
        sleeps.add()
        guard isStuck else { return }
        // Nobody yields: only cancellation ends it.
        let (never, _) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        throw CancellationError()
    }
}
