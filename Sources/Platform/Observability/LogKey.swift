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

    package static let service = LogKey("service")

    package static let topic = LogKey("topic")

    package static let partition = LogKey("partition")

    package static let offset = LogKey("offset")

    /// A device's batch number.
    package static let batch = LogKey("batch")

    package static let table = LogKey("table")

    /// Host and port.
    package static let address = LogKey("address")

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

    package static let signal = LogKey("signal")

    // MARK: Quantities

    package static let count = LogKey("count")

    package static let bytes = LogKey("bytes")

    /// In seconds.
    package static let duration = LogKey("duration_s")

    /// A limit that was reached or applies, in the unit of the limited value.
    package static let limit = LogKey("limit")

    // MARK: Versions

    package static let version = LogKey("version")

    /// The hash of a schema version.
    package static let schemaVersion = LogKey("schema_version")

    /// The epoch: the id of one run of history.
    package static let epoch = LogKey("epoch")
}
