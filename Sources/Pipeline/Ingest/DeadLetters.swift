import ChangeLog
import SyncModel
import SyncWire

/// Builds the records of `dead-letters`, at most one for each record of `uploads` (I10).
struct DeadLetters {
    let partitioning: Partitioning
    let maximumRecordSize: Int

    /// Refused changes are listed up to this size of their JSON and messages; the first is listed whatever its size.
    private var maximumListedBytes: Int { min(64 << 10, maximumRecordSize / 2) }

    /// The record of a batch's refused changes, for the caller's own partition; `nil` where there are none.
    ///
    /// - Parameter json: a refused change as it was sent.
    func record(
        _ refusals: [Refusal], json: (Refusal) -> [UInt8], of batch: ChangeBatch, _ upload: UploadReference,
        at logTime: Int64
    ) -> NewRecord? {
        guard !refusals.isEmpty else { return nil }
        var refused = RefusedChanges(device: batch.device, batch: batch.batch, changes: [])
        var bytes = 0
        for refusal in refusals {
            let change = RefusedChanges.Change(refusal, json: bytes < maximumListedBytes ? json(refusal) : [])
            bytes += change.json.count + refusal.message.utf8.count + 32
            if bytes <= maximumListedBytes || refused.changes.isEmpty {
                refused.changes.append(change)
            } else {
                refused.others[refusal.code, default: 0] += 1
            }
        }
        return newRecord(
            to: partitioning.partition(of: batch.device.caller), key: Array(batch.device.caller.text.utf8),
            DeadLetter(upload: upload, logTime: logTime, subject: .changes(refused)))
    }

    /// The record of a record of `uploads` that was refused as a whole, for the same partition.
    func record(_ record: LogRecord, _ upload: UploadReference, _ refusal: RecordRefusal) -> NewRecord {
        newRecord(
            to: upload.partition, key: record.key,
            DeadLetter(upload: upload, logTime: record.time, subject: .record(refusal, value: record.value)))
    }

    /// A record; where the log does not accept its size, without what was refused: it names the record of `uploads`.
    private func newRecord(to partition: Int, key: [UInt8], _ deadLetter: DeadLetter) -> NewRecord {
        let destination = TopicPartition(.deadLetters, partition)
        let value = deadLetter.encode()
        if key.count + value.count <= maximumRecordSize { return NewRecord(to: destination, key: key, value: value) }
        var short = deadLetter
        short.subject = deadLetter.subject.withoutContent
        // A record of another edge may have a key of any size; the size of an id is limited.
        let fits = key.count <= SyncID.maximumLength
        return NewRecord(to: destination, key: fits ? key : [], value: short.encode())
    }
}

/// The dead letters that each owner may cause: up to a size in each hour of the log's time, and one whatever its size (I10).
///
/// An hour begins with the owner's first dead letter, and again with a new worker of the partition.
struct DeadLetterQuota {
    private struct Hour {
        let start: Int64
        var bytes = 0
    }

    /// So many owners are remembered; beyond them, all begin a new hour.
    private static let maximumOwners = 10_000
    private static let microseconds: Int64 = 3_600_000_000

    private let bytesPerHour: Int
    /// By the key of their records.
    private var owners: [[UInt8]: Hour] = [:]

    init(bytesPerHour: Int) { self.bytesPerHour = bytesPerHour }

    /// Whether a record of `dead-letters` may be appended; its size counts then.
    ///
    /// - Parameter time: the log's time of the record of `uploads`, in microseconds since 1970.
    mutating func allows(_ record: NewRecord, at time: Int64) -> Bool {
        var hour = owners[record.key] ?? Hour(start: time)
        if time - hour.start >= Self.microseconds { hour = Hour(start: time) }
        guard hour.bytes == 0 || hour.bytes + record.size <= bytesPerHour else { return false }
        hour.bytes += record.size
        if owners.count >= Self.maximumOwners, owners[record.key] == nil { owners = [:] }
        owners[record.key] = hour
        return true
    }
}

extension DeadLetter.Subject {
    /// The same without what was refused: of changes the first reason remains, and the others are counted.
    fileprivate var withoutContent: DeadLetter.Subject {
        switch self {
        case .changes(var refused):
            for change in refused.changes.dropFirst() { refused.others[change.refusal.code, default: 0] += 1 }
            refused.changes.removeSubrange(1...)
            refused.changes[0].json = []
            return .changes(refused)
        case .record(let refusal, _): return .record(refusal, value: [])
        }
    }
}
