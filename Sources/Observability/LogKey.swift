/// A key of log metadata; every key of the program stands in this file, so that one thing has one name everywhere.
///
/// No key may carry personal data: no values of rows, no tokens, no ids of owners or devices. `partition`, `offset` and
/// `batch` lead to the record that a line is about.
public struct LogKey: Sendable, Hashable {
    /// The name in lines: lower case with underscores, its unit at the end where it has one.
    public let name: String

    private init(_ name: String) {
        self.name = name
    }
}

extension LogKey {
    // MARK: Where

    /// The pipeline's stage: gateway, ingest, ordering, fanout.
    public static let stage = LogKey("stage")

    /// A service of the process.
    public static let service = LogKey("service")

    /// A topic of the log.
    public static let topic = LogKey("topic")

    /// A partition of a topic.
    public static let partition = LogKey("partition")

    /// A record's offset in its partition.
    public static let offset = LogKey("offset")

    /// A device's batch number.
    public static let batch = LogKey("batch")

    /// A table of the schema.
    public static let table = LogKey("table")

    /// The host and port that something listens on or connects to.
    public static let address = LogKey("address")

    /// Where something can be looked at.
    public static let url = LogKey("url")

    /// A file or folder.
    public static let path = LogKey("path")

    // MARK: What happened

    /// An error, in words.
    public static let error = LogKey("error")

    /// A stable code of an error or answer.
    public static let code = LogKey("code")

    /// Why something was done.
    public static let reason = LogKey("reason")

    /// A signal that the process received.
    public static let signal = LogKey("signal")

    // MARK: How much

    /// A number of things.
    public static let count = LogKey("count")

    /// A size in bytes.
    public static let bytes = LogKey("bytes")

    /// How long something took, in seconds.
    public static let duration = LogKey("duration_s")

    /// A bound that was reached or applies, in the unit of what it bounds.
    public static let limit = LogKey("limit")

    // MARK: What is in force

    /// The program's version.
    public static let version = LogKey("version")

    /// The version of a schema: its hash.
    public static let schemaVersion = LogKey("schema_version")

    /// The id of this history.
    public static let epoch = LogKey("epoch")
}
