/// Which changes of one part were applied before it, and which it has applied: a change with a `changeId` is applied once.
struct AppliedChanges {
    /// The refusal of a change with other content than the one that was applied under its id.
    static let mismatch = ChangeResult.Status.refused(
        .changeMismatch,
        message:
            "this changeId was used before, for a change with other content that was applied: use each for one change")

    /// Those that were applied before the part, by the ids of its changes.
    private var earlier: [ShortDigest: AppliedChange] = [:]
    /// The last change of each row that was applied before the part; from rules version 7 on.
    private var lastRepeats: [RowKey: Int] = [:]
    /// Those that the part has applied, in order.
    private(set) var own: [AppliedChange] = []
    /// The index in `own`.
    private var ownIndex: [ShortDigest: Int] = [:]

    /// - Parameter known: returns the change that the device had applied for the owner, before the part, under an id.
    init(of part: ChangePart, known: (ShortDigest) -> AppliedChange?) {
        for (index, change) in part.changes.enumerated() {
            guard let identity = part.identity(of: change), let first = known(identity.id) else { continue }
            earlier[identity.id] = first
            guard part.rules >= 7, first.identity.content == identity.content else { continue }
            lastRepeats[RowKey(table: change.table, owner: part.owner, id: change.id)] = index
        }
    }

    /// The change that was applied under an id, and whether by the part; `nil` where none was.
    func first(under id: ShortDigest) -> (change: AppliedChange, isOwn: Bool)? {
        ownIndex[id].map { (change: own[$0], isOwn: true) } ?? earlier[id].map { (change: $0, isOwn: false) }
    }

    /// Whether a later change of the row was applied before the part: a change at this index that was not would replace what its device did
    /// after it.
    func isOvertaken(_ key: RowKey, at index: Int) -> Bool { lastRepeats[key].map { index < $0 } ?? false }

    /// Keeps a change if it was applied.
    mutating func record(_ identity: ChangeIdentity, _ status: ChangeResult.Status) {
        guard let change = AppliedChange(identity, status) else { return }
        ownIndex[identity.id] = own.count
        own.append(change)
    }

    /// The part is aborted.
    mutating func discardOwn() { (own, ownIndex) = ([], [:]) }
}
