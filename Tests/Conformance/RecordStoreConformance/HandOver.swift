import Dispatch

/// Blocks the thread that reads a snapshot, at points that a case chooses, until the case has done something.
final class HandOver: Sendable {
    /// One for each `offer()`; ends with `end()`.
    let offers: AsyncStream<Void>
    private let offered: AsyncStream<Void>.Continuation
    private let accepted = DispatchSemaphore(value: 0)

    init() {
        (offers, offered) = AsyncStream.makeStream()
    }

    /// Blocks the calling thread, which is the store's own, until the case has called `accept()`.
    func offer() {
        offered.yield()
        accepted.wait()
    }

    /// Resumes the reading thread.
    func accept() { accepted.signal() }

    /// Says that no more offers come.
    func end() { offered.finish() }
}
