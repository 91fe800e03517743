/// The clock of a run: sleepers wake when the scheduler's time reaches their deadlines.
struct SimulatedClock: Clock {
    struct Instant: InstantProtocol {
        /// Since the start of the run.
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

/// The difference between the run's clock and the log's.
final class Skew: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private var offset: Duration = .zero

    /// 2026-01-01, in microseconds since 1970.
    private static let start: Int64 = 1_767_225_600_000_000

    func change(by duration: Duration) { offset += duration }

    /// Microseconds since 1970.
    func time(at now: Duration) -> Int64 {
        let (seconds, attoseconds) = (now + offset).components
        return Self.start + seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}

/// Timers by time; those of one time in the order in which they were set.
struct TimerHeap {
    final class Timer {
        fileprivate let time: Duration
        fileprivate let number: Int
        private var action: (() -> Void)?

        fileprivate init(time: Duration, number: Int, _ action: @escaping () -> Void) {
            self.time = time
            self.number = number
            self.action = action
        }

        func cancel() { action = nil }

        var isCancelled: Bool { action == nil }

        func fire() { action.take()?() }

        fileprivate func isBefore(_ other: Timer) -> Bool { (time, number) < (other.time, other.number) }
    }

    private var heap: [Timer] = []
    private var lastNumber = 0

    var isEmpty: Bool { heap.allSatisfy(\.isCancelled) }

    /// The time of the next timer.
    var nextTime: Duration? {
        mutating get {
            while let first = heap.first, first.isCancelled { removeFirst() }
            return heap.first?.time
        }
    }

    mutating func insert(at time: Duration, _ action: @escaping () -> Void) -> Timer {
        lastNumber += 1
        let timer = Timer(time: time, number: lastNumber, action)
        heap.append(timer)
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        return timer
    }

    /// Removes the first timer if it is due.
    mutating func removeFirst(before now: Duration) -> Timer? {
        guard let time = nextTime, time <= now else { return nil }
        return removeFirst()
    }

    @discardableResult
    private mutating func removeFirst() -> Timer? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        if heap.isEmpty { return first }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least])
            {
                least = child
            }
            if least == parent { return first }
            heap.swapAt(least, parent)
            parent = least
        }
    }
}
