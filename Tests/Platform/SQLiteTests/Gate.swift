import Glibc

/// Holds a database's thread inside a closure until it is let go, and tells a test when it got there.
///
/// `@unchecked Sendable`: the flag is read and written only while `mutex` is held; the pointers are set once.
final class Gate: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let change = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isOpen = false
    /// Ends when the gate is reached; holds no elements.
    private let arrival = AsyncStream.makeStream(of: Never.self)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(change, nil)
    }

    deinit {
        pthread_cond_destroy(change)
        pthread_mutex_destroy(mutex)
        change.deallocate()
        mutex.deallocate()
    }

    /// Waits, blocking the thread, until the gate is open.
    func pass() {
        arrival.continuation.finish()
        pthread_mutex_lock(mutex)
        while !isOpen { pthread_cond_wait(change, mutex) }
        pthread_mutex_unlock(mutex)
    }

    /// Returns when somebody waits at the gate.
    func isReached() async {
        for await _ in arrival.stream {}
    }

    func open() {
        pthread_mutex_lock(mutex)
        isOpen = true
        pthread_cond_broadcast(change)
        pthread_mutex_unlock(mutex)
    }
}
