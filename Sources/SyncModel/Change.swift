/// One change as ingest admits it: checked against its schema version, values in canonical form.
///
/// Its owner is that of the part it travels in.
public struct Change: Sendable, Hashable {
    /// The position in the request, from 0: results name changes by it.
    public var index: Int
    /// The position of the table in the schema.
    public var table: Int
    /// The row.
    public var id: RowID
    /// The creator's device, which a new row gets; an existing row keeps its own.
    public var knowledgeID: KnowledgeID
    /// Whether this change deletes the row.
    public var isDelete: Bool
    /// The columns written.
    public var values: RowValues
    /// The timeStamp of the row that was edited; zero for a creation or when missing.
    public var base: TimeStamp
    /// Whether `base` is a condition whatever the table's policy.
    public var ifBase: Bool
    /// Microseconds since 1970 of the edit as the device tells it; `nil` when missing.
    public var updatedAt: Int64?
    /// Whether ingest changed a value: brought it to canonical form (I6).
    public var isAltered: Bool

    /// Makes a change.
    public init(
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
public enum RefusalCode: String, Sendable, Hashable, CaseIterable {
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
public struct Refusal: Sendable, Hashable {
    /// The position in the request, from 0.
    public let index: Int
    /// The reason.
    public let code: RefusalCode
    /// What was wrong, for a developer; names columns and limits, never values.
    public let message: String

    /// States a refusal.
    public init(index: Int, code: RefusalCode, message: String) {
        self.index = index
        self.code = code
        self.message = message
    }
}

/// What an edge appends to `uploads`: one request's batch with everything that ordering will need (design: the one idea).
public struct ChangeBatch: Sendable, Hashable {
    /// The history that the device, else the edge, takes this to be.
    public var epoch: String
    /// The rules version that the edge asks for.
    public var rules: Int
    /// The schema version that the changes are written in.
    public var schema: String
    /// Who uploads.
    public var device: Device
    /// The device's batch number, at least 1; `nil` leaves the caller without protection against its own retries.
    public var batch: Int64?
    /// Whether any conflict or refusal of an owner's changes applies nothing of that owner's.
    public var isAtomic: Bool
    /// The verified rights of the caller, its own among them.
    public var grants: [Grant]
    /// The JSON array of changes, as the request spelled it.
    public var changes: [UInt8]

    /// Makes a batch.
    public init(
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
public struct ChangePart: Sendable, Hashable {
    /// The history.
    public var epoch: String
    /// The rules version.
    public var rules: Int
    /// The schema version that the values are written in, by its hash.
    public var schema: String
    /// The record of `uploads` that this came from.
    public var upload: UploadReference
    /// The microseconds since 1970 that the log gave that record.
    public var logTime: Int64
    /// 0 for the caller's own part, then counting the other owners.
    public var part: Int
    /// Whose rows this part changes.
    public var owner: SyncID
    /// Who uploads.
    public var device: Device
    /// The device's batch number.
    public var batch: Int64?
    /// SHA-256 of the batch's content: all its changes in canonical form, and `atomic`.
    public var contentHash: [UInt8]
    /// Whether any conflict or refusal applies nothing of this part.
    public var isAtomic: Bool
    /// Whether ingest refused a change of this owner: an atomic part then writes nothing.
    public var hasIngestRefusal: Bool
    /// The device's epoch was another history's: nothing is applied and no outcome kept.
    public var isOtherHistory: Bool
    /// The admitted changes of this owner, in the request's order.
    public var changes: [Change]
    /// Part 0 only: what the whole batch holds.
    public var summary: BatchSummary?

    /// Makes a part.
    public init(
        epoch: String, rules: Int = RulesVersion.current, schema: String, upload: UploadReference, logTime: Int64,
        part: Int, owner: SyncID, device: Device, batch: Int64?, contentHash: [UInt8], isAtomic: Bool = false,
        hasIngestRefusal: Bool = false, isOtherHistory: Bool = false, changes: [Change], summary: BatchSummary? = nil
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
        self.isOtherHistory = isOtherHistory
        self.changes = changes
        self.summary = summary
    }

    /// Where this part's progress is kept.
    public var deviceKey: DeviceKey { DeviceKey(owner: owner, device: device) }

    /// The rows this part touches, in the order of its changes; one that several changes touch comes as often.
    public var rowsTouched: [RowKey] {
        changes.map { RowKey(table: $0.table, owner: owner, id: $0.id) }
    }
}

/// What part 0 says of the whole batch.
public struct BatchSummary: Sendable, Hashable {
    /// How many changes the request had; each gets one result.
    public var changeCount: Int
    /// The other owners that got a part, in the order of their parts.
    public var otherOwners: [SyncID]
    /// What ingest refused, in the request's order.
    public var refusals: [Refusal]

    /// Makes a summary.
    public init(changeCount: Int, otherOwners: [SyncID] = [], refusals: [Refusal] = []) {
        self.changeCount = changeCount
        self.otherOwners = otherOwners
        self.refusals = refusals
    }
}
