import ChangeLog
import JSON
import SyncModel
import SyncWire

/// Ingest as a function of one record of `uploads`: the parts for `changes`, and what goes to `dead-letters`.
///
/// The same record gives the same records, whatever came before: a value of this type only keeps memory and what it knows
/// of schema versions (I4).
package struct Admission: ~Copyable {
    /// The smallest record size of a log that the stage works with: a refusal with the longest names fits.
    package static let minimumRecordSize = 4096

    private let epoch: String
    private let limits: SyncLimits
    private let maximumRecordSize: Int
    private let partitioning: Partitioning
    private let deadLetters: DeadLetters
    /// By ordinal.
    private var schemas: [Int: IngestSchema] = [:]
    private var parser = JSONParser()

    /// Makes the function for one history.
    ///
    /// - Parameters:
    ///   - history: the history that the topics hold.
    ///   - limits: what a batch may hold; the gateways enforce the same.
    ///   - maximumRecordSize: the largest record, key and value together, that the log takes; traps below
    ///     ``minimumRecordSize``.
    package init(history: History, limits: SyncLimits, maximumRecordSize: Int) {
        precondition(maximumRecordSize >= Self.minimumRecordSize, "the log takes records of 4 KiB at least")
        epoch = history.epoch
        self.limits = limits
        self.maximumRecordSize = maximumRecordSize
        partitioning = Partitioning(count: history.partitions)
        deadLetters = DeadLetters(partitioning: partitioning, maximumRecordSize: maximumRecordSize)
    }

    /// What a record comes to.
    package struct Admitted: Sendable, Hashable {
        /// What to append, in this order: part 0, the other parts, the dead letters.
        package internal(set) var records: [NewRecord] = []
        /// How many changes the batch had.
        package internal(set) var changeCount = 0
        /// How many of them were refused, by code.
        package internal(set) var refusals: [RefusalCode: Int] = [:]
        /// Why the record as a whole was refused: it breaks the contract of `uploads`.
        package internal(set) var recordRefusal: RecordRefusal?
    }

    /// Admits one record.
    ///
    /// - Parameters:
    ///   - record: the record.
    ///   - partition: the partition of `uploads` that holds it.
    ///   - known: the schema versions known.
    /// - Throws: ``IngestError`` when the record needs something newer than this worker; the partition waits then.
    package mutating func admit(
        _ record: LogRecord, of partition: Int, schemas known: SchemaHistory
    ) throws(IngestError) -> Admitted {
        let upload = UploadReference(partition: partition, offset: record.offset)
        let batch: ChangeBatch
        do {
            batch = try ChangeBatch(decoding: record.value)
        } catch {
            if error.isNewerFormat { throw .newerFormat(upload, "\(error)") }
            return refused(record, upload, RecordRefusal(.malformedMessage, "\(error)"))
        }
        // Before anything that a record may have to wait for: it is no other's partition whatever becomes known.
        if let refusal = refusal(of: batch.device.caller, in: partition) { return refused(record, upload, refusal) }
        guard batch.rules <= RulesVersion.current else { throw .unknownRules(upload, batch.rules) }
        guard let schema = schema(batch.schema, known) else { throw .unknownSchema(upload, batch.schema) }
        let hasOtherEpoch = !batch.epoch.isEmpty && !batch.epoch.utf8.elementsEqual(epoch.utf8)
        var letter = BatchSplitter(
            batch, upload: upload, logTime: record.time, schema: schema, hasOtherEpoch: hasOtherEpoch)
        if !hasOtherEpoch, let refusal = read(batch.changes, into: &letter) {
            return refused(record, upload, refusal)
        }
        guard let parts = letter.encodedParts(epoch: epoch, maximumSize: maximumRecordSize) else {
            let reason = "the refusals of its \(letter.changeCount) changes are larger than the log takes"
            return refused(record, upload, RecordRefusal(.tooManyRefusals, reason))
        }
        return admitted(letter, parts, batch, upload, record.time)
    }

    private mutating func schema(_ hash: String, _ known: SchemaHistory) -> IngestSchema? {
        guard let entry = known[hash] else { return nil }
        if let schema = schemas[entry.version.ordinal] { return schema }
        let schema = IngestSchema(entry, maximumValueBytes: limits.maxValueBytes)
        schemas[entry.version.ordinal] = schema
        return schema
    }

    /// Why a caller's record may not lie in a partition; `nil` in its own.
    ///
    /// Only there do a device's batches have an order (I2, I3). It gets no outcome either: that would come before, or in
    /// place of, those of batches which were sent before it and lie where they must.
    private func refusal(of caller: SyncID, in partition: Int) -> RecordRefusal? {
        let own = partitioning.partition(of: caller)
        guard own != partition else { return nil }
        return RecordRefusal(
            .wrongPartition, "the caller's uploads belong into partition \(own) of \(partitioning.count)")
    }

    /// Reads the JSON of a batch; the answer is why it is no array of changes.
    private mutating func read(_ changes: [UInt8], into letter: inout BatchSplitter) -> RecordRefusal? {
        let maximum = limits.maxChanges
        do throws(JSONError) {
            let document = try parser.parse(changes.span)
            guard var elements = document.root.elements else {
                return RecordRefusal(.malformedChanges, "changes is no JSON array")
            }
            let count = document.root.count
            guard count <= maximum else {
                return RecordRefusal(.tooManyChanges, "\(count) changes, at most \(maximum) are allowed")
            }
            letter.reserve(count)
            while let element = elements.next() { letter.read(element) }
            return nil
        } catch {
            return RecordRefusal(.malformedChanges, "changes is no JSON: \(error)")
        }
    }

    private func admitted(
        _ letter: BatchSplitter, _ parts: [BatchSplitter.Part], _ batch: ChangeBatch, _ upload: UploadReference,
        _ logTime: Int64
    ) -> Admitted {
        var admitted = Admitted(changeCount: letter.changeCount)
        for part in parts {
            let destination = TopicPartition(.changes, partitioning.partition(of: part.owner))
            admitted.records.append(NewRecord(to: destination, key: Array(part.owner.text.utf8), value: part.value))
        }
        for refusal in letter.refusals {
            admitted.refusals[refusal.code, default: 0] += 1
            admitted.records.append(
                deadLetters.letter(refusal, json: letter.json(of: refusal), of: batch, upload, at: logTime))
        }
        return admitted
    }

    private func refused(_ record: LogRecord, _ upload: UploadReference, _ refusal: RecordRefusal) -> Admitted {
        Admitted(records: [deadLetters.letter(record, upload, refusal)], recordRefusal: refusal)
    }
}
