/// What a device holds of one owner: for each device that made rows the last timeStamp received, and a floor for the rest.
package struct OwnerKnowledge: Sendable, Hashable {
    /// The floor that a request gave (`"*"`), which may be zero; `nil` when it gave none.
    package var givenFloor: TimeStamp?
    /// The last timeStamp held of each device's rows.
    package var entries: [KnowledgeID: TimeStamp]
    /// The head of the stream that the device's last page of this owner was cut from; `nil` when it was not cut.
    ///
    /// The entries after a page that was cut count rows as held that had moved on in that stream already. One that has not come
    /// so far would not send what they moved to, and yet find nothing missing.
    package var cutFrom: TimeStamp?

    /// Makes the knowledge of one owner; empty by default, which is the knowledge of a new device.
    package init(floor: TimeStamp? = nil, entries: [KnowledgeID: TimeStamp] = [:], cutFrom: TimeStamp? = nil) {
        givenFloor = floor
        self.entries = entries
        self.cutFrom = cutFrom
    }

    /// Counts for every device that `entries` does not name; zero when not given.
    package var floor: TimeStamp {
        get { givenFloor ?? .zero }
        set { givenFloor = newValue }
    }

    /// The last timeStamp held of rows that this device made: its entry, else the floor.
    package subscript(device: KnowledgeID) -> TimeStamp { entries[device] ?? floor }

    /// The greatest number among the entries and the floor.
    package var highest: TimeStamp { entries.values.reduce(floor, max) }

    /// The head that a stream must have reached to answer (I7): the greatest number named, that of a page which was cut included.
    package var requiredHead: TimeStamp { max(highest, cutFrom ?? .zero) }
}

/// The knowledge vector: (syncId, knowledgeId) → last timeStamp a device holds.
///
/// A row is sent when its timeStamp is above the entry for (row.syncId, row.knowledgeId), absent meaning 0 (I6).
package struct KnowledgeVector: Sendable, Hashable {
    /// The knowledge of each owner that the device names.
    package var owners: [SyncID: OwnerKnowledge]

    /// Makes a vector; empty by default.
    package init(owners: [SyncID: OwnerKnowledge] = [:]) {
        self.owners = owners
    }

    /// The knowledge of one owner, empty when the vector does not name it.
    package subscript(owner: SyncID) -> OwnerKnowledge { owners[owner] ?? OwnerKnowledge() }

    /// Adds an entry, or a floor where the device is `*`.
    ///
    /// - Returns: whether the pair was new; a request that names one twice is invalid, and the first entry stays.
    package mutating func insert(_ timeStamp: TimeStamp, for device: KnowledgeID, of owner: SyncID) -> Bool {
        if device == .everyOther {
            guard self[owner].givenFloor == nil else { return false }
            owners[owner, default: OwnerKnowledge()].givenFloor = timeStamp
        } else {
            guard self[owner].entries[device] == nil else { return false }
            owners[owner, default: OwnerKnowledge()].entries[device] = timeStamp
        }
        return true
    }

    /// Adds the head that an owner's last page was cut from; of several the greatest counts.
    package mutating func insert(cutFrom head: TimeStamp, of owner: SyncID) {
        owners[owner, default: OwnerKnowledge()].cutFrom = max(self[owner].cutFrom ?? .zero, head)
    }
}
