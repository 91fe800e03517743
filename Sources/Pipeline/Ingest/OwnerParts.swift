import SyncModel

/// The admitted changes of a batch by owner: the caller first, then the others in the order of their first appearance.
struct OwnerParts {
    /// One owner in the batch.
    struct Owner {
        let id: SyncID
        let isWritable: Bool
        /// The admitted changes, in the request's order.
        var changes: [Change] = []
        var hasRefusal = false
    }

    /// The caller and the other owners that the batch names.
    private(set) var owners: [Owner]
    private var indices: [SyncID: Int]
    private let writable: Set<SyncID>

    init(caller: SyncID, grants: [Grant]) {
        writable = Set(grants.lazy.filter { $0.access == .write }.map(\.owner))
        owners = [Owner(id: caller, isWritable: writable.contains(caller))]
        indices = [caller: 0]
    }

    /// The index of the owner that a change names; the caller's where it names none.
    mutating func index(of owner: SyncID?) -> Int {
        guard let owner else { return 0 }
        if let index = indices[owner] { return index }
        indices[owner] = owners.count
        owners.append(Owner(id: owner, isWritable: writable.contains(owner)))
        return owners.count - 1
    }

    mutating func add(_ change: Change, at index: Int) { owners[index].changes.append(change) }

    mutating func recordRefusal(at index: Int) { owners[index].hasRefusal = true }

    /// Removes the admitted changes of an owner.
    mutating func removeChanges(at index: Int) -> [Change] {
        defer { owners[index].changes = [] }
        return owners[index].changes
    }
}
