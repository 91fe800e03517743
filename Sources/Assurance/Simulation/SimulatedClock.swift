/// The time of a run as a clock: sleepers wake when the scheduler's time comes.
struct SimulatedClock: Clock {
    /// A moment of a run.
    struct Instant: InstantProtocol {
        /// The time since the run began.
        let time: Duration

        func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
        func duration(to other: Instant) -> Duration { other.time - time }
        static func < (left: Instant, right: Instant) -> Bool { left.time < right.time }
    }

    let scheduler: Scheduler

    var now: Instant { Instant(time: scheduler.now) }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let sleeper = Sleeper()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                sleeper.begin(continuation, until: deadline.time, scheduler)
            }
        } onCancel: {
            sleeper.cancel()
        }
    }
}

/// One that sleeps.
private final class Sleeper: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private var continuation: CheckedContinuation<Void, any Error>?
    private var timer: TimerHeap.Timer?
    private var isCancelled = false

    func begin(_ continuation: CheckedContinuation<Void, any Error>, until time: Duration, _ scheduler: Scheduler) {
        if isCancelled { return continuation.resume(throwing: CancellationError()) }
        self.continuation = continuation
        timer = scheduler.schedule(at: time) { self.continuation.take()?.resume() }
    }

    func cancel() {
        isCancelled = true
        timer?.cancel()
        continuation.take()?.resume(throwing: CancellationError())
    }
}
