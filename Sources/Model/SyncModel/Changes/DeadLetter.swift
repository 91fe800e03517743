/// A record of `dead-letters`: what ingest refused.
package struct DeadLetter: Sendable, Hashable {
    /// What was refused.
    package enum Subject: Sendable, Hashable {
        /// One change of a batch: its refusal, and its JSON as it was sent.
        case change(device: Device, batch: Int64?, refusal: Refusal, json: [UInt8])
        /// A record of `uploads` that breaks the contract: why it was refused, and the record.
        case record(RecordRefusal, value: [UInt8])
    }

    /// The record of `uploads`.
    package var upload: UploadReference
    /// Microseconds since 1970 that the log gave it.
    package var logTime: Int64
    /// What was refused.
    package var subject: Subject

    /// Makes a letter.
    package init(upload: UploadReference, logTime: Int64, subject: Subject) {
        self.upload = upload
        self.logTime = logTime
        self.subject = subject
    }
}

/// Why ingest refused a record of `uploads` as a whole: it breaks the contract, and nothing of it is applied.
package struct RecordRefusal: Sendable, Hashable {
    /// The ways to break the contract.
    package enum Code: String, Sendable, Hashable, CaseIterable {
        /// The value is no message of the contract.
        case malformedMessage = "malformed_message"
        /// The record lies in another partition than its caller's uploads.
        case wrongPartition = "wrong_partition"
        /// `changes` is no JSON array.
        case malformedChanges = "malformed_changes"
        /// More changes than a batch may have.
        case tooManyChanges = "too_many_changes"
        /// Its changes are refused, and the log does not take so many refusals in one record.
        case tooManyRefusals = "too_many_refusals"
    }

    /// Which.
    package let code: Code
    /// What was wrong, and where, for a developer.
    package let reason: String

    /// States a refusal.
    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
