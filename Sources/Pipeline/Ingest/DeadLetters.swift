import ChangeLog
import SyncModel
import SyncWire

/// Makes the records of `dead-letters`.
///
/// A letter that would be larger than the log takes goes without what was refused: it names the record of `uploads`.
struct DeadLetters {
    let partitioning: Partitioning
    let maximumRecordSize: Int

    /// A change that was refused, by its JSON; it goes to the caller's own partition.
    func letter(
        _ refusal: Refusal, json: [UInt8], of batch: ChangeBatch, _ upload: UploadReference, at logTime: Int64
    ) -> NewRecord {
        let subject = DeadLetter.Subject.change(
            device: batch.device, batch: batch.batch, refusal: refusal, json: json)
        return newRecord(
            to: partitioning.partition(of: batch.device.caller), key: Array(batch.device.caller.text.utf8),
            DeadLetter(upload: upload, logTime: logTime, subject: subject))
    }

    /// A record of `uploads` that was refused as a whole; it goes to the partition that it came from.
    func letter(_ record: LogRecord, _ upload: UploadReference, _ refusal: RecordRefusal) -> NewRecord {
        let subject = DeadLetter.Subject.record(refusal, value: record.value)
        return newRecord(
            to: upload.partition, key: record.key,
            DeadLetter(upload: upload, logTime: record.time, subject: subject))
    }

    private func newRecord(to partition: Int, key: [UInt8], _ letter: DeadLetter) -> NewRecord {
        let destination = TopicPartition(.deadLetters, partition)
        let value = letter.encode()
        if key.count + value.count <= maximumRecordSize { return NewRecord(to: destination, key: key, value: value) }
        var short = letter
        short.subject = letter.subject.withoutContent
        // The key of another edge's record may be of any size; an id's is bounded.
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
