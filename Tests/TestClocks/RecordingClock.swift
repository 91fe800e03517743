import Synchronization

/// A clock on which every sleep is over at once; it keeps how long each was to be.
public final class RecordingClock: Clock {
    /// As everywhere.
    public typealias Duration = Swift.Duration

    /// A time since the clock's making.
    public struct Instant: InstantProtocol {
        /// Since the clock's making.
        public var offset = Duration.zero

        /// Later by a duration.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// The time until another instant.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Whether one is earlier.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let state = Mutex((now: Instant(), sleeps: [Duration]()))

    /// At zero.
    public init() {}

    /// How long each sleep was to be, in their order.
    public var sleeps: [Duration] { state.withLock(\.sleeps) }

    /// As far as sleeps have brought it.
    public var now: Instant { state.withLock(\.now) }

    /// Exact.
    public let minimumResolution = Duration.zero

    /// Notes the sleep, and is over.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        state.withLock { state in
            state.sleeps.append(state.now.duration(to: deadline))
            state.now = max(state.now, deadline)
        }
    }
}
