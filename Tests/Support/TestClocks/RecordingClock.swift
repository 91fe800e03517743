import Synchronization

/// A clock whose sleeps end at once; it records their durations.
package final class RecordingClock: Clock {
    package typealias Duration = Swift.Duration

    /// The time since the clock's creation.
    package struct Instant: InstantProtocol {
        package var offset = Duration.zero

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        package static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let state = Mutex((now: Instant(), sleeps: [Duration]()))

    package init() {}

    /// The durations of all sleeps, in order.
    package var sleeps: [Duration] { state.withLock(\.sleeps) }

    /// Advanced by the sleeps.
    package var now: Instant { state.withLock(\.now) }

    package let minimumResolution = Duration.zero

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        state.withLock { state in
            state.sleeps.append(state.now.duration(to: deadline))
            state.now = max(state.now, deadline)
        }
    }
}
