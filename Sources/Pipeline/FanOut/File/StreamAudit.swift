import SQLite
import SyncModel
import SyncWire
import Synchronization
import ThreadExecutor

/// Reads a whole stream file, for verification.
///
/// The file must not be served or written in the meantime. SQLite runs on a thread of its own.
package final class StreamAudit: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        /// Whether the file is missing or incomplete; the next start rebuilds it.
        package let isMissing: Bool
        package let description: String

        init(_ failure: StreamFailure) {
            if case .missing = failure { isMissing = true } else { isMissing = false }
            description = failure.description
        }
    }

    package struct Row: Sendable, Hashable {
        package let key: RowKey
        /// The creating device.
        package let knowledgeID: KnowledgeID
        package let timeStamp: TimeStamp
        package let isExact: Bool
        /// Microseconds since 1970.
        package let createdAt: Int64
        /// How many columns the JSON has.
        package let columns: Int
        package let json: [UInt8]
    }

    package struct Cursor: Sendable {
        let owner: Int64
        let device: Int64
        let timeStamp: Int64
    }

    /// The stored outcomes of one device with one owner.
    package struct DeviceOutcomes: Sendable {
        /// The device's number in the file, the cursor of ``StreamAudit/outcomes(after:)``.
        package let number: Int64
        package let key: DeviceKey
        /// The complete outcomes, unordered.
        package let outcomes: [Outcome]
    }

    /// The number of rows or devices per read.
    private static let count = 1000

    private let thread: DedicatedThread
    private let file = Mutex<StreamFile?>(nil)
    private let position = Mutex(StreamPosition())

    /// ``StreamPosition/changesOffset``.
    package var changesOffset: Int64 { position.withLock(\.changesOffset) }
    /// ``StreamPosition/isComplete``.
    package var isComplete: Bool { position.withLock(\.isComplete) }
    package var timeStamp: TimeStamp { position.withLock(\.timeStamp) }

    private init(_ thread: DedicatedThread) { self.thread = thread }

    /// Opens a partition's file without verifying its content.
    ///
    /// - Parameters:
    ///   - directory: the folder of the stream files.
    ///   - epoch: the expected epoch.
    /// - Throws: ``Failure``; `ThreadStartError`.
    package static func open(directory: String, partition: Int, epoch: String) async throws -> StreamAudit {
        let configuration = FanOutConfiguration(directory: directory)
        let path = ServedPartition(number: partition, configuration).path
        let audit = StreamAudit(try DedicatedThread(name: "weir-audit"))
        do {
            try await audit.thread.run {
                try translating {
                    let identity = StreamFile.Identity(path: path, epoch: epoch, partition: partition)
                    try audit.file.withLock { file in
                        let opened = try StreamFile(opening: identity, check: .heads)
                        audit.position.withLock { $0 = opened.state.position }
                        file = opened
                    }
                }
            }
        } catch {
            await audit.thread.close()
            throw error
        }
        return audit
    }

    /// The next rows, in the order of the file; empty at its end.
    package func rows(after cursor: Cursor?) async throws -> (rows: [Row], cursor: Cursor?) {
        try await read { file in
            var statement = try file.connection.statement(
                """
                SELECT owner_no, device_no, time_stamp, table_no, row_id, json, \
                (SELECT sync_id FROM owners WHERE owners.owner_no = stream.owner_no), \
                (SELECT knowledge_id FROM knowledge WHERE knowledge.device_no = stream.device_no), is_exact, created_at, columns \
                FROM stream WHERE (owner_no, device_no, time_stamp) > (?1, ?2, ?3) \
                ORDER BY owner_no, device_no, time_stamp LIMIT ?4
                """)
            try statement.bind(integer: cursor?.owner ?? -1, at: 1)
            try statement.bind(integer: cursor?.device ?? -1, at: 2)
            try statement.bind(integer: cursor?.timeStamp ?? -1, at: 3)
            try statement.bind(integer: Int64(Self.count), at: 4)
            var rows: [Row] = []
            var last: Cursor?
            while try statement.step() {
                let position = Cursor(
                    owner: try statement.integer(at: 0), device: try statement.integer(at: 1),
                    timeStamp: try statement.integer(at: 2))
                guard let owner = SyncID(utf8: try statement.bytes(at: 6)),
                    let device = KnowledgeID(utf8: try statement.bytes(at: 7)),
                    let id = RowID(utf8: try statement.bytes(at: 4)),
                    let timeStamp = TimeStamp(rawValue: position.timeStamp)
                else {
                    throw StreamFailure.damaged("the row \(position.timeStamp) of owner \(position.owner) is damaged")
                }
                let key = RowKey(table: Int(try statement.integer(at: 3)), owner: owner, id: id)
                rows.append(
                    Row(
                        key: key, knowledgeID: device, timeStamp: timeStamp,
                        isExact: try statement.integer(at: 8) != 0, createdAt: try statement.integer(at: 9),
                        columns: Int(try statement.integer(at: 10)), json: try statement.bytes(at: 5)))
                last = position
            }
            return (rows, last)
        }
    }

    /// The keys that the stream has a row of.
    ///
    /// The first call builds a temporary index by id, which streams do not have.
    package func held(_ keys: [RowKey]) async throws -> Set<RowKey> {
        try await read { file in
            try file.connection.execute(
                """
                CREATE TEMP TABLE IF NOT EXISTS held(owner_no INTEGER, table_no INTEGER, row_id BLOB, \
                PRIMARY KEY(owner_no, table_no, row_id)) WITHOUT ROWID
                """)
            var isSorted = try file.connection.prepare("SELECT EXISTS(SELECT 1 FROM temp.held)")
            if try isSorted.step(), try isSorted.integer(at: 0) == 0 {
                try file.connection.execute(
                    """
                    INSERT OR IGNORE INTO temp.held SELECT owner_no, table_no, row_id FROM stream ORDER BY 1, 2, 3
                    """)
            }
            var statement = try file.connection.statement(
                """
                SELECT 1 FROM temp.held WHERE owner_no = (SELECT owner_no FROM owners WHERE sync_id = ?1) \
                AND table_no = ?2 AND row_id = ?3
                """)
            var held = Set<RowKey>()
            for key in keys {
                try statement.bind(id: key.owner, at: 1)
                try statement.bind(integer: Int64(key.table), at: 2)
                try statement.bind(id: key.id, at: 3)
                if try statement.step() { held.insert(key) }
                statement.reset()
            }
            return held
        }
    }

    /// The outcomes of the next devices, by ascending number; empty at the end.
    package func outcomes(after number: Int64) async throws -> [DeviceOutcomes] {
        try await read { file in
            var statement = try file.connection.statement(
                """
                SELECT dev_no, caller, knowledge_id, \
                (SELECT sync_id FROM owners WHERE owners.owner_no = devices.owner_no) \
                FROM devices WHERE dev_no > ?1 ORDER BY dev_no LIMIT ?2
                """)
            try statement.bind(integer: number, at: 1)
            // Each has up to 16 outcomes.
            try statement.bind(integer: Int64(Self.count / Outcome.keptPerDevice), at: 2)
            var devices: [DeviceOutcomes] = []
            while try statement.step() {
                let number = try statement.integer(at: 0)
                guard let caller = SyncID(utf8: try statement.bytes(at: 1)),
                    let device = KnowledgeID(utf8: try statement.bytes(at: 2)),
                    let owner = SyncID(utf8: try statement.bytes(at: 3))
                else { throw StreamFailure.damaged("the record of uploading device \(number) is damaged") }
                let key = DeviceKey(owner: owner, device: Device(caller: caller, knowledgeID: device))
                devices.append(
                    DeviceOutcomes(number: number, key: key, outcomes: try Self.outcomes(of: number, in: file)))
            }
            return devices
        }
    }

    /// Verifies the whole file: pages, indexes, every record against its checksum, and each head against the rows.
    ///
    /// - Throws: ``Failure``.
    package func check() async throws {
        try await read { file in
            try file.checkContent()
            var heads = try file.connection.statement(
                """
                SELECT 1 FROM knowledge WHERE head <> coalesce((SELECT max(time_stamp) FROM stream \
                WHERE stream.owner_no = knowledge.owner_no AND stream.device_no = knowledge.device_no), 0) \
                UNION ALL SELECT 1 FROM owners WHERE head <> coalesce((SELECT max(head) FROM knowledge \
                WHERE knowledge.owner_no = owners.owner_no), 0) LIMIT 1
                """)
            guard try !heads.step() else {
                throw StreamFailure.damaged("a head is not the newest timeStamp of its rows")
            }
        }
    }

    /// To be called once.
    package func close() async throws {
        let result: Result<Void, any Error>
        do {
            try await thread.run {
                try Self.translating { try file.withLock { file in try file.take()?.close() } }
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await thread.close()
        try result.get()
    }

    private static func outcomes(of device: Int64, in file: StreamFile) throws -> [Outcome] {
        var statement = try file.connection.statement(
            """
            SELECT dev_no, slot, piece, batch, is_last, upload_partition, upload_offset, upload_part, checksum, bytes \
            FROM outcomes WHERE dev_no = ?1 ORDER BY slot, piece
            """)
        try statement.bind(integer: device, at: 1)
        var slots: [[OutcomeRecord]] = []
        while try statement.step() {
            let record = try OutcomeRecord(statement)
            if slots.last?.first?.slot == record.slot {
                slots[slots.count - 1].append(record)
            } else {
                slots.append([record])
            }
        }
        var outcomes: [Outcome] = []
        do throws(WireError) {
            for records in slots {
                if let kept = try KeptOutcome(joining: records) { outcomes.append(kept.outcome) }
            }
            return outcomes
        } catch {
            throw StreamFailure.damaged("a stored outcome cannot be read: \(error)")
        }
    }

    private func read<Value: Sendable>(_ body: @Sendable (StreamFile) throws -> Value) async throws -> Value {
        try await thread.run {
            try Self.translating {
                try file.withLock { file in
                    guard let file else { throw StreamFailure.unavailable("the file was closed") }
                    return try body(file)
                }
            }
        }
    }

    private static func translating<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            throw StreamFailure(cause: error).map(Failure.init) ?? error
        }
    }
}

/// Renders rows as streams contain them, depending on the schema version under which each was last written.
package struct StreamRendering: Sendable {
    private let schemas: SchemaHistory
    private let renderers: [RowJSON]

    package init(_ schemas: SchemaHistory) {
        self.schemas = schemas
        renderers = schemas.entries.map { RowJSON($0.schema) }
    }

    /// The JSON of a row that was last written under a version; `nil` when the row cannot be of that version.
    ///
    /// A row that was not written since a column was added lacks it in the stream, but has the column's default in the
    /// tables.
    ///
    /// - Parameter row: with the columns of this or a later version.
    package func json(of row: OrderedRow, ordinal: Int) -> [UInt8]? {
        guard let schema = schemas[ordinal]?.schema, schema.tables.indices.contains(row.key.table) else { return nil }
        var older = row
        let columns = schema.tables[row.key.table].columns.count
        if row.values.count > columns {
            older.values = RowValues()
            row.values.forEachColumn { column, json in
                if column < columns { older.values.append(json) }
            }
            let newest = schemas.newest?.schema.tables[row.key.table]
            guard let newest, older.values.lifted(to: newest).bytes.starts(with: row.values.bytes) else { return nil }
        }
        var json: [UInt8] = []
        do throws(LogFault) {
            try renderers[ordinal - 1].append(older, to: &json)
        } catch {
            return nil
        }
        return json
    }
}
