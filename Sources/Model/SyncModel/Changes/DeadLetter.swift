/// A record of `dead-letters`: what ingest refused.
package struct DeadLetter: Sendable, Hashable {
    package enum Subject: Sendable, Hashable {
        /// One change of a batch, with its JSON as sent.
        case change(device: Device, batch: Int64?, refusal: Refusal, json: [UInt8])
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
    }

    package let code: Code
    /// For developers: what was wrong, and where.
    package let reason: String

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
