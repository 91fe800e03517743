/// A key of log metadata; all keys of the program are declared in this file.
///
/// No value may be personal data: no values of rows, no tokens, no ids of owners or devices. `partition`, `offset` and
/// `batch` identify the record that a line is about.
package struct LogKey: Sendable, Hashable {
    /// In lower case with underscores, with the unit at the end.
    package let name: String

    private init(_ name: String) {
        self.name = name
    }
}

extension LogKey {
    // MARK: Location

    /// The pipeline's stage: gateway, ingest, ordering, fanout.
    package static let stage = LogKey("stage")

    /// A service of the process.
    package static let service = LogKey("service")

    /// A topic of the log.
    package static let topic = LogKey("topic")

    /// A partition of a topic, or several.
    package static let partition = LogKey("partition")

    /// A record's offset in its partition.
    package static let offset = LogKey("offset")

    /// A device's batch number.
    package static let batch = LogKey("batch")

    /// A table of the schema.
    package static let table = LogKey("table")

    /// A host and port.
    package static let address = LogKey("address")

    /// A URL.
    package static let url = LogKey("url")

    /// A file or folder.
    package static let path = LogKey("path")

    // MARK: Events

    /// The description of an error.
    package static let error = LogKey("error")

    /// A stable code of an error or response.
    package static let code = LogKey("code")

    /// Why something happened.
    package static let reason = LogKey("reason")

    /// A signal that the process received.
    package static let signal = LogKey("signal")

    // MARK: Quantities

    /// A number of things.
    package static let count = LogKey("count")

    /// A size in bytes.
    package static let bytes = LogKey("bytes")

    /// A duration in seconds.
    package static let duration = LogKey("duration_s")

    /// A limit that was reached or applies, in the unit of the limited value.
    package static let limit = LogKey("limit")

    /// The end of a validity: RFC 3339 in UTC.
    package static let expires = LogKey("expires")

    // MARK: Versions

    /// The program's version.
    package static let version = LogKey("version")

    /// The hash of a schema version.
    package static let schemaVersion = LogKey("schema_version")

    /// The epoch: the id of one run of history.
    package static let epoch = LogKey("epoch")
}
