/// What a device holds of one owner: the last timeStamp received for each creating device, and a floor for all others.
package struct OwnerKnowledge: Sendable, Hashable {
    /// The floor in the request (`"*"`), possibly zero; `nil` when the request has none.
    package var givenFloor: TimeStamp?
    /// The last timeStamp held of the rows that each device created.
    package var entries: [KnowledgeID: TimeStamp]
    /// The head of the stream when the device's last page of this owner was cut at a limit; `nil` when it was not cut.
    ///
    /// The entries after a cut page count as held some rows that had newer versions in that stream. A stream that has
    /// not yet reached this head lacks those versions, and would answer that nothing is missing.
    package var cutFrom: TimeStamp?

    /// By default the knowledge of a new device.
    package init(floor: TimeStamp? = nil, entries: [KnowledgeID: TimeStamp] = [:], cutFrom: TimeStamp? = nil) {
        givenFloor = floor
        self.entries = entries
        self.cutFrom = cutFrom
    }

    /// The entry of every device that `entries` does not name; zero when the request has none.
    package var floor: TimeStamp {
        get { givenFloor ?? .zero }
        set { givenFloor = newValue }
    }

    /// The last timeStamp held of the rows that this device created: its entry, else the floor.
    package subscript(device: KnowledgeID) -> TimeStamp { entries[device] ?? floor }

    /// The greatest of the entries and the floor.
    package var highest: TimeStamp { entries.values.reduce(floor, max) }

    /// The head that a stream must have reached to answer (I7): the greatest of the entries, the floor and `cutFrom`.
    package var requiredHead: TimeStamp { max(highest, cutFrom ?? .zero) }
}

/// The knowledge vector: (syncId, knowledgeId) → last timeStamp a device holds.
///
/// A row is sent when its timeStamp is above the entry for (row.syncId, row.knowledgeId), absent meaning 0 (I6).
package struct KnowledgeVector: Sendable, Hashable {
    package var owners: [SyncID: OwnerKnowledge]

    package init(owners: [SyncID: OwnerKnowledge] = [:]) {
        self.owners = owners
    }

    /// Empty for an owner that the vector does not name.
    package subscript(owner: SyncID) -> OwnerKnowledge { owners[owner] ?? OwnerKnowledge() }

    /// Adds an entry, or the floor when the device is `*`.
    ///
    /// - Returns: false when the vector already has this entry, which is kept; such a request is invalid.
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

    /// Sets ``OwnerKnowledge/cutFrom``; the greatest of several values is kept.
    package mutating func insert(cutFrom head: TimeStamp, of owner: SyncID) {
        owners[owner, default: OwnerKnowledge()].cutFrom = max(self[owner].cutFrom ?? .zero, head)
    }
}
