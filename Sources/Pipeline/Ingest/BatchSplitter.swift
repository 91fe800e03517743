import JSON
import SyncModel
import SyncWire

/// A batch on its way through ingest: sorted by owner, with what was refused.
struct BatchSplitter {
    private let batch: ChangeBatch
    private let upload: UploadReference
    private let logTime: Int64
    private let schema: IngestSchema
    /// The device's epoch is another history's: nothing applies.
    private let hasOtherEpoch: Bool
    private var content: BatchContent
    private var parts: OwnerParts
    private var reader: ChangeReader
    /// Where each element lies in the batch's JSON.
    private var places: [Range<Int>] = []
    /// By rising index in the end.
    private(set) var refusals: [Refusal] = []

    init(
        _ batch: ChangeBatch, upload: UploadReference, logTime: Int64, schema: IngestSchema, hasOtherEpoch: Bool
    ) {
        self.batch = batch
        self.upload = upload
        self.logTime = logTime
        self.schema = schema
        self.hasOtherEpoch = hasOtherEpoch
        content = BatchContent(isAtomic: batch.isAtomic)
        parts = OwnerParts(caller: batch.device.caller, grants: batch.grants)
        reader = ChangeReader(schema: schema, device: batch.device)
    }

    /// How many changes were read.
    var changeCount: Int { places.count }

    /// Makes room for a number of changes.
    mutating func reserve(_ count: Int) {
        places.reserveCapacity(count)
        content.reserve(batch.changes.count)
    }

    /// Reads the next change; one of an owner that the caller may not write is refused by itself (I9).
    mutating func read(_ element: borrowing JSONValue) {
        let index = places.count
        places.append(element.sourceRange)
        let reading = reader.read(element, index: index, into: &content)
        let place = parts.place(of: reading.owner)
        switch reading.result {
        case .success(let change) where parts.owners[place].isWritable:
            parts.add(change, at: place)
        case .success:
            refuse(index, ChangeRefusal(.notGranted, "the caller may not write this owner's data"), place)
        case .failure(let refusal):
            refuse(index, refusal, place)
        }
    }

    /// The JSON of a change as it was sent.
    func json(of refusal: Refusal) -> [UInt8] { Array(batch.changes[places[refusal.index]]) }

    private mutating func refuse(_ index: Int, _ refusal: ChangeRefusal, _ place: Int) {
        parts.noteRefusal(at: place)
        refusals.append(Refusal(index: index, code: refusal.code, message: refusal.message))
    }

    // MARK: Parts

    /// A record of `changes`.
    struct Part {
        let owner: SyncID
        let value: [UInt8]

        /// Its size with its key.
        var size: Int { owner.text.utf8.count + value.count }
    }

    /// The records of `changes`: part 0, then one for each other owner of whom a change was admitted; `nil` when not even
    /// the refusals of all changes fit the log.
    ///
    /// What canonical spelling made larger than the log takes is refused, an owner's changes together, so that the batch
    /// has an outcome all the same.
    mutating func encodedParts(epoch: String, maximumSize: Int) -> [Part]? {
        let hash = content.hash
        var others: [Part] = []
        for place in parts.owners.indices.dropFirst() where !parts.owners[place].changes.isEmpty {
            let part = part(others.count + 1, of: place, epoch: epoch, hash: hash, summary: nil)
            if part.size <= maximumSize { others.append(part) } else { refuseTogether(place) }
        }
        refusals.sort { $0.index < $1.index }
        if let first = partZero(others, epoch: epoch, hash: hash, maximumSize: maximumSize) { return [first] + others }
        refuseTogether(0)
        refusals.sort { $0.index < $1.index }
        return partZero(others, epoch: epoch, hash: hash, maximumSize: maximumSize).map { [$0] + others }
    }

    /// Part 0; `nil` when it does not fit the log.
    private func partZero(_ others: [Part], epoch: String, hash: [UInt8], maximumSize: Int) -> Part? {
        var summary = BatchSummary(changeCount: changeCount, otherOwners: others.map(\.owner), refusals: refusals)
        let full = part(0, of: 0, epoch: epoch, hash: hash, summary: summary)
        if full.size <= maximumSize { return full }
        // Messages are for developers, who find them in `dead-letters`, too.
        summary.refusals = refusals.map { Refusal(index: $0.index, code: $0.code, message: "") }
        let short = part(0, of: 0, epoch: epoch, hash: hash, summary: summary)
        return short.size <= maximumSize ? short : nil
    }

    private mutating func refuseTogether(_ place: Int) {
        let message = "this owner's changes together are larger than the log takes: send fewer at once"
        for change in parts.removeChanges(at: place) {
            refuse(change.index, ChangeRefusal(.valueTooLarge, message), place)
        }
    }

    private func part(_ number: Int, of place: Int, epoch: String, hash: [UInt8], summary: BatchSummary?) -> Part {
        let owner = parts.owners[place]
        let part = ChangePart(
            epoch: epoch, rules: batch.rules, schema: schema.version.hash, upload: upload, logTime: logTime,
            part: number, owner: owner.id, device: batch.device, batch: batch.batch, contentHash: hash,
            isAtomic: batch.isAtomic, hasIngestRefusal: owner.hasRefusal, hasOtherEpoch: hasOtherEpoch,
            changes: owner.changes, summary: summary)
        return Part(owner: owner.id, value: part.encode(naming: schema.schema))
    }
}
