import FanOutLink
import SyncModel
import Synchronization

/// The subscribers to the heads of owners.
///
/// Bounded by the callers of `subscribe`, which limit their long polls and watchers.
final class Subscriptions: Sendable {
    private let byOwner = Mutex<[SyncID: [ObjectIdentifier: Subscriber]]>([:])

    func add(_ subscriber: Subscriber, to owner: SyncID) {
        byOwner.withLock { $0[owner, default: [:]][ObjectIdentifier(subscriber)] = subscriber }
    }

    func remove(_ subscriber: Subscriber, from owner: SyncID) {
        byOwner.withLock { byOwner in
            byOwner[owner]?[ObjectIdentifier(subscriber)] = nil
            if byOwner[owner]?.isEmpty == true { byOwner[owner] = nil }
        }
    }

    /// Calls the subscribers of owners whose heads advanced.
    func notify(_ heads: [SyncID: OwnerHeads]) {
        let calls = byOwner.withLock { byOwner -> [(Subscriber, SyncID, TimeStamp)] in
            if byOwner.isEmpty { return [] }
            return heads.flatMap { owner, heads in byOwner[owner]?.values.map { ($0, owner, heads.head) } ?? [] }
        }
        for (subscriber, owner, head) in calls { subscriber.call(owner, head) }
    }

    /// The owners with subscribers.
    var owners: [SyncID] { byOwner.withLock { Array($0.keys) } }
}

/// A subscription to several owners; it ends with this object at the latest.
final class OwnersSubscription: FanOutSubscription {
    private let subscriber: Subscriber
    private let subscriptions: [(Subscriptions, SyncID)]

    init(_ subscriber: Subscriber, subscriptions: [(Subscriptions, SyncID)]) {
        self.subscriber = subscriber
        self.subscriptions = subscriptions
        for (registry, owner) in subscriptions { registry.add(subscriber, to: owner) }
    }

    deinit { cancel() }

    func cancel() {
        subscriber.cancel()
        for (registry, owner) in subscriptions { registry.remove(subscriber, from: owner) }
    }
}
