import Configuration
import Control
import SyncModel

/// What the whole process needs: where its data is, and what a new history is created with.
package struct PipelineConfiguration: ConfigurationComponent {
    /// Where log and tables are.
    package enum Storage: String, Sendable, CaseIterable {
        case embedded, cluster
    }

    package var data = "weir-data"
    package var schema = ""
    package var storage = Storage.embedded
    package var partitions: Int?
    package var clock = TimeStampClock.logTime
    package var pieceBytes = 512 << 10

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting("data", \.data, .path, "Folder of the log, the tables and the streams; created when missing.")
        Setting(required: "schema", \.schema, .path, "The schema file: the tables that devices sync.")
        Setting(
            "storage", \.storage, .choice(Storage.self),
            "Where weir run keeps log and tables: in files of the data folder, or in Kafka and Postgres.")
        Setting(
            optional: "partitions", \.partitions, .integer(in: 1...1024),
            "Partitions of a new history, permanently: an owner belongs to one; 4 in files and 64 in Kafka where not set."
        )
        Setting(
            "clock", \.clock, .timeStampClock,
            "How timeStamps grow in a new history: with the log's time, or by one from a number on.")
        Setting(
            "piece-bytes", \.pieceBytes, .byteSize(in: 1024...(16 << 20)),
            "Size above which a new history splits the result of a batch into several records.")
    }
}

/// What a batch may hold.
package struct LimitsConfiguration: ConfigurationComponent {
    package var limits = SyncLimits()

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "max-batch-bytes", \.limits.maxBatchBytes, .byteSize(in: 1024...(16 << 20)),
            "Size of a whole request, decompressed.")
        Setting(
            "max-changes", \.limits.outcome.maxChanges, .integer(in: 1...OutcomeLimits.greatest.maxChanges),
            "Changes of a batch.")
        Setting(
            "max-value-bytes", \.limits.outcome.maxValueBytes, .byteSize(in: 16...OutcomeLimits.greatest.maxValueBytes),
            "Size of a value's canonical JSON.")
        Setting(
            "max-row-bytes", \.limits.outcome.maxRowBytes, .byteSize(in: 16...OutcomeLimits.greatest.maxRowBytes),
            "Size of the canonical JSON of all values of a row, which no change may exceed.")
        Setting(
            "max-batch-row-bytes", \.limits.outcome.maxBatchRowBytes,
            .byteSize(in: 16...OutcomeLimits.greatest.maxBatchRowBytes),
            "Size of all rows of one owner that a batch changes, as they are before it; changes to further rows are refused. "
                + "Ordering needs several times this for such a batch. By default at least max-row-bytes.")
        Setting(
            "max-owner-rows", \.limits.outcome.maxOwnerRows, .integer(in: 0...OutcomeLimits.greatest.maxOwnerRows),
            "Rows that an owner may have, and ten times as many together with deleted ones; 0 for any number.")
        Setting(
            "max-owner-bytes", \.limits.outcome.maxOwnerBytes, .byteSize(in: 0...OutcomeLimits.greatest.maxOwnerBytes),
            "Size of the values of an owner's rows as canonical JSON, without defaults and nulls, and ten times as much together with "
                + "those of deleted rows; 0 for any size.")
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        let (value, row) = (limits.outcome.maxValueBytes, limits.outcome.maxRowBytes)
        if value > row {
            throw context.problem(with: \.limits.outcome.maxRowBytes, "is \(row), less than max-value-bytes, \(value)")
        }
        let touched = limits.outcome.maxBatchRowBytes
        if row > touched, context.isGiven(\.limits.outcome.maxBatchRowBytes) {
            throw context.problem(
                with: \.limits.outcome.maxBatchRowBytes, "is \(touched), less than max-row-bytes, \(row)")
        }
        limits.outcome.maxBatchRowBytes = max(row, touched)
    }
}

extension ConfigurationType where Value == TimeStampClock {
    /// `log-time` or `sequence(N)`.
    fileprivate static var timeStampClock: ConfigurationType {
        ConfigurationType(
            placeholder: "CLOCK", expected: "log-time, or sequence(N) with N from 1 to 2^53-1",
            parse: { text in
                guard let text = text.one else { return nil }
                if text.utf8.elementsEqual("log-time".utf8) { return .logTime }
                guard text.hasPrefix("sequence("), text.hasSuffix(")"),
                    let first = Int64(text.dropFirst(9).dropLast()), first >= 1, TimeStamp(rawValue: first) != nil
                else { return nil }
                return .sequence(first: first)
            },
            render: { $0.name })
    }
}
