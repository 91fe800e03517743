import ChangeLog
import JSON
import SyncModel
import SyncWire

/// Ingest as a pure function of one record of `uploads`: the records for `changes` and for `dead-letters`.
///
/// Equal inputs give equal records, whatever came before (I4): a value of this type keeps only buffers and schema versions.
package struct Admission: ~Copyable {
    /// The smallest record size of a log that the stage works with: a refusal with the longest names fits.
    package static let minimumRecordSize = 4096

    private let epoch: String
    private let maximumRecordSize: Int
    private let partitioning: Partitioning
    private let deadLetters: DeadLetters
    /// By ordinal and limit of a value.
    private var schemas: [SchemaKey: IngestSchema] = [:]
    private let parsers: JSONParserPool

    private struct SchemaKey: Hashable {
        let ordinal: Int
        let maximumValueBytes: Int
    }

    /// Traps if the history's records are below ``minimumRecordSize``.
    ///
    /// - Parameter parsers: those of all partitions of a process, so that their memory does not grow with the partitions.
    package init(history: History, parsers: JSONParserPool = JSONParserPool()) {
        self.parsers = parsers
        precondition(history.recordSize >= Self.minimumRecordSize, "the log accepts records of at least 4 KiB")
        epoch = history.epoch
        maximumRecordSize = history.recordSize
        partitioning = Partitioning(count: history.partitions)
        deadLetters = DeadLetters(partitioning: partitioning, maximumRecordSize: maximumRecordSize)
    }

    /// The result of a record.
    package struct Admitted: Sendable, Hashable {
        /// What to append, in this order: part 0, the other parts, the dead letter.
        package internal(set) var records: [NewRecord] = []
        package internal(set) var changeCount = 0
        /// How many changes were refused, by code.
        package internal(set) var refusals: [RefusalCode: Int] = [:]
        /// Why the record as a whole was refused: it breaks the contract of `uploads`.
        package internal(set) var recordRefusal: RecordRefusal?
    }

    /// Admits a record of a partition of `uploads`.
    ///
    /// - Parameter skipped: the records that are left out.
    /// - Throws: ``IngestError`` when the record needs something newer than this worker; the partition waits then.
    package mutating func admit(
        _ record: LogRecord, of partition: Int, schemas known: SchemaHistory,
        leavingOut skipped: SkippedRecords = SkippedRecords()
    ) throws(IngestError) -> Admitted {
        let upload = UploadReference(partition: partition, offset: record.offset)
        if let decision = skipped[.uploads, partition, record.offset] {
            return refused(record, upload, RecordRefusal(.skipped, decision.record.reason))
        }
        let batch: ChangeBatch
        do {
            batch = try ChangeBatch(decoding: record.value)
        } catch {
            if error.isNewerFormat { throw .newerFormat(upload, "\(error)") }
            return refused(record, upload, RecordRefusal(.malformedMessage, "\(error)"))
        }
        // Checked before everything that a record may wait for: its partition is wrong whatever becomes known.
        if let refusal = refusal(of: batch.device.caller, in: partition) { return refused(record, upload, refusal) }
        guard batch.rules <= RulesVersion.current else { throw .unknownRules(upload, batch.rules) }
        guard let schema = schema(batch.schema, known, batch.limits) else { throw .unknownSchema(upload, batch.schema) }
        let hasOtherEpoch = !batch.epoch.isEmpty && !batch.epoch.utf8.elementsEqual(epoch.utf8)
        var splitter = BatchSplitter(
            batch, upload: upload, logTime: record.time, schema: schema, hasOtherEpoch: hasOtherEpoch)
        if !hasOtherEpoch, let refusal = read(batch, into: &splitter) {
            return refused(record, upload, refusal)
        }
        guard let parts = splitter.encodedParts(epoch: epoch, maximumSize: maximumRecordSize) else {
            let reason = "the refusals of its \(splitter.changeCount) changes are larger than the log takes"
            return refused(record, upload, RecordRefusal(.tooManyRefusals, reason))
        }
        return admitted(splitter, parts, batch, upload, record.time)
    }

    /// The number of versions and limits that are kept in memory.
    private static let keptSchemas = 64

    private mutating func schema(
        _ hash: String, _ known: SchemaHistory, _ limits: OutcomeLimits
    ) -> IngestSchema? {
        guard let entry = known[hash] else { return nil }
        let key = SchemaKey(ordinal: entry.version.ordinal, maximumValueBytes: limits.maxValueBytes)
        if let schema = schemas[key] { return schema }
        if schemas.count >= Self.keptSchemas { schemas = [:] }
        let schema = IngestSchema(entry, maximumValueBytes: limits.maxValueBytes)
        schemas[key] = schema
        return schema
    }

    /// Why a caller's record is refused in a partition; `nil` in its own.
    ///
    /// A device's batches are ordered only within the caller's partition (I2, I3). The refused batch gets no outcome either: it
    /// would precede or replace those of earlier batches that are in the right partition.
    private func refusal(of caller: SyncID, in partition: Int) -> RecordRefusal? {
        let own = partitioning.partition(of: caller)
        guard own != partition else { return nil }
        return RecordRefusal(
            .wrongPartition, "the caller's uploads belong into partition \(own) of \(partitioning.count)")
    }

    /// Reads the JSON of a batch.
    ///
    /// - Returns: why it is not an array of changes; `nil` when it is.
    private func read(_ batch: ChangeBatch, into splitter: inout BatchSplitter) -> RecordRefusal? {
        let maximum = batch.limits.maxChanges
        do throws(JSONError) {
            return try parsers.withParser(for: batch.changes.count) { (parser) throws(JSONError) in
                let document = try parser.parse(batch.changes.span)
                guard var elements = document.root.elements else {
                    return RecordRefusal(.malformedChanges, "changes is no JSON array")
                }
                let count = document.root.count
                guard count <= maximum else {
                    return RecordRefusal(.tooManyChanges, "\(count) changes, at most \(maximum) are allowed")
                }
                splitter.reserve(count)
                while let element = elements.next() { splitter.read(element) }
                return nil
            }
        } catch {
            return RecordRefusal(.malformedChanges, "changes is no JSON: \(error)")
        }
    }

    private func admitted(
        _ splitter: BatchSplitter, _ parts: [BatchSplitter.Part], _ batch: ChangeBatch, _ upload: UploadReference,
        _ logTime: Int64
    ) -> Admitted {
        var admitted = Admitted(changeCount: splitter.changeCount)
        for part in parts {
            let destination = TopicPartition(.changes, partitioning.partition(of: part.owner))
            admitted.records.append(NewRecord(to: destination, key: Array(part.owner.text.utf8), value: part.value))
        }
        for refusal in splitter.refusals { admitted.refusals[refusal.code, default: 0] += 1 }
        if let record = deadLetters.record(
            splitter.refusals, json: splitter.json(of:), of: batch, upload, at: logTime)
        {
            admitted.records.append(record)
        }
        return admitted
    }

    private func refused(_ record: LogRecord, _ upload: UploadReference, _ refusal: RecordRefusal) -> Admitted {
        Admitted(records: [deadLetters.record(record, upload, refusal)], recordRefusal: refusal)
    }
}
