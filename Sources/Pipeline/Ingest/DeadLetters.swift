import ChangeLog
import SyncModel
import SyncWire

/// Builds the records of `dead-letters`.
///
/// A record that would be larger than the log accepts omits what was refused; it names the record of `uploads`.
struct DeadLetters {
    let partitioning: Partitioning
    let maximumRecordSize: Int

    /// The record of a refused change, with its JSON, for the caller's own partition.
    func record(
        _ refusal: Refusal, json: [UInt8], of batch: ChangeBatch, _ upload: UploadReference, at logTime: Int64
    ) -> NewRecord {
        let subject = DeadLetter.Subject.change(
            device: batch.device, batch: batch.batch, refusal: refusal, json: json)
        return newRecord(
            to: partitioning.partition(of: batch.device.caller), key: Array(batch.device.caller.text.utf8),
            DeadLetter(upload: upload, logTime: logTime, subject: subject))
    }

    /// The record of a record of `uploads` that was refused as a whole, for the same partition.
    func record(_ record: LogRecord, _ upload: UploadReference, _ refusal: RecordRefusal) -> NewRecord {
        let subject = DeadLetter.Subject.record(refusal, value: record.value)
        return newRecord(
            to: upload.partition, key: record.key,
            DeadLetter(upload: upload, logTime: record.time, subject: subject))
    }

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

extension DeadLetter.Subject {
    /// The same without what was refused.
    fileprivate var withoutContent: DeadLetter.Subject {
        switch self {
        case .change(let device, let batch, let refusal, _):
            .change(device: device, batch: batch, refusal: refusal, json: [])
        case .record(let refusal, _): .record(refusal, value: [])
        }
    }
}
