/// An operator's decision, in `control`, that a record is left out: its partition would wait at it permanently.
package struct SkippedRecord: Sendable, Hashable {
    /// The topics whose records may be left out; what is in `ordered` was received by devices.
    package enum Source: String, Sendable, Hashable, CaseIterable {
        case uploads, changes
    }

    /// Where the record is.
    package struct Position: Sendable, Hashable {
        package let source: Source
        package let partition: Int
        package let offset: Int64

        package init(_ source: Source, _ partition: Int, offset: Int64) {
            self.source = source
            self.partition = partition
            self.offset = offset
        }
    }

    /// The size of a reason.
    package static let maximumReasonLength = 1000

    package let position: Position
    /// In the operator's words, 1 to ``maximumReasonLength`` bytes.
    package let reason: String
    /// How many schema versions `control` had when it was decided.
    ///
    /// The decision counts only if it has as many before it: with a further version the record might have been processed
    /// already by a worker that knows it (I4).
    package let schemaVersions: Int

    package init(_ position: Position, reason: String, schemaVersions: Int) {
        self.position = position
        self.reason = reason
        self.schemaVersions = schemaVersions
    }
}

/// The records that are left out, in the order in which that was decided.
package struct SkippedRecords: Sendable, Hashable {
    package struct Entry: Sendable, Hashable {
        package let record: SkippedRecord
        /// When it was decided, by the log's time: microseconds since 1970.
        package let time: Int64
    }

    package private(set) var entries: [Entry] = []
    private var byPosition: [SkippedRecord.Position: Int] = [:]

    package init() {}

    /// Adds a decision; of several about one record the first counts.
    package mutating func append(_ record: SkippedRecord, at time: Int64) {
        guard byPosition[record.position] == nil else { return }
        byPosition[record.position] = entries.count
        entries.append(Entry(record: record, time: time))
    }

    /// The decision to leave a record out; `nil` where there is none.
    package subscript(source: SkippedRecord.Source, partition: Int, offset: Int64) -> Entry? {
        if entries.isEmpty { return nil }
        return byPosition[SkippedRecord.Position(source, partition, offset: offset)].map { entries[$0] }
    }
}
