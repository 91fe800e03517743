import AsyncPrimitives
import ChangeLog
import Foundation
import MemoryChangeLog
import Observability
import Ordering
import PartitionSupervision
import RecordStore
import SQLite
import SQLiteRecordStore
import SyncModel
import SyncWire
import Verification

/// A log, and a folder with tables that the ordering stage wrote from it.
struct World {
    static let history = History(epoch: "e1", partitions: 1, clock: .sequence(first: 100), pieceSize: 400)

    static let schemas: SchemaHistory = {
        let schema = Schema(tables: [
            Table(name: "note", columns: [Column(name: "a", type: .integer), Column(name: "b", type: .text)])
        ])
        var schemas = SchemaHistory()
        schemas.append(.init(version: SchemaVersion(ordinal: 1, of: schema), schema: schema))
        return schemas
    }()

    let log = MemoryChangeLog(MemoryLogContents(partitionCount: 1))
    let folder: String

    var path: String { folder + "/tables.db" }

    static func with(_ body: (World) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("weir-verify-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let world = World(folder: folder.path)
        let result = await Result.capturing { try await body(world) }
        await world.log.close()
        try FileManager.default.removeItem(at: folder)
        try result.get()
    }

    private init(folder: String) { self.folder = folder }

    /// The records that are left out.
    var skipped = SkippedRecords()

    // MARK: The log

    func append(_ values: [[UInt8]], to topic: Topic) async throws {
        let producer = try await log.producer()
        try await producer.append(
            values.map { NewRecord(to: TopicPartition(topic, 0), key: Array("abc".utf8), value: $0) })
        await producer.close()
    }

    /// Appends parts, each with a change of one of seven rows by one of three devices.
    func appendChanges(_ count: Int, from first: Int = 0) async throws {
        let values = (first..<(first + count)).map { number in
            var columns = RowValues()
            columns.append(Array("\(number)".utf8))
            columns.append(Array("\"text \(number)\"".utf8))
            let owner = SyncID(unchecked: "abc")
            let device = Device(caller: owner, knowledgeID: KnowledgeID(unchecked: "k\(number % 3)"))
            let id = ShortDigest(prefixOf: Array(repeating: UInt8(number % 256), count: 16))
            let change = Change(
                index: 0, table: 0, id: RowID(unchecked: "r\(number * number % 7)"), knowledgeID: device.knowledgeID,
                isDelete: number % 5 == 4, values: columns, base: .zero,
                identity: number % 4 == 0 ? ChangeIdentity(id: id, content: id) : nil)
            return ChangePart(
                epoch: Self.history.epoch, schema: Self.schemas.entries[0].version.hash,
                upload: UploadReference(partition: 0, offset: Int64(number)), logTime: Int64(number), part: 0,
                owner: owner, device: device, batch: Int64(number / 3 + 1),
                contentHash: Array(repeating: UInt8(number % 256), count: 32), changes: [change],
                summary: BatchSummary(changeCount: 1)
            ).encode(naming: Self.schemas.entries[0].schema)
        }
        try await append(values, to: .changes)
    }

    // MARK: The tables

    func withTables<Value: Sendable>(
        at path: String? = nil, _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        let store = try await SQLiteRecordStore.open(.init(path: path ?? self.path))
        let result = await Result.capturing {
            try await store.prepare(Self.schemas, epoch: Self.history.epoch)
            return try await body(store)
        }
        await store.close()
        return try result.get()
    }

    /// Orders all of `changes`: publishes to the log and writes the tables.
    func order(at path: String? = nil) async throws {
        try await withTables(at: path) { store in
            let end = try await log.range(of: TopicPartition(.changes, 0)).end
            let (written, continuation) = AsyncStream.makeStream(of: Int64.self)
            let watched = WatchedStore(base: store) { continuation.yield($0.state.nextOffset) }
            let service = OrderingService(
                StageContext(
                    log: log, history: Self.history, schemas: KnownSchemas(Self.schemas, leavingOut: skipped),
                    logger: Self.logger),
                store: watched, configuration: OrderingConfiguration())
            let running = Task { try await service.run() }
            for await offset in written where offset >= end { break }
            running.cancel()
            try await running.value
        }
    }

    /// Runs SQL on the tables' file.
    func execute(_ sql: String) async throws {
        let writer = try await DatabaseWriter.open(path: path)
        let result = await Result.capturing {
            try await writer.perform { connection in try connection.execute(sql) }
        }
        try await writer.close()
        try result.get()
    }

    // MARK: Verifying

    static func source<Log: ChangeLog>(
        _ log: Log, _ configuration: OrderingConfiguration = OrderingConfiguration(),
        leavingOut skipped: SkippedRecords = SkippedRecords(), progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> ReplaySource<Log> {
        ReplaySource(
            log: log, history: history, schemas: schemas, leavingOut: skipped, configuration: configuration,
            logger: logger, progress: progress)
    }

    static let logger = Logger(label: "test", output: LogOutput(format: .text, to: NoLines()), level: .critical)

    /// The findings on the partition, by subject.
    ///
    /// - Parameter rowsFault: thrown where rows are read by their keys.
    func verify(rowsFault: RecordStoreError? = nil) async throws -> [String: Finding] {
        let scratch = folder + "/scratch-\(UUID().uuidString).db"
        return try await withTables { tables in
            try await withTables(at: scratch) { made in
                let reports = try await Verifier(
                    Self.source(log, leavingOut: skipped), tables: WatchedStore(base: tables, rowsFault: rowsFault),
                    scratch: made,
                    streams: folder
                ).run()
                let lines = reports.filter { $0.partition == 0 }.flatMap(\.lines)
                return Dictionary(uniqueKeysWithValues: lines.map { ($0.subject, $0.finding) })
            }
        }
    }

    /// The first difference of a subject, and how many there are.
    func difference(in subject: String) async throws -> (Difference, count: Int)? {
        guard case .different(let difference, let count) = try await verify()[subject] else { return nil }
        return (difference, count)
    }
}

extension Finding {
    var isEqual: Bool {
        if case .equal = self { true } else { false }
    }
}

/// Discards log lines.
private struct NoLines: LogSink {
    func write(_ line: [UInt8]) {}
}

/// Tables that report what is written, and fail where a test wants it.
struct WatchedStore: RecordStore {
    let base: SQLiteRecordStore
    var rowsFault: RecordStoreError?
    /// Called after each step.
    var written: @Sendable (StoredPosition) async -> Void = { _ in }
    /// Steps after this offset are rejected.
    var end = Int64.max

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await base.prepare(schemas, epoch: epoch)
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await base.position(of: partition)
    }

    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        if let rowsFault { throw rowsFault }
        return try await base.rows(keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
    }

    func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await base.progress(requests, in: partition)
    }

    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        if steps.contains(where: { $0.position.state.nextOffset > end }) {
            throw RecordStoreError(.storageFull, message: "the disk is full")
        }
        try await base.commit(steps)
        for step in steps { await written(step.position) }
    }

    func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        try await base.usage(of: owners, in: partition)
    }

    func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        try await base.appliedChanges(keys, in: partition)
    }

    func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await base.appliedChanges(of: partition, body)
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try await base.size(of: partition)
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await base.snapshot(of: partition, schemaOrdinal: schemaOrdinal, body)
    }

    func close() async { await base.close() }
}
