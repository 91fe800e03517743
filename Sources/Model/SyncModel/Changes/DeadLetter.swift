/// A record of `dead-letters`: what ingest refused.
package struct DeadLetter: Sendable, Hashable {
    package enum Subject: Sendable, Hashable {
        /// Changes of a batch.
        case changes(RefusedChanges)
        /// A record of `uploads` that violates the contract.
        case record(RecordRefusal, value: [UInt8])
    }

    package var upload: UploadReference
    /// Log timestamp of the `uploads` record, microseconds since 1970.
    package var logTime: Int64
    package var subject: Subject

    package init(upload: UploadReference, logTime: Int64, subject: Subject) {
        self.upload = upload
        self.logTime = logTime
        self.subject = subject
    }
}

/// The refused changes of one batch: the first ones with their JSON, the others counted, so that a batch causes no more than it
/// brought.
package struct RefusedChanges: Sendable, Hashable {
    package struct Change: Sendable, Hashable {
        package let refusal: Refusal
        /// As it was sent; empty where a record of the log cannot hold it.
        package var json: [UInt8]

        package init(_ refusal: Refusal, json: [UInt8]) {
            self.refusal = refusal
            self.json = json
        }
    }

    package let device: Device
    package let batch: Int64?
    /// In the order of the request.
    package var changes: [Change]
    /// How many further changes were refused, by code.
    package var others: [RefusalCode: Int]

    package init(device: Device, batch: Int64?, changes: [Change], others: [RefusalCode: Int] = [:]) {
        self.device = device
        self.batch = batch
        self.changes = changes
        self.others = others
    }
}

/// Why ingest refused a whole record of `uploads`.
///
/// Nothing of it is applied.
package struct RecordRefusal: Sendable, Hashable {
    package enum Code: String, Sendable, Hashable, CaseIterable {
        /// The value is not a valid `ChangeBatch`.
        case malformedMessage = "malformed_message"
        /// The record is not in the caller's partition.
        case wrongPartition = "wrong_partition"
        /// `changes` is not a JSON array.
        case malformedChanges = "malformed_changes"
        case tooManyChanges = "too_many_changes"
        /// Changes are refused, and their refusals exceed the size of a record.
        case tooManyRefusals = "too_many_refusals"
        /// An operator decided to leave the record out (``SkippedRecord``).
        case skipped
    }

    package let code: Code
    /// For developers: what was wrong, and where.
    package let reason: String

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
