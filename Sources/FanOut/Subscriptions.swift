import FanOutLink
import SyncModel
import Synchronization

/// Who wants to know when an owner's head moves.
///
/// As many as there are callers of `subscribe`, who bound their long polls and watchers.
final class Subscriptions: Sendable {
    private let byOwner = Mutex<[SyncID: [ObjectIdentifier: Subscriber]]>([:])

    /// Adds a subscriber to an owner.
    func add(_ subscriber: Subscriber, to owner: SyncID) {
        byOwner.withLock { $0[owner, default: [:]][ObjectIdentifier(subscriber)] = subscriber }
    }

    /// Takes a subscriber away from an owner.
    func remove(_ subscriber: Subscriber, from owner: SyncID) {
        byOwner.withLock { byOwner in
            byOwner[owner]?[ObjectIdentifier(subscriber)] = nil
            if byOwner[owner]?.isEmpty == true { byOwner[owner] = nil }
        }
    }

    /// Tells the subscribers of owners whose heads moved.
    func notify(_ heads: [SyncID: OwnerHeads]) {
        let calls = byOwner.withLock { byOwner -> [(Subscriber, SyncID, TimeStamp)] in
            if byOwner.isEmpty { return [] }
            return heads.flatMap { owner, heads in byOwner[owner]?.values.map { ($0, owner, heads.head) } ?? [] }
        }
        for (subscriber, owner, head) in calls { subscriber.call(owner, head) }
    }

    /// The owners that somebody subscribed to.
    var owners: [SyncID] { byOwner.withLock { Array($0.keys) } }
}

/// One caller of `subscribe`.
final class Subscriber: Sendable {
    /// `nil` once it was cancelled.
    private let moved: Mutex<(@Sendable (SyncID, TimeStamp) -> Void)?>

    init(_ moved: @escaping @Sendable (SyncID, TimeStamp) -> Void) { self.moved = Mutex(moved) }

    /// Calls it, unless it was cancelled.
    ///
    /// Under the lock, so that no call begins once ``cancel()`` has returned: what is called only notes the fact.
    func call(_ owner: SyncID, _ head: TimeStamp) { moved.withLock { $0?(owner, head) } }

    /// Lets no further call begin.
    func cancel() {
        // What the closure holds is let go of outside of the lock: it may be this subscriber.
        let moved = moved.withLock { moved in
            defer { moved = nil }
            return moved
        }
        _ = consume moved
    }
}

/// What a caller of `subscribe` holds; it ends with this object at the latest.
final class OwnersSubscription: FanOutSubscription {
    private let subscriber: Subscriber
    private let places: [(Subscriptions, SyncID)]

    init(_ subscriber: Subscriber, places: [(Subscriptions, SyncID)]) {
        self.subscriber = subscriber
        self.places = places
        for (subscriptions, owner) in places { subscriptions.add(subscriber, to: owner) }
    }

    deinit { cancel() }

    func cancel() {
        subscriber.cancel()
        for (subscriptions, owner) in places { subscriptions.remove(subscriber, from: owner) }
    }
}
