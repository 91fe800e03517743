import FanOutLink
import SyncModel

/// Whose moves a gateway wants to know, and which fan-out tells them: one subscription for an owner, however many watch it.
///
/// A subscription outlives its last watcher for a while: long polls of a device follow each other, and whoever comes while it
/// stands need not be told the head anew.
struct OwnerSubscriptions {
    private struct Entry {
        var subscribers: [ObjectIdentifier: Subscriber] = [:]
        /// Who tells its moves; `nil`: nobody serves it now.
        var fanOut: Int?
    }

    /// For how many beats a subscription outlives its last watcher: about a minute, the pause between two long polls and more.
    private static let lingeringBeats = 80
    /// How many subscriptions do so.
    private static let maximumLingering = 16_384

    private var entries: [SyncID: Entry] = [:]
    /// The owners that nobody watches just now, and since how many beats.
    private var lingering: [SyncID: Int] = [:]
    private var begun: [Int: [SyncID]] = [:]
    private var ended: [Int: [SyncID]] = [:]

    /// Every owner with a subscription.
    var owners: [SyncID] { Array(entries.keys) }

    /// Adds a caller; whether the owner has no subscription yet and must be given a place with ``move(_:to:)``.
    mutating func add(_ subscriber: Subscriber, to owner: SyncID) -> Bool {
        lingering[owner] = nil
        let isNew = entries[owner] == nil
        entries[owner, default: Entry()].subscribers[ObjectIdentifier(subscriber)] = subscriber
        return isNew
    }

    /// Takes a caller away.
    mutating func remove(_ subscriber: Subscriber, from owner: SyncID) {
        guard entries[owner]?.subscribers.removeValue(forKey: ObjectIdentifier(subscriber)) != nil,
            entries[owner]?.subscribers.isEmpty == true
        else { return }
        if lingering.count < Self.maximumLingering { lingering[owner] = 0 } else { end(owner) }
    }

    /// Has a fan-out tell an owner's moves.
    mutating func move(_ owner: SyncID, to fanOut: Int?) {
        guard let entry = entries[owner], entry.fanOut != fanOut else { return }
        if let old = entry.fanOut { ended[old, default: []].append(owner) }
        if let fanOut { begun[fanOut, default: []].append(owner) }
        entries[owner]?.fanOut = fanOut
    }

    /// The connection with a fan-out went, and all subscriptions there.
    mutating func forget(_ fanOut: Int) {
        for owner in entries.keys where entries[owner]?.fanOut == fanOut { entries[owner]?.fanOut = nil }
        begun[fanOut] = nil
        ended[fanOut] = nil
    }

    /// Ends an owner's subscription.
    mutating func end(_ owner: SyncID) {
        move(owner, to: nil)
        entries[owner] = nil
        lingering[owner] = nil
    }

    /// Counts a beat; the owners whose subscriptions nobody has wanted for long enough.
    mutating func beat() -> [SyncID] {
        var over: [SyncID] = []
        for (owner, beats) in lingering {
            if beats >= Self.lingeringBeats { over.append(owner) } else { lingering[owner] = beats + 1 }
        }
        return over
    }

    /// Who watches an owner.
    func subscribers(of owner: SyncID) -> [Subscriber] { entries[owner].map { Array($0.subscribers.values) } ?? [] }

    /// What fan-outs are to be told, once.
    mutating func takeChanges() -> (begun: [Int: [SyncID]], ended: [Int: [SyncID]]) {
        defer { (begun, ended) = ([:], [:]) }
        return (begun, ended)
    }
}
