/// A change that ingest admitted: checked against its schema version, values in canonical form.
///
/// Its owner is that of its part.
package struct Change: Sendable, Hashable {
    /// The index in the request, from 0; identifies the change in results.
    package var index: Int
    /// The table's index in the schema.
    package var table: Int
    package var id: RowID
    /// The creating device of a new row; an existing row keeps its own.
    package var knowledgeID: KnowledgeID
    package var isDelete: Bool
    package var values: RowValues
    /// The timeStamp of the version that was edited; zero for a creation or when missing.
    package var base: TimeStamp
    /// Whether `base` is a condition under every policy.
    package var ifBase: Bool
    /// Whether `base` is a condition for a row that is not deleted alone, with ``ifBase`` and under `checkBase`: a tombstone that the same
    /// device made counts as seen, and to another the change is one that had not seen it.
    ///
    /// Unknown before rules version 4.
    package var isForLiveRow: Bool
    /// Whether the row's newest version must be `base`, whoever wrote it; zero: there is no row and no tombstone.
    ///
    /// Unknown before rules version 4.
    package var ifUnchanged: Bool
    /// The time of the edit by the device's clock, microseconds since 1970; `nil` when missing.
    package var updatedAt: Int64?
    /// Whether conversion to canonical form changed a value (I6).
    package var isAltered: Bool
    /// `nil` without a `changeId`.
    package var identity: ChangeIdentity?

    package init(
        index: Int, table: Int, id: RowID, knowledgeID: KnowledgeID, isDelete: Bool = false, values: RowValues,
        base: TimeStamp = .zero, ifBase: Bool = false, isForLiveRow: Bool = false, ifUnchanged: Bool = false,
        updatedAt: Int64? = nil, isAltered: Bool = false, identity: ChangeIdentity? = nil
    ) {
        self.index = index
        self.table = table
        self.id = id
        self.knowledgeID = knowledgeID
        self.isDelete = isDelete
        self.values = values
        self.base = base
        self.ifBase = ifBase
        self.isForLiveRow = isForLiveRow
        self.ifUnchanged = ifUnchanged
        self.updatedAt = updatedAt
        self.isAltered = isAltered
        self.identity = identity
    }
}

/// Why a change was refused.
///
/// The raw values are the codes of the client contract.
package enum RefusalCode: String, Sendable, Hashable, CaseIterable {
    /// The caller has no write grant for the owner.
    case notGranted = "not_granted"
    /// The schema version has no such table.
    case unknownTable = "unknown_table"
    /// The table has no such column in the schema version.
    case unknownColumn = "unknown_column"
    /// Type, range, length, NUL, or null in a required column.
    case invalidValue = "invalid_value"
    /// Above ``OutcomeLimits/maxValueBytes``.
    case valueTooLarge = "value_too_large"
    /// The row would be above ``OutcomeLimits/maxRowBytes``.
    case rowTooLarge = "row_too_large"
    /// The rows of the changes before it have reached ``OutcomeLimits/maxBatchRowBytes``.
    case batchRowsTooLarge = "batch_rows_too_large"
    /// Not an object, or an invalid id, syncId, knowledgeId, changeId, base, flag or updatedAt.
    case invalidChange = "invalid_change"
    /// A creation without a required column.
    case missingValue = "missing_value"
    /// `base` names a row that does not exist.
    case rowGone = "row_gone"
    /// Another change of the owner's part of an atomic batch was refused or in conflict.
    case batchAborted = "batch_aborted"
    /// The device's change with this `changeId` was applied with other content.
    case changeMismatch = "change_mismatch"
    /// The owner would have more than ``OutcomeLimits/maxOwnerRows`` or ``OutcomeLimits/maxOwnerBytes``.
    case quotaExceeded = "quota_exceeded"
}

/// A change that ingest refused.
///
/// Ordering does not see it; the batch's outcome contains it.
package struct Refusal: Sendable, Hashable {
    /// The index in the request, from 0.
    package let index: Int
    package let code: RefusalCode
    /// For developers: what was wrong.
    ///
    /// Names columns and limits, never values.
    package let message: String

    package init(index: Int, code: RefusalCode, message: String) {
        self.index = index
        self.code = code
        self.message = message
    }
}

/// A record of `uploads`: the batch of one request, with every input of ingest and ordering (design: the one idea).
package struct ChangeBatch: Sendable, Hashable {
    /// The epoch that the device, else the edge, knows; empty for none.
    package var epoch: String
    /// ``RulesVersion`` requested by the edge.
    package var rules: Int
    /// The hash of the schema version of the changes.
    package var schema: String
    /// The uploading device.
    package var device: Device
    /// At least 1; with `nil` a retry of the caller is applied again.
    package var batch: Int64?
    /// Whether a conflict or refusal of one of an owner's changes applies none of that owner's changes.
    package var isAtomic: Bool
    /// The verified rights of the caller, including to its own syncId.
    package var grants: [Grant]
    /// The limits of the edge.
    package var limits: OutcomeLimits
    /// The JSON array of changes, byte for byte from the request.
    package var changes: [UInt8]

    package init(
        epoch: String, rules: Int = RulesVersion.current, schema: String, device: Device, batch: Int64?,
        isAtomic: Bool = false, grants: [Grant], limits: OutcomeLimits = OutcomeLimits(), changes: [UInt8]
    ) {
        self.epoch = epoch
        self.rules = rules
        self.schema = schema
        self.device = device
        self.batch = batch
        self.isAtomic = isAtomic
        self.grants = grants
        self.limits = limits
        self.changes = changes
    }
}

/// One owner's part of a batch: a record of `changes`.
///
/// Part 0 always goes to the caller's own partition, even when empty, and contains the batch's summary. One part
/// follows for each other owner, in order of first appearance.
package struct ChangePart: Sendable, Hashable {
    package var epoch: String
    package var rules: Int
    /// The hash of the schema version of the values.
    package var schema: String
    package var upload: UploadReference
    /// Log timestamp of the `uploads` record, microseconds since 1970.
    package var logTime: Int64
    /// 0 for the caller's own part, 1, 2, … for the other owners.
    package var part: Int
    /// The owner of the changed rows.
    package var owner: SyncID
    /// The uploading device.
    package var device: Device
    package var batch: Int64?
    /// SHA-256 of the batch's content: all its changes in canonical form, and `atomic`.
    package var contentHash: [UInt8]
    /// Whether a conflict or refusal applies nothing of this part.
    package var isAtomic: Bool
    /// Whether ingest refused a change of this owner; an atomic part then writes nothing.
    package var hasIngestRefusal: Bool
    /// The batch had a different epoch: nothing is applied and no outcome stored.
    package var hasOtherEpoch: Bool
    /// ``OutcomeLimits/maxRowBytes`` of the batch.
    package var maxRowBytes: Int
    /// ``OutcomeLimits/maxBatchRowBytes`` of the batch.
    package var maxBatchRowBytes: Int
    /// ``OutcomeLimits/maxOwnerRows`` of the batch.
    package var maxOwnerRows: Int
    /// ``OutcomeLimits/maxOwnerBytes`` of the batch.
    package var maxOwnerBytes: Int
    /// The admitted changes, in the request's order.
    package var changes: [Change]
    /// Part 0 only.
    package var summary: BatchSummary?

    package init(
        epoch: String, rules: Int = RulesVersion.current, schema: String, upload: UploadReference, logTime: Int64,
        part: Int, owner: SyncID, device: Device, batch: Int64?, contentHash: [UInt8], isAtomic: Bool = false,
        hasIngestRefusal: Bool = false, hasOtherEpoch: Bool = false,
        maxRowBytes: Int = OutcomeLimits().maxRowBytes, maxBatchRowBytes: Int = OutcomeLimits().maxBatchRowBytes,
        maxOwnerRows: Int = OutcomeLimits().maxOwnerRows, maxOwnerBytes: Int = OutcomeLimits().maxOwnerBytes,
        changes: [Change], summary: BatchSummary? = nil
    ) {
        self.epoch = epoch
        self.rules = rules
        self.schema = schema
        self.upload = upload
        self.logTime = logTime
        self.part = part
        self.owner = owner
        self.device = device
        self.batch = batch
        self.contentHash = contentHash
        self.isAtomic = isAtomic
        self.hasIngestRefusal = hasIngestRefusal
        self.hasOtherEpoch = hasOtherEpoch
        self.maxRowBytes = maxRowBytes
        self.maxBatchRowBytes = maxBatchRowBytes
        self.maxOwnerRows = maxOwnerRows
        self.maxOwnerBytes = maxOwnerBytes
        self.changes = changes
        self.summary = summary
    }

    /// Whether a row must be at the change's `base`; rules versions below 4 have no such condition.
    func mustBeUnchanged(_ change: Change) -> Bool { rules >= 4 && change.ifUnchanged }

    /// Whether the change's `base` is no condition for a tombstone; rules versions below 4 have no such changes.
    func isForLiveRow(_ change: Change) -> Bool { rules >= 4 && change.isForLiveRow }

    /// Whether ``OrderedRow/isExact`` is about columns alone; before rules version 4 another `updatedAt` counted, too.
    var isExactByColumns: Bool { rules >= 4 }

    /// Whether a change that writes every column of the part's schema version replaces a row whole that has columns of later versions:
    /// before rules version 5, although the device may lack what others have written in those.
    var replacesLaterColumns: Bool { rules < 5 }

    package var deviceKey: DeviceKey { DeviceKey(owner: owner, device: device) }

    /// The rows of the changes in their order, with duplicates.
    package var rowsTouched: [RowKey] {
        changes.map { RowKey(table: $0.table, owner: owner, id: $0.id) }
    }
}

/// What part 0 records about the whole batch.
package struct BatchSummary: Sendable, Hashable {
    /// The number of changes in the request.
    package var changeCount: Int
    /// The owners of parts 1, 2, ….
    package var otherOwners: [SyncID]
    /// In the request's order.
    package var refusals: [Refusal]

    package init(changeCount: Int, otherOwners: [SyncID] = [], refusals: [Refusal] = []) {
        self.changeCount = changeCount
        self.otherOwners = otherOwners
        self.refusals = refusals
    }
}

/// The limits that decide the outcome of a batch.
///
/// A batch has those of the gateway that accepted it, so that processing it again has the same outcome whatever is configured
/// by then (I4). The defaults are those of a message that names none, and stay as they are.
package struct OutcomeLimits: Sendable, Hashable {
    package var maxChanges: Int
    /// The canonical JSON of one value.
    package var maxValueBytes: Int
    /// The canonical JSON of all values of a row; also limited by the log's records (``History/maximumRowBytes``).
    package var maxRowBytes: Int
    /// The canonical JSON of all rows that one owner's part of a batch changes, as they were before it (``TouchedRows``).
    package var maxBatchRowBytes: Int
    /// The rows that an owner may have, and ten times as many with deleted ones (``OwnerQuota``); 0 for any number.
    package var maxOwnerRows: Int
    /// The canonical JSON of the values of all rows of an owner, and ten times as much with deleted rows (``OwnerUsage``); 0 for any
    /// size.
    package var maxOwnerBytes: Int

    package init(
        maxChanges: Int = 10_000, maxValueBytes: Int = 256 << 10, maxRowBytes: Int = 2 << 20,
        maxBatchRowBytes: Int = 64 << 20, maxOwnerRows: Int = 1_000_000, maxOwnerBytes: Int = 1 << 30
    ) {
        self.maxChanges = maxChanges
        self.maxValueBytes = maxValueBytes
        self.maxRowBytes = maxRowBytes
        self.maxBatchRowBytes = maxBatchRowBytes
        self.maxOwnerRows = maxOwnerRows
        self.maxOwnerBytes = maxOwnerBytes
    }

    /// The greatest limits that a batch may name; what they allow can be read again.
    package static let greatest = OutcomeLimits(
        maxChanges: 100_000, maxValueBytes: 16 << 20, maxRowBytes: 32 << 20, maxBatchRowBytes: 1 << 30,
        maxOwnerRows: 1 << 40, maxOwnerBytes: 1 << 50)
}

/// The limits of a gateway.
///
/// Clients read them from `/v1/schema`.
package struct SyncLimits: Sendable, Hashable {
    /// Those that a gateway has where none are configured.
    ///
    /// A batch touches rows of as many bytes as it may have itself, a sixteenth of what one without this limit may touch: the others of
    /// its partition wait for it.
    package static let standardOutcome = OutcomeLimits(maxBatchRowBytes: 4 << 20)

    /// The whole request, decompressed.
    package var maxBatchBytes: Int
    package var outcome: OutcomeLimits

    package init(maxBatchBytes: Int = 4 << 20, outcome: OutcomeLimits = standardOutcome) {
        self.maxBatchBytes = maxBatchBytes
        self.outcome = outcome
    }
}
