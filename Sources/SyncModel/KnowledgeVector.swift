/// What a device holds of one owner: for each device that made rows the last timeStamp received, and a floor for the rest.
public struct OwnerKnowledge: Sendable, Hashable {
    /// The floor that a request gave (`"*"`), which may be zero; `nil` when it gave none.
    public var givenFloor: TimeStamp?
    /// The last timeStamp held of each device's rows.
    public var entries: [KnowledgeID: TimeStamp]

    /// Makes the knowledge of one owner; empty by default, which is the knowledge of a new device.
    public init(floor: TimeStamp? = nil, entries: [KnowledgeID: TimeStamp] = [:]) {
        givenFloor = floor
        self.entries = entries
    }

    /// Counts for every device that `entries` does not name; zero when not given.
    public var floor: TimeStamp {
        get { givenFloor ?? .zero }
        set { givenFloor = newValue }
    }

    /// The last timeStamp held of rows that this device made: its entry, else the floor.
    public subscript(device: KnowledgeID) -> TimeStamp { entries[device] ?? floor }

    /// The greatest number named, which must not lie above the owner's stream (I7).
    public var highest: TimeStamp { entries.values.reduce(floor, max) }
}

/// The knowledge vector: (syncId, knowledgeId) → last timeStamp a device holds.
///
/// A row is sent when its timeStamp is above the entry for (row.syncId, row.knowledgeId), absent meaning 0 (I6).
public struct KnowledgeVector: Sendable, Hashable {
    /// The knowledge of each owner that the device names.
    public var owners: [SyncID: OwnerKnowledge]

    /// Makes a vector; empty by default.
    public init(owners: [SyncID: OwnerKnowledge] = [:]) {
        self.owners = owners
    }

    /// The knowledge of one owner, empty when the vector does not name it.
    public subscript(owner: SyncID) -> OwnerKnowledge { owners[owner] ?? OwnerKnowledge() }

    /// Adds an entry, or a floor where the device is `*`.
    ///
    /// - Returns: whether the pair was new; a request that names one twice is invalid, and the first entry stays.
    public mutating func insert(_ timeStamp: TimeStamp, for device: KnowledgeID, of owner: SyncID) -> Bool {
        if device == .everyOther {
            guard self[owner].givenFloor == nil else { return false }
            owners[owner, default: OwnerKnowledge()].givenFloor = timeStamp
        } else {
            guard self[owner].entries[device] == nil else { return false }
            owners[owner, default: OwnerKnowledge()].entries[device] = timeStamp
        }
        return true
    }
}
