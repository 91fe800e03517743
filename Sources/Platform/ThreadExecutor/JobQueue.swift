import Glibc

/// The jobs that wait for one thread, which takes all of them under one lock and waits on a condition when there are none.
///
/// `@unchecked Sendable`: every stored variable is read and written only while `mutex` is held; the two pointers are
/// set once.
final class JobQueue: @unchecked Sendable {
    private enum Phase {
        case open
        case closing
        case ended
    }

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let arrival: UnsafeMutablePointer<pthread_cond_t>
    private var phase = Phase.open
    private var isWaiting = false
    private var thread: pthread_t?
    /// Bounded by the number of tasks that use the thread, see `DedicatedThread`.
    private var jobs: [UnownedJob] = []
    /// The callers of `close()`.
    private var closers: [CheckedContinuation<Void, Never>] = []

    init() {
        mutex = .allocate(capacity: 1)
        arrival = .allocate(capacity: 1)
        let mutexCode = pthread_mutex_init(mutex, nil)
        let conditionCode = pthread_cond_init(arrival, nil)
        precondition(mutexCode == 0 && conditionCode == 0, "creating a mutex with default attributes failed")
    }

    deinit {
        pthread_cond_destroy(arrival)
        pthread_mutex_destroy(mutex)
        arrival.deallocate()
        mutex.deallocate()
    }

    func append(_ job: UnownedJob) {
        // The job may run as soon as the lock is released, and release the last reference to this queue.
        let queue = Unmanaged.passRetained(self)
        defer { queue.release() }
        pthread_mutex_lock(mutex)
        precondition(phase != .ended, "a job arrived at a dedicated thread that is closed")
        jobs.append(job)
        let isWaiting = isWaiting
        self.isWaiting = false
        pthread_mutex_unlock(mutex)
        // After the lock: a thread that is resumed at once, on this processor, would wait for it.
        if isWaiting { pthread_cond_signal(arrival) }
    }

    func close(then closer: CheckedContinuation<Void, Never>) {
        pthread_mutex_lock(mutex)
        let hasEnded = phase == .ended
        if !hasEnded {
            phase = .closing
            closers.append(closer)
            pthread_cond_signal(arrival)
        }
        pthread_mutex_unlock(mutex)
        if hasEnded { closer.resume() }
    }

    /// Whether the calling thread is inside `serve`.
    ///
    /// Never inlined: the C library declares `pthread_self()` free of side effects, so in an async function the compiler may
    /// reuse its result after a suspension, on another thread. The lock is a side effect, which prevents that.
    @inline(never)
    var isServedByCurrentThread: Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard let thread else { return false }
        return pthread_equal(thread, pthread_self()) != 0
    }

    /// Runs the jobs on the calling thread; returns when the queue is closed and empty.
    func serve(_ run: (UnownedJob) -> Void) {
        pthread_mutex_lock(mutex)
        thread = pthread_self()
        pthread_mutex_unlock(mutex)
        var batch: [UnownedJob] = []
        while take(into: &batch) {
            for job in batch { run(job) }
            batch.removeAll(keepingCapacity: true)
        }
        pthread_mutex_lock(mutex)
        let waiting = closers
        closers = []
        pthread_mutex_unlock(mutex)
        for closer in waiting { closer.resume() }
    }

    /// Swaps the waiting jobs into an empty batch, waiting until there are some; false when the queue has ended.
    private func take(into batch: inout [UnownedJob]) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while jobs.isEmpty && phase == .open {
            isWaiting = true
            pthread_cond_wait(arrival, mutex)
        }
        isWaiting = false
        guard !jobs.isEmpty else {
            phase = .ended
            thread = nil
            return false
        }
        swap(&jobs, &batch)
        return true
    }
}
