import Glibc

/// The jobs that wait for one thread.
///
/// The thread takes all of them under one lock, and waits on a condition when there are none.
///
/// `@unchecked Sendable`: every stored variable is read and written only while `mutex` is held; the two pointers are
/// set once, and freed when nobody refers to the line any more.
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
    /// As long as the number of tasks that use the thread, see `DedicatedThread`.
    private var jobs: [UnownedJob] = []
    /// Those who wait in `close()`; as many as callers.
    private var closers: [CheckedContinuation<Void, Never>] = []

    init() {
        mutex = .allocate(capacity: 1)
        arrival = .allocate(capacity: 1)
        let mutexCode = pthread_mutex_init(mutex, nil)
        let conditionCode = pthread_cond_init(arrival, nil)
        precondition(mutexCode == 0 && conditionCode == 0, "a mutex with default attributes can always be made")
    }

    deinit {
        pthread_cond_destroy(arrival)
        pthread_mutex_destroy(mutex)
        arrival.deallocate()
        mutex.deallocate()
    }

    func append(_ job: UnownedJob) {
        pthread_mutex_lock(mutex)
        precondition(phase != .ended, "a job arrived at a dedicated thread that is closed")
        jobs.append(job)
        // Within the lock: once it is let go, the job may run and end the last use of the thread and of this line.
        if isWaiting { pthread_cond_signal(arrival) }
        isWaiting = false
        pthread_mutex_unlock(mutex)
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
    /// Never inlined: the C library declares `pthread_self()` free of effects, so in an async function the compiler may
    /// reuse its result after a suspension, on another thread. The lock, which is an effect, keeps two calls of this
    /// apart.
    @inline(never)
    var isServedByCurrentThread: Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard let thread else { return false }
        return pthread_equal(thread, pthread_self()) != 0
    }

    /// Makes the calling thread the one that runs the jobs; returns when the line was closed and is empty.
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

    /// Swaps the waiting jobs into an empty batch, waiting until there are some; false when the line has ended.
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
