import SyncModel

/// The admitted changes of a batch by owner: the caller first, then the others in the order of their first appearance.
struct OwnerParts {
    /// One owner in the batch.
    struct Owner {
        let id: SyncID
        /// Whether the caller may write its data.
        let isWritable: Bool
        /// What was admitted, in the request's order.
        var changes: [Change] = []
        /// Whether a change of it was refused.
        var hasRefusal = false
    }

    /// As many as the batch names, with the caller.
    private(set) var owners: [Owner]
    private var places: [SyncID: Int]
    private let writable: Set<SyncID>

    init(caller: SyncID, grants: [Grant]) {
        writable = Set(grants.lazy.filter { $0.access == .write }.map(\.owner))
        owners = [Owner(id: caller, isWritable: writable.contains(caller))]
        places = [caller: 0]
    }

    /// The place of the owner that a change names, which is the caller's where it names none.
    mutating func place(of owner: SyncID?) -> Int {
        guard let owner else { return 0 }
        if let place = places[owner] { return place }
        places[owner] = owners.count
        owners.append(Owner(id: owner, isWritable: writable.contains(owner)))
        return owners.count - 1
    }

    /// Adds a change to the owner at a place.
    mutating func add(_ change: Change, at place: Int) { owners[place].changes.append(change) }

    /// Notes that a change of the owner at a place was refused.
    mutating func noteRefusal(at place: Int) { owners[place].hasRefusal = true }

    /// Takes away what was admitted for the owner at a place.
    mutating func removeChanges(at place: Int) -> [Change] {
        defer { owners[place].changes = [] }
        return owners[place].changes
    }
}
