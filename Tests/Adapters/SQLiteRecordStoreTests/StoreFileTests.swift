import Configuration
import Foundation
import Metrics
import RecordStore
import SQLite
import SQLiteRecordStore
import SyncModel
import SyncWire
import TestResources
import Testing

struct StoreFileTests {
    private static let schema = Schema(tables: [
        Table(
            name: "person",
            columns: [
                Column(name: "name", type: .text, isNullable: false), Column(name: "age", type: .integer),
                Column(name: "height", type: .real), Column(name: "active", type: .boolean),
                Column(name: "paid", type: .decimal(precision: 10, scale: 2)), Column(name: "photo", type: .bytes),
            ])
    ])

    private static var schemas: SchemaHistory {
        var history = SchemaHistory()
        history.append(.init(version: SchemaVersion(ordinal: 1, of: schema), schema: schema))
        return history
    }

    private static func row(_ id: String, _ json: [String], timeStamp: Int64 = 1) -> OrderedRow {
        var values = RowValues()
        for value in json { values.append(Array(value.utf8)) }
        let writer = Device(caller: SyncID(unchecked: "me"), knowledgeID: KnowledgeID(unchecked: "phone"))
        return OrderedRow(
            key: RowKey(table: 0, owner: SyncID(unchecked: "me"), id: RowID(unchecked: id)),
            knowledgeID: writer.knowledgeID, timeStamp: TimeStamp(timeStamp), version: 1, isDeleted: false,
            createdAt: 1_700_000_000_123_456, updatedAt: 1_700_000_000_123_456, writer: writer, writerBatch: 1,
            isExact: true, othersTimeStamp: .zero, values: values)
    }

    private static func step(_ number: Int64, _ rows: [OrderedRow], partition: Int = 0) -> StoreStep {
        func position(_ offset: Int64) -> StoredPosition {
            StoredPosition(state: PartitionState(nextOffset: offset, schemaOrdinal: 1), orderedOffset: offset)
        }
        return StoreStep(
            partition: partition, expected: number == 1 ? nil : position(number - 1), position: position(number),
            rows: rows, outcomes: [])
    }

    @Test func valuesHaveTypesThatCanBeQueried() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/tables.db"
            let store = try await SQLiteRecordStore.open(.init(path: path))
            try await store.prepare(Self.schemas)
            let row = Self.row(
                "a", [#""a\n\"b\"""#, #""9223372036854775807""#, "1.5", "true", #""12.50""#, #""AP8=""#])
            try await store.commit([Self.step(1, [row])])
            // While the store is open.
            let reader = try await DatabaseReaderPool.open(path: path, count: 1)
            let found = try await reader.read { connection in
                var statement = try connection.prepare(
                    """
                    SELECT name || '|' || age || '|' || height || '|' || active || '|' || paid || '|' || hex(photo)
                        || '|' || datetime(created_at / 1000000, 'unixepoch') || '|' || deleted
                    FROM person WHERE sync_id = 'me' AND id = 'a'
                    """)
                return try statement.step() ? try statement.text(at: 0) : ""
            }
            #expect(found == "a\n\"b\"|9223372036854775807|1.5|1|12.50|00FF|2023-11-14 22:13:20|0")
            try await reader.close()
            await store.close()
        }
    }

    @Test(arguments: [
        ("CREATE TABLE mine (x)", "another application"), ("PRAGMA application_id = 77", "another application"),
        ("PRAGMA user_version = 3", "another application"),
        ("PRAGMA application_id = 1466258003; PRAGMA user_version = 5", "format 5 of a newer Weir"),
    ])
    func rejectsAForeignFileWithoutChangingIt(sql: String, text: String) async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/tables.db"
            try await execute(sql, path: path, journal: .delete)
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            let error = await #expect(throws: RecordStoreError.self) {
                try await withStore(.init(path: path)) { _ in }
            }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        }
    }

    /// They do not have what owners have.
    @Test(arguments: 1...3) func rejectsTablesOfAnEarlierFormat(format: Int) async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/tables.db"
            try await withStore(.init(path: path)) { try await $0.prepare(Self.schemas) }
            try await execute("PRAGMA user_version = \(format)", path: path)
            let error = await #expect(throws: RecordStoreError.self) {
                try await withStore(.init(path: path)) { _ in }
            }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains("format \(format) of an earlier Weir") == true, "\(error?.message ?? "")")
        }
    }

    @Test func rejectsAFileThatIsNoDatabase() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/tables.db"
            try Data(repeating: 7, count: 10_000).write(to: URL(fileURLWithPath: path))
            let error = await #expect(throws: RecordStoreError.self) {
                try await withStore(.init(path: path)) { _ in }
            }
            #expect(error?.code == .corrupt)
        }
    }

    @Test func namesAMissingFolder() async throws {
        try await withTemporaryFolder { folder in
            let error = await #expect(throws: RecordStoreError.self) {
                try await withStore(.init(path: folder + "/none/tables.db")) { _ in }
            }
            #expect(error?.code == .unavailable)
            #expect(error?.message.contains("does not exist") == true)
        }
    }

    @Test func aFullFileIsReportedAndCanBeRetried() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/tables.db"
            let store = try await SQLiteRecordStore.open(
                SQLiteRecordStoreConfiguration(path: path).with(\.maximumBytes, 200_000))
            try await store.prepare(Self.schemas)
            let small = Self.row("small", [#""x""#, "null", "null", "null", "null", "null"])
            try await store.commit([Self.step(1, [small])])
            let text = "\"" + String(repeating: "x", count: 1000) + "\""
            let rows = (0..<1000).map { Self.row("\($0)", [text, "null", "null", "null", "null", "null"]) }
            let error = await #expect(throws: RecordStoreError.self) { try await store.commit([Self.step(2, rows)]) }
            #expect(error?.code == .storageFull)
            #expect(error?.isRetriable == true)
            // Nothing was written, and the store stays usable.
            #expect(try await store.position(of: 0)?.orderedOffset == 1)
            #expect(try await store.rows(rows.map(\.key), in: 0, schemaOrdinal: 1).isEmpty)
            try await store.commit([Self.step(2, Array(rows.prefix(1)))])
            await store.close()
            let roomy = try await SQLiteRecordStore.open(.init(path: path))
            try await roomy.prepare(Self.schemas)
            try await roomy.commit([Self.step(3, rows)])
            #expect(try await roomy.rows(rows.map(\.key), in: 0, schemaOrdinal: 1).count == rows.count)
            await roomy.close()
        }
    }

    @Test func countsTransactionsAndFailures() async throws {
        try await withTemporaryFolder { folder in
            let registry = MetricRegistry()
            let store = try await SQLiteRecordStore.open(
                .init(path: folder + "/tables.db"), metrics: SQLiteStoreMetrics(registry))
            try await store.prepare(Self.schemas)
            let rows = (0..<3).map { Self.row("\($0)", [#""x""#, "null", "null", "null", "null", "null"]) }
            try await store.commit([Self.step(1, rows), Self.step(2, Array(rows.prefix(1)))])
            _ = try await store.rows(rows.map(\.key), in: 0, schemaOrdinal: 1)
            await #expect(throws: RecordStoreError.self) { try await store.commit([Self.step(1, rows)]) }
            await store.beat()
            await store.close()
            await store.beat()
            #expect(registry.histogram(.storeCommitDuration).snapshot.cumulative.last == 1)
            #expect(registry.histogram(.storeCommitRows).snapshot.sum == 4)
            #expect(registry.histogram(.storeCommitSteps).snapshot.sum == 2)
            #expect(registry.histogram(.storeReadDuration).snapshot.cumulative.last == 1)
            #expect(registry.counter(.storeCommitFailures).value == 1)
        }
    }

    @Test func aFileThatAnotherProcessLocksCanBeRetried() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/tables.db"
            let store = try await SQLiteRecordStore.open(
                SQLiteRecordStoreConfiguration(path: path).with(\.busyTimeoutMilliseconds, 0))
            try await store.prepare(Self.schemas)
            let other = try await DatabaseWriter.open(path: path)
            let row = Self.row("a", [#""x""#, "null", "null", "null", "null", "null"])
            let gate = ThreadGate()
            async let holding: Void = other.write { connection in
                try connection.execute("CREATE TABLE notes (x)")
                gate.pass()
            }
            await gate.isReached()
            let error = await #expect(throws: RecordStoreError.self) { try await store.commit([Self.step(1, [row])]) }
            gate.open()
            try await holding
            #expect(error?.code == .unavailable)
            #expect(error?.isRetriable == true)
            try await store.commit([Self.step(1, [row])])
            try await other.close()
            await store.close()
        }
    }

    @Test func anOwnerCannotChangeItsPartition() async throws {
        try await withTemporaryFolder { folder in
            let store = try await SQLiteRecordStore.open(.init(path: folder + "/tables.db"))
            try await store.prepare(Self.schemas)
            let row = Self.row("a", [#""x""#, "null", "null", "null", "null", "null"])
            try await store.commit([Self.step(1, [row])])
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Self.step(1, [row], partition: 1)])
            }
            #expect(error?.code == .incompatibleTables)
            #expect(try await store.position(of: 1) == nil)
            await store.close()
        }
    }

    @Test(arguments: [
        ["x", "null", "null", "null", "null", "null"], [#""x""#, "1.5", "null", "null", "null", "null"],
        [#""x""#, "null", "null", "null", "null", #""A""#], ["null", "null", "null", "null", "null", "null"],
        [#""x""#, "null", "null", "null", "null", "null", "null"],
    ])
    func namesTheRejectedRow(json: [String]) async throws {
        try await withTemporaryFolder { folder in
            let store = try await SQLiteRecordStore.open(.init(path: folder + "/tables.db"))
            try await store.prepare(Self.schemas)
            let row = Self.row("a", json)
            let error = await #expect(throws: RecordStoreError.self) { try await store.commit([Self.step(1, [row])]) }
            #expect(error?.code == .refusedRow(row.key))
            #expect(error?.isRetriable == false)
            #expect(try await store.position(of: 0) == nil)
            await store.close()
        }
    }
}
