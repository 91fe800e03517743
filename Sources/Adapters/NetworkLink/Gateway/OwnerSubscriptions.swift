import FanOutLink
import SyncModel

/// The owners whose heads a gateway follows: one subscription for each owner, at one fan-out, shared by all its subscribers.
///
/// A subscription outlives its last subscriber for a while: the long polls of a device follow each other, and a subscriber that
/// joins an existing subscription costs no message.
struct OwnerSubscriptions {
    private struct Entry {
        var subscribers: [ObjectIdentifier: Subscriber] = [:]
        /// The fan-out that sends the heads; `nil` if none serves the owner now.
        var fanOut: Int?
    }

    /// How many heartbeats a subscription outlives its last subscriber: about a minute, longer than the pause between long polls.
    private static let idleHeartbeats = 80
    /// The maximum number of subscriptions without subscribers.
    private static let maximumIdle = 16_384

    private var entries: [SyncID: Entry] = [:]
    /// The owners without subscribers, each with the heartbeats since the last one left.
    private var idle: [SyncID: Int] = [:]
    private var begun: [Int: [SyncID]] = [:]
    private var ended: [Int: [SyncID]] = [:]

    /// Every owner with a subscription.
    var owners: [SyncID] { Array(entries.keys) }

    /// Adds a subscriber.
    ///
    /// - Returns: whether the subscription is new and needs a fan-out, see ``move(_:to:)``.
    mutating func add(_ subscriber: Subscriber, to owner: SyncID) -> Bool {
        idle[owner] = nil
        let isNew = entries[owner] == nil
        entries[owner, default: Entry()].subscribers[ObjectIdentifier(subscriber)] = subscriber
        return isNew
    }

    mutating func remove(_ subscriber: Subscriber, from owner: SyncID) {
        guard entries[owner]?.subscribers.removeValue(forKey: ObjectIdentifier(subscriber)) != nil,
            entries[owner]?.subscribers.isEmpty == true
        else { return }
        if idle.count < Self.maximumIdle { idle[owner] = 0 } else { end(owner) }
    }

    /// Subscribes to an owner at another fan-out.
    mutating func move(_ owner: SyncID, to fanOut: Int?) {
        guard let entry = entries[owner], entry.fanOut != fanOut else { return }
        if let old = entry.fanOut { ended[old, default: []].append(owner) }
        if let fanOut { begun[fanOut, default: []].append(owner) }
        entries[owner]?.fanOut = fanOut
    }

    /// Records that the connection with a fan-out was lost, and all subscriptions with it.
    mutating func removeAll(of fanOut: Int) {
        for owner in entries.keys where entries[owner]?.fanOut == fanOut { entries[owner]?.fanOut = nil }
        begun[fanOut] = nil
        ended[fanOut] = nil
    }

    mutating func end(_ owner: SyncID) {
        move(owner, to: nil)
        entries[owner] = nil
        idle[owner] = nil
    }

    /// Counts a heartbeat; returns the owners whose subscriptions have been idle for long enough.
    mutating func heartbeat() -> [SyncID] {
        var expired: [SyncID] = []
        for (owner, count) in idle {
            if count >= Self.idleHeartbeats { expired.append(owner) } else { idle[owner] = count + 1 }
        }
        return expired
    }

    func subscribers(to owner: SyncID) -> [Subscriber] {
        entries[owner].map { Array($0.subscribers.values) } ?? []
    }

    /// Takes the owners to subscribe to and to unsubscribe from, by fan-out.
    mutating func takeChanges() -> (begun: [Int: [SyncID]], ended: [Int: [SyncID]]) {
        defer { (begun, ended) = ([:], [:]) }
        return (begun, ended)
    }
}
