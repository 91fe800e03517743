import ChangeLog
import SyncModel
import SyncWire
import Synchronization

/// What all roles agree on, read from the topic `control`: the history and its schema versions.
///
/// Opening it reads the topic whole. Whoever finds another history than the one configured refuses to start.
public final class ControlTopic: Sendable {
    /// What the history was made with.
    public let history: History
    private let known: Mutex<SchemaHistory>

    /// The schema versions known now.
    public var schemas: SchemaHistory { known.withLock { $0 } }

    private init(history: History, schemas: SchemaHistory) {
        self.history = history
        known = Mutex(schemas)
    }

    /// Reads `control`, and writes `proposed` as the history where there is none.
    ///
    /// - Parameters:
    ///   - log: the log that holds the topic.
    ///   - proposed: the history to make in an empty log; its partitions and clock are compared with an existing one's.
    /// - Throws: ``ControlError`` when the history differs from what is configured; ``ChangeLogError``.
    public static func open(in log: some ChangeLog, proposed: History) async throws -> ControlTopic {
        var found = try await read(log)
        if found.history == nil {
            try await append(.history(proposed), to: log)
            // Two processes may find an empty log at once; whoever comes second must see it.
            found = try await read(log)
        }
        guard let history = found.history else { throw ControlError.historyLost }
        try check(history, against: proposed)
        return ControlTopic(history: history, schemas: found.schemas)
    }

    /// Reads `control` as it is: for a command that works on a history whatever is configured.
    ///
    /// - Throws: ``ControlError/noHistory`` where there is none; `ChangeLogError`.
    public static func existing(in log: some ChangeLog) async throws -> ControlTopic {
        let found = try await read(log)
        guard let history = found.history else { throw ControlError.noHistory }
        guard history.partitionFunction.utf8.elementsEqual(Partitioning.functionName.utf8) else {
            throw ControlError.otherPartitionFunction(history.partitionFunction)
        }
        return ControlTopic(history: history, schemas: found.schemas)
    }

    /// Reads the topic whole.
    ///
    /// The same record again says nothing new, as when its first acknowledgement was lost.
    private static func read(_ log: some ChangeLog) async throws -> (history: History?, schemas: SchemaHistory) {
        var history: (value: History, bytes: [UInt8])?
        var schemas = SchemaHistory()
        var schemaBytes: [[UInt8]] = []
        for record in try await records(of: log) {
            switch try decode(record) {
            case .history(let found):
                guard history == nil || history?.bytes == record.value else { throw ControlError.severalHistories }
                history = (found, record.value)
            case .schema(let entry):
                let ordinal = entry.version.ordinal
                if ordinal <= schemaBytes.count {
                    guard schemaBytes[ordinal - 1] == record.value else {
                        throw ControlError.severalSchemas(ordinal: ordinal)
                    }
                    continue
                }
                guard ordinal == schemaBytes.count + 1 else {
                    throw ControlError.schemaGap(found: ordinal, expected: schemaBytes.count + 1)
                }
                schemas.append(entry)
                schemaBytes.append(record.value)
            }
        }
        return (history?.value, schemas)
    }

    private static func decode(_ record: LogRecord) throws(ControlError) -> ControlRecord {
        do {
            return try ControlRecord(decoding: record.value)
        } catch {
            throw .unreadableRecord(offset: record.offset, reason: "\(error)")
        }
    }

    /// Makes the declared tables the newest schema version, unless they are it already.
    ///
    /// One call at a time.
    ///
    /// - Throws: ``ControlError/incompatibleSchema(_:)`` when the tables would lose data of the newest version.
    @discardableResult
    public func register(_ declared: [Table], in log: some ChangeLog) async throws -> SchemaHistory.Entry {
        let schemas = schemas
        let evolved = try schemas.evolved(to: declared)
        guard let entry = evolved.newest else { preconditionFailure("an evolved history has a version") }
        if evolved.entries.count == schemas.entries.count { return entry }
        try await Self.append(.schema(entry), to: log)
        known.withLock { $0.append(entry) }
        return entry
    }

    private static func records(of log: some ChangeLog) async throws -> [LogRecord] {
        let partition = TopicPartition(.control, 0)
        let range = try await log.range(of: partition)
        guard range.end > range.start else { return [] }
        let reader = try await log.reader(of: partition, from: range.start)
        let result = await Result.capturing {
            var records: [LogRecord] = []
            while (records.last?.offset ?? -1) + 1 < range.end {
                records += try await reader.next(maximumBytes: 1 << 20)
            }
            return records
        }
        await reader.close()
        return try result.get()
    }

    private static func append(_ record: ControlRecord, to log: some ChangeLog) async throws {
        let producer = try await log.producer()
        let result = await Result.capturing {
            try await producer.append([
                NewRecord(to: TopicPartition(.control, 0), key: record.key, value: record.encode())
            ])
        }
        await producer.close()
        _ = try result.get()
    }

    private static func check(_ history: History, against proposed: History) throws {
        if history.partitions != proposed.partitions {
            throw ControlError.otherPartitionCount(recorded: history.partitions, configured: proposed.partitions)
        }
        if !history.partitionFunction.utf8.elementsEqual(proposed.partitionFunction.utf8) {
            throw ControlError.otherPartitionFunction(history.partitionFunction)
        }
        if history.clock != proposed.clock {
            throw ControlError.otherClock(recorded: history.clock, configured: proposed.clock)
        }
    }
}
