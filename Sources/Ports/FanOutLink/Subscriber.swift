import SyncModel
import Synchronization

/// One caller of ``FanOutLink/subscribe(to:moved:)``, as whoever serves the link keeps it.
package final class Subscriber: Sendable {
    /// `nil` once it was cancelled.
    private let moved: Mutex<(@Sendable (SyncID, TimeStamp) -> Void)?>

    /// Tells a caller.
    package init(_ moved: @escaping @Sendable (SyncID, TimeStamp) -> Void) { self.moved = Mutex(moved) }

    /// Calls it, unless it was cancelled.
    ///
    /// Under the lock, so that no call begins once ``cancel()`` has returned: what is called only notes the fact.
    package func call(_ owner: SyncID, _ head: TimeStamp) { moved.withLock { $0?(owner, head) } }

    /// Lets no further call begin.
    package func cancel() {
        // What the closure holds is let go of outside of the lock: it may be this subscriber.
        let moved = moved.withLock { moved in
            defer { moved = nil }
            return moved
        }
        _ = consume moved
    }
}
