/// A device: the pair of the caller's own syncId and its knowledgeId (design: terms).
package struct Device: Sendable, Hashable {
    /// The syncId of the caller, which need not be the owner of what it writes.
    package let caller: SyncID
    /// The device among the caller's.
    package let knowledgeID: KnowledgeID

    /// Names a device.
    package init(caller: SyncID, knowledgeID: KnowledgeID) {
        self.caller = caller
        self.knowledgeID = knowledgeID
    }
}

/// A device's place in one owner's data: progress is kept for each owner apart, since two owners may share a partition (I2).
package struct DeviceKey: Sendable, Hashable {
    /// The owner that the device wrote for.
    package let owner: SyncID
    /// The device that wrote.
    package let device: Device

    /// Names the place.
    package init(owner: SyncID, device: Device) {
        self.owner = owner
        self.device = device
    }
}

/// A row's identity: primary key (sync_id, id) within a table (I9).
package struct RowKey: Sendable, Hashable {
    /// The position of the table in the schema, which later versions keep.
    package let table: Int
    /// The owner.
    package let owner: SyncID
    /// The id within the table and owner.
    package let id: RowID

    /// Names a row.
    package init(table: Int, owner: SyncID, id: RowID) {
        self.table = table
        self.owner = owner
        self.id = id
    }
}

/// A record of `uploads`: what a caller waits for, and what tells a repeat of a delivery from a new one (I2).
package struct UploadReference: Sendable, Hashable {
    /// The partition of `uploads`.
    package let partition: Int
    /// The offset in it.
    package let offset: Int64

    /// Names a record.
    package init(partition: Int, offset: Int64) {
        self.partition = partition
        self.offset = offset
    }
}

/// What a caller may do with an owner's data.
package enum Access: String, Sendable, Hashable {
    /// Pull and watch only.
    case read
    /// Upload, too.
    case write
}

/// A verified right of a caller towards one owner; its own syncId is among them.
package struct Grant: Sendable, Hashable {
    /// The owner.
    package let owner: SyncID
    /// The right.
    package let access: Access

    /// States a right.
    package init(owner: SyncID, access: Access) {
        self.owner = owner
        self.access = access
    }
}

/// A schema version: its number in `control`, which only grows, and the hash by which messages and clients name it (I4).
package struct SchemaVersion: Sendable, Hashable {
    /// 1 for the first version of a history, each later one greater by one.
    package let ordinal: Int
    /// Lower-case hexadecimal of the version's canonical form, 32 characters.
    package let hash: String

    /// Names a version.
    package init(ordinal: Int, hash: String) {
        self.ordinal = ordinal
        self.hash = hash
    }
}

/// The version of the rules after `uploads` that a message was made for (I4): old rules stay in the code.
package enum RulesVersion {
    /// The newest that this code knows; messages with a greater one pause their partition.
    package static let current = 1
}
