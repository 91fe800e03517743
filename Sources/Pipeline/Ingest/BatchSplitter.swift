import JSON
import SyncModel
import SyncWire

/// Splits a batch into parts by owner, and collects what is refused.
struct BatchSplitter {
    private let batch: ChangeBatch
    private let upload: UploadReference
    private let logTime: Int64
    private let schema: IngestSchema
    /// Whether the device names a different epoch: no change applies.
    private let hasOtherEpoch: Bool
    private var content: BatchContent
    private var parts: OwnerParts
    private var reader: ChangeReader
    /// The range of each element in the batch's JSON.
    private var ranges: [Range<Int>] = []
    /// Sorted by index in the end.
    private(set) var refusals: [Refusal] = []

    init(
        _ batch: ChangeBatch, upload: UploadReference, logTime: Int64, schema: IngestSchema, hasOtherEpoch: Bool
    ) {
        self.batch = batch
        self.upload = upload
        self.logTime = logTime
        self.schema = schema
        self.hasOtherEpoch = hasOtherEpoch
        content = BatchContent(isAtomic: batch.isAtomic, rules: batch.rules)
        parts = OwnerParts(caller: batch.device.caller, grants: batch.grants)
        reader = ChangeReader(schema: schema, device: batch.device, rules: batch.rules)
    }

    var changeCount: Int { ranges.count }

    mutating func reserve(_ count: Int) {
        ranges.reserveCapacity(count)
        content.reserve(batch.changes.count)
    }

    /// Reads the next change; one for an owner that the caller may not write is refused individually (I9).
    mutating func read(_ element: borrowing JSONValue) {
        let index = ranges.count
        ranges.append(element.sourceRange)
        let reading = reader.read(element, index: index, into: &content)
        let owner = parts.index(of: reading.owner)
        switch reading.result {
        case .success(let change) where parts.owners[owner].isWritable:
            parts.add(change, at: owner)
        case .success:
            refuse(index, ChangeRefusal(.notGranted, "the caller may not write this owner's data"), owner)
        case .failure(let refusal):
            refuse(index, refusal, owner)
        }
    }

    /// The JSON of a change as it was sent.
    func json(of refusal: Refusal) -> [UInt8] { Array(batch.changes[ranges[refusal.index]]) }

    private mutating func refuse(_ index: Int, _ refusal: ChangeRefusal, _ owner: Int) {
        parts.recordRefusal(at: owner)
        refusals.append(Refusal(index: index, code: refusal.code, message: refusal.message))
    }

    // MARK: Parts

    /// A record of `changes`.
    struct Part {
        let owner: SyncID
        let value: [UInt8]

        /// Including its key, the owner.
        var size: Int { owner.text.utf8.count + value.count }
    }

    /// The records of `changes`: part 0, then one for each other owner with an admitted change; `nil` when even the refusals
    /// of all changes are too large for the log.
    ///
    /// A part that the canonical form made too large for the log is refused, an owner's changes together, so that the batch
    /// has an outcome nevertheless.
    mutating func encodedParts(epoch: String, maximumSize: Int) -> [Part]? {
        let hash = content.hash
        var others: [Part] = []
        for owner in parts.owners.indices.dropFirst() where !parts.owners[owner].changes.isEmpty {
            let part = part(others.count + 1, of: owner, epoch: epoch, hash: hash, summary: nil)
            if part.size <= maximumSize { others.append(part) } else { refuseTogether(owner) }
        }
        refusals.sort { $0.index < $1.index }
        if let first = partZero(others, epoch: epoch, hash: hash, maximumSize: maximumSize) { return [first] + others }
        refuseTogether(0)
        refusals.sort { $0.index < $1.index }
        return partZero(others, epoch: epoch, hash: hash, maximumSize: maximumSize).map { [$0] + others }
    }

    /// Part 0; `nil` when it is too large for the log.
    private func partZero(_ others: [Part], epoch: String, hash: [UInt8], maximumSize: Int) -> Part? {
        var summary = BatchSummary(changeCount: changeCount, otherOwners: others.map(\.owner), refusals: refusals)
        let full = part(0, of: 0, epoch: epoch, hash: hash, summary: summary)
        if full.size <= maximumSize { return full }
        // Messages are for developers, who also find them in `dead-letters`.
        summary.refusals = refusals.map { Refusal(index: $0.index, code: $0.code, message: "") }
        let short = part(0, of: 0, epoch: epoch, hash: hash, summary: summary)
        return short.size <= maximumSize ? short : nil
    }

    private mutating func refuseTogether(_ owner: Int) {
        let message = "this owner's changes together are larger than the log takes: send fewer at once"
        for change in parts.removeChanges(at: owner) {
            refuse(change.index, ChangeRefusal(.valueTooLarge, message), owner)
        }
    }

    private func part(_ number: Int, of index: Int, epoch: String, hash: [UInt8], summary: BatchSummary?) -> Part {
        let owner = parts.owners[index]
        let part = ChangePart(
            epoch: epoch, rules: batch.rules, schema: schema.version.hash, upload: upload, logTime: logTime,
            part: number, owner: owner.id, device: batch.device, batch: batch.batch, contentHash: hash,
            isAtomic: batch.isAtomic, hasIngestRefusal: owner.hasRefusal, hasOtherEpoch: hasOtherEpoch,
            maxRowBytes: batch.limits.maxRowBytes, maxBatchRowBytes: batch.limits.maxBatchRowBytes,
            maxOwnerRows: batch.limits.maxOwnerRows, maxOwnerBytes: batch.limits.maxOwnerBytes,
            changes: owner.changes, summary: summary)
        return Part(owner: owner.id, value: part.encode(naming: schema.schema))
    }
}
