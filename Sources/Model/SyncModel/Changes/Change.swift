/// One change as ingest admits it: checked against its schema version, values in canonical form.
///
/// Its owner is that of the part it travels in.
package struct Change: Sendable, Hashable {
    /// The position in the request, from 0: results name changes by it.
    package var index: Int
    /// The position of the table in the schema.
    package var table: Int
    /// The row.
    package var id: RowID
    /// The creator's device, which a new row gets; an existing row keeps its own.
    package var knowledgeID: KnowledgeID
    /// Whether this change deletes the row.
    package var isDelete: Bool
    /// The columns written.
    package var values: RowValues
    /// The timeStamp of the row that was edited; zero for a creation or when missing.
    package var base: TimeStamp
    /// Whether `base` is a condition whatever the table's policy.
    package var ifBase: Bool
    /// Microseconds since 1970 of the edit as the device tells it; `nil` when missing.
    package var updatedAt: Int64?
    /// Whether ingest changed a value: brought it to canonical form (I6).
    package var isAltered: Bool

    /// Makes a change.
    package init(
        index: Int, table: Int, id: RowID, knowledgeID: KnowledgeID, isDelete: Bool = false, values: RowValues,
        base: TimeStamp = .zero, ifBase: Bool = false, updatedAt: Int64? = nil, isAltered: Bool = false
    ) {
        self.index = index
        self.table = table
        self.id = id
        self.knowledgeID = knowledgeID
        self.isDelete = isDelete
        self.values = values
        self.base = base
        self.ifBase = ifBase
        self.updatedAt = updatedAt
        self.isAltered = isAltered
    }
}

/// Why a change was refused: the codes of the client contract.
package enum RefusalCode: String, Sendable, Hashable, CaseIterable {
    /// The owner is not among those the caller may write.
    case notGranted = "not_granted"
    /// The schema version has no such table.
    case unknownTable = "unknown_table"
    /// The table has no such column in the schema version.
    case unknownColumn = "unknown_column"
    /// Type, range, length, NUL, or null in a required column.
    case invalidValue = "invalid_value"
    /// A value above `maxValueBytes`.
    case valueTooLarge = "value_too_large"
    /// No object; a bad id, syncId, knowledgeId, base, flag or updatedAt.
    case invalidChange = "invalid_change"
    /// A creation without a required column.
    case missingValue = "missing_value"
    /// `base` names a row that does not exist.
    case rowGone = "row_gone"
    /// Another change of the owner's part of an atomic batch was refused or in conflict.
    case batchAborted = "batch_aborted"
}

/// A change that ingest refused: it never reaches ordering's rules, but the batch's outcome names it.
package struct Refusal: Sendable, Hashable {
    /// The position in the request, from 0.
    package let index: Int
    /// The reason.
    package let code: RefusalCode
    /// What was wrong, for a developer; names columns and limits, never values.
    package let message: String

    /// States a refusal.
    package init(index: Int, code: RefusalCode, message: String) {
        self.index = index
        self.code = code
        self.message = message
    }
}

/// What an edge appends to `uploads`: one request's batch with everything that ordering will need (design: the one idea).
package struct ChangeBatch: Sendable, Hashable {
    /// The history that the device, else the edge, takes this to be.
    package var epoch: String
    /// The rules version that the edge asks for.
    package var rules: Int
    /// The schema version that the changes are written in.
    package var schema: String
    /// Who uploads.
    package var device: Device
    /// The device's batch number, at least 1; `nil` leaves the caller without protection against its own retries.
    package var batch: Int64?
    /// Whether any conflict or refusal of an owner's changes applies nothing of that owner's.
    package var isAtomic: Bool
    /// The verified rights of the caller, its own among them.
    package var grants: [Grant]
    /// The JSON array of changes, as the request spelled it.
    package var changes: [UInt8]

    /// Makes a batch.
    package init(
        epoch: String, rules: Int = RulesVersion.current, schema: String, device: Device, batch: Int64?,
        isAtomic: Bool = false, grants: [Grant], changes: [UInt8]
    ) {
        self.epoch = epoch
        self.rules = rules
        self.schema = schema
        self.device = device
        self.batch = batch
        self.isAtomic = isAtomic
        self.grants = grants
        self.changes = changes
    }
}

/// One owner's part of a batch: a message of `changes`.
///
/// Part 0 goes to the caller's own partition, always, even empty, and tells what became of the batch as a whole; one part
/// follows for each other owner in order of first appearance.
package struct ChangePart: Sendable, Hashable {
    /// The history.
    package var epoch: String
    /// The rules version.
    package var rules: Int
    /// The schema version that the values are written in, by its hash.
    package var schema: String
    /// The record of `uploads` that this came from.
    package var upload: UploadReference
    /// The microseconds since 1970 that the log gave that record.
    package var logTime: Int64
    /// 0 for the caller's own part, then counting the other owners.
    package var part: Int
    /// Whose rows this part changes.
    package var owner: SyncID
    /// Who uploads.
    package var device: Device
    /// The device's batch number.
    package var batch: Int64?
    /// SHA-256 of the batch's content: all its changes in canonical form, and `atomic`.
    package var contentHash: [UInt8]
    /// Whether any conflict or refusal applies nothing of this part.
    package var isAtomic: Bool
    /// Whether ingest refused a change of this owner: an atomic part then writes nothing.
    package var hasIngestRefusal: Bool
    /// The device's epoch was another history's: nothing is applied and no outcome kept.
    package var hasOtherEpoch: Bool
    /// The admitted changes of this owner, in the request's order.
    package var changes: [Change]
    /// Part 0 only: what the whole batch holds.
    package var summary: BatchSummary?

    /// Makes a part.
    package init(
        epoch: String, rules: Int = RulesVersion.current, schema: String, upload: UploadReference, logTime: Int64,
        part: Int, owner: SyncID, device: Device, batch: Int64?, contentHash: [UInt8], isAtomic: Bool = false,
        hasIngestRefusal: Bool = false, hasOtherEpoch: Bool = false, changes: [Change], summary: BatchSummary? = nil
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
        self.changes = changes
        self.summary = summary
    }

    /// Where this part's progress is kept.
    package var deviceKey: DeviceKey { DeviceKey(owner: owner, device: device) }

    /// The rows this part touches, in the order of its changes; one that several changes touch comes as often.
    package var rowsTouched: [RowKey] {
        changes.map { RowKey(table: $0.table, owner: owner, id: $0.id) }
    }
}

/// What part 0 says of the whole batch.
package struct BatchSummary: Sendable, Hashable {
    /// How many changes the request had; each gets one result.
    package var changeCount: Int
    /// The other owners that got a part, in the order of their parts.
    package var otherOwners: [SyncID]
    /// What ingest refused, in the request's order.
    package var refusals: [Refusal]

    /// Makes a summary.
    package init(changeCount: Int, otherOwners: [SyncID] = [], refusals: [Refusal] = []) {
        self.changeCount = changeCount
        self.otherOwners = otherOwners
        self.refusals = refusals
    }
}
