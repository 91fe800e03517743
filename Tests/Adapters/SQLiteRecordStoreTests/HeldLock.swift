import Dispatch

/// Keeps a transaction of another connection open on its thread until the test has seen what that does.
final class HeldLock: Sendable {
    private let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
    private let released = DispatchSemaphore(value: 0)

    /// Says that the lock is held, and blocks the calling thread, which is the database's own, until `release()`.
    func hold() {
        arrival.finish()
        released.wait()
    }

    /// Returns once `hold()` was called.
    func waitUntilHeld() async {
        for await _ in arrivals {}
    }

    /// Lets the holder go on.
    func release() { released.signal() }
}
