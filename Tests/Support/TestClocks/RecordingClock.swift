import Synchronization

/// A clock on which every sleep is over at once; it keeps how long each was to be.
package final class RecordingClock: Clock {
    /// As everywhere.
    package typealias Duration = Swift.Duration

    /// A time since the clock's making.
    package struct Instant: InstantProtocol {
        /// Since the clock's making.
        package var offset = Duration.zero

        /// Later by a duration.
        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// The time until another instant.
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Whether one is earlier.
        package static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let state = Mutex((now: Instant(), sleeps: [Duration]()))

    /// At zero.
    package init() {}

    /// How long each sleep was to be, in their order.
    package var sleeps: [Duration] { state.withLock(\.sleeps) }

    /// As far as sleeps have brought it.
    package var now: Instant { state.withLock(\.now) }

    /// Exact.
    package let minimumResolution = Duration.zero

    /// Notes the sleep, and is over.
    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        state.withLock { state in
            state.sleeps.append(state.now.duration(to: deadline))
            state.now = max(state.now, deadline)
        }
    }
}
