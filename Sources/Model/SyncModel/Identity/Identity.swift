/// A device: the caller's own syncId and the knowledgeId (design: terms).
package struct Device: Sendable, Hashable {
    /// Not necessarily the owner of the rows that it writes.
    package let caller: SyncID
    package let knowledgeID: KnowledgeID

    package init(caller: SyncID, knowledgeID: KnowledgeID) {
        self.caller = caller
        self.knowledgeID = knowledgeID
    }
}

/// The key of a device's progress, which is kept per owner because two owners may share a partition (I2).
package struct DeviceKey: Sendable, Hashable {
    /// The owner whose rows the device writes.
    package let owner: SyncID
    package let device: Device

    package init(owner: SyncID, device: Device) {
        self.owner = owner
        self.device = device
    }
}

/// A row's primary key, (sync_id, id) within a table (I9).
package struct RowKey: Sendable, Hashable {
    /// The table's index in the schema; later versions keep it.
    package let table: Int
    package let owner: SyncID
    package let id: RowID

    package init(table: Int, owner: SyncID, id: RowID) {
        self.table = table
        self.owner = owner
        self.id = id
    }
}

/// The position of a record in `uploads`.
///
/// Callers wait for its outcome; ordering drops repeated deliveries by it (I2).
package struct UploadReference: Sendable, Hashable {
    package let partition: Int
    package let offset: Int64

    package init(partition: Int, offset: Int64) {
        self.partition = partition
        self.offset = offset
    }
}

package enum Access: String, Sendable, Hashable, CaseIterable {
    case read
    /// Pull, watch and upload.
    case write
}

/// A verified right of a caller to one owner's data.
///
/// A caller's grants include its own syncId.
package struct Grant: Sendable, Hashable {
    package let owner: SyncID
    package let access: Access

    package init(owner: SyncID, access: Access) {
        self.owner = owner
        self.access = access
    }
}

/// The version of the rules that ingest and ordering apply to a record (I4).
///
/// Old rules stay in the code.
package enum RulesVersion {
    /// The newest that this code implements; a record with a greater one pauses its partition.
    ///
    /// Version 2 limits the rows that a part touches (``TouchedRows``). Version 3 applies a change with a `changeId` once
    /// (``AppliedChange``), and limits what an owner has (``OwnerQuota``). Version 4 knows
    /// ``Change/ifUnchanged`` and ``Change/isForLiveRow``, and ``OrderedRow/isExact`` is about columns alone. With version 5
    /// a device holds no row with later columns because it has written every column of an older schema version.
    /// With version 6 the digest of a `changeId` begins with its number (``ShortDigest/init(ofID:digest:)``). With version 7 a change with
    /// a `changeId` is a conflict where a later one of its row, in the same part, was applied before. With version 8 a result has the size of
    /// the rows that its part touched (``OrderedPiece/touchedBytes``).
    package static let current = 8
}
