/// A key of log metadata; every key of the program stands in this file, so that one thing has one name everywhere.
///
/// No key may carry personal data: no values of rows, no tokens, no ids of owners or devices. `partition`, `offset` and
/// `batch` lead to the record that a line is about.
package struct LogKey: Sendable, Hashable {
    /// The name in lines: lower case with underscores, its unit at the end where it has one.
    package let name: String

    private init(_ name: String) {
        self.name = name
    }
}

extension LogKey {
    // MARK: Where

    /// The pipeline's stage: gateway, ingest, ordering, fanout.
    package static let stage = LogKey("stage")

    /// A service of the process.
    package static let service = LogKey("service")

    /// A topic of the log.
    package static let topic = LogKey("topic")

    /// A partition of a topic.
    package static let partition = LogKey("partition")

    /// A record's offset in its partition.
    package static let offset = LogKey("offset")

    /// A device's batch number.
    package static let batch = LogKey("batch")

    /// A table of the schema.
    package static let table = LogKey("table")

    /// The host and port that something listens on or connects to.
    package static let address = LogKey("address")

    /// Where something can be looked at.
    package static let url = LogKey("url")

    /// A file or folder.
    package static let path = LogKey("path")

    // MARK: What happened

    /// An error, in words.
    package static let error = LogKey("error")

    /// A stable code of an error or answer.
    package static let code = LogKey("code")

    /// Why something was done.
    package static let reason = LogKey("reason")

    /// A signal that the process received.
    package static let signal = LogKey("signal")

    // MARK: How much

    /// A number of things.
    package static let count = LogKey("count")

    /// A size in bytes.
    package static let bytes = LogKey("bytes")

    /// How long something took, in seconds.
    package static let duration = LogKey("duration_s")

    /// A bound that was reached or applies, in the unit of what it bounds.
    package static let limit = LogKey("limit")

    // MARK: What is in force

    /// The program's version.
    package static let version = LogKey("version")

    /// The version of a schema: its hash.
    package static let schemaVersion = LogKey("schema_version")

    /// The id of this history.
    package static let epoch = LogKey("epoch")
}
