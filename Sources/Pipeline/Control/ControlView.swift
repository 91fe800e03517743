import ChangeLog
import SyncModel
import SyncWire

/// The content of `control`, read record by record.
///
/// Every record has a key of its own, so compaction removes none, and their order is permanent: of two records with one
/// schema version number, the first counts for every reader.
struct ControlView: Sendable {
    /// What a record adds.
    enum News {
        /// Nothing: the record is a repeat.
        case nothing
        /// Another process registered this number before: the record is ignored.
        case late(ordinal: Int)
        case history
        case schema(SchemaHistory.Entry)
        case skip(SkippedRecord)
        case device(DeviceDecision)
        /// A schema version was registered while the decision was made: it is ignored.
        case overtaken(SkippedRecord)
    }

    private(set) var history: History?
    private(set) var schemas = SchemaHistory()
    private(set) var skipped = SkippedRecords()
    private(set) var revoked = RevokedDevices()
    /// The offset after the last record read.
    private(set) var nextOffset: Int64
    private var historyBytes: [UInt8] = []
    private var schemaBytes: [[UInt8]] = []
    /// A record of a schema version could not be read: no later one can be given its number.
    private var lacksVersion = false

    init(from offset: Int64) { nextOffset = offset }

    /// Applies the next record.
    mutating func take(_ record: LogRecord) throws(ControlError) -> News {
        let decoded: ControlRecord
        do {
            decoded = try ControlRecord(decoding: record.value)
        } catch {
            throw .unreadableRecord(offset: record.offset, reason: "\(error)")
        }
        let news: News
        switch decoded {
        case .history(let found):
            guard history == nil || historyBytes == record.value else { throw .severalHistories }
            news = history == nil ? .history : .nothing
            (history, historyBytes) = (found, record.value)
        case .schema(let entry): news = try take(entry, record.value)
        case .skip(let skip):
            let counts = !lacksVersion && skip.schemaVersions == schemas.entries.count
            news = counts ? .skip(skip) : .overtaken(skip)
            if counts { skipped.append(skip, at: record.time) }
        case .device(let decision):
            news = .device(decision)
            revoked.append(decision)
        }
        nextOffset = record.offset + 1
        return news
    }

    /// Skips a record that cannot be read.
    ///
    /// - Returns: whether it may be a schema version, after which no other can be applied.
    mutating func pass(_ record: LogRecord) -> Bool {
        nextOffset = record.offset + 1
        let isOfAnotherKind =
            !record.key.isEmpty && !["history", "schema/"].contains { record.key.starts(with: $0.utf8) }
        if !isOfAnotherKind { lacksVersion = true }
        return !isOfAnotherKind
    }

    private mutating func take(_ entry: SchemaHistory.Entry, _ bytes: [UInt8]) throws(ControlError) -> News {
        let ordinal = entry.version.ordinal
        if ordinal <= schemaBytes.count {
            return schemaBytes[ordinal - 1] == bytes ? .nothing : .late(ordinal: ordinal)
        }
        if lacksVersion { return .nothing }
        guard ordinal == schemaBytes.count + 1 else {
            throw .schemaGap(found: ordinal, expected: schemaBytes.count + 1)
        }
        schemas.append(entry)
        schemaBytes.append(bytes)
        return .schema(entry)
    }
}
