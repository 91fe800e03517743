import PostgresRecordStore
import RecordStore
import Seeded
import SyncModel
import SyncWire

/// The tables and rows of these tests.
enum Samples {
    static let person = Table(
        name: "person",
        columns: [
            Column(name: "name", type: .text, isNullable: false, maximumLength: 200),
            Column(name: "age", type: .integer), Column(name: "note", type: .text),
            Column(name: "paid", type: .decimal(precision: 6, scale: 2)), Column(name: "data", type: .json),
            Column(name: "friend", type: .text, references: "person"),
        ])

    static let first = history(Schema(tables: [person]))

    /// Adds a table and columns.
    static let second: SchemaHistory = {
        let columns = [
            Column(name: "size", type: .integer, isNullable: false, defaultValue: Array("5".utf8)),
            Column(name: "born", type: .date),
        ]
        return history(
            Schema(tables: [person]),
            Schema(tables: [
                Table(name: "person", columns: person.columns + columns),
                Table(name: "pet", columns: [Column(name: "name", type: .text)]),
            ]))
    }()

    static func history(_ versions: Schema...) -> SchemaHistory {
        var history = SchemaHistory()
        for (index, schema) in versions.enumerated() {
            history.append(.init(version: SchemaVersion(ordinal: index + 1, of: schema), schema: schema))
        }
        return history
    }

    static func row(
        _ id: String, _ json: [String]? = nil, of owner: String = "me", version: Int64 = 1, table: Int = 0
    ) -> OrderedRow {
        var values = RowValues()
        for value in json ?? [#""name""#, "1", "null", "null", "null", "null"] { values.append(Array(value.utf8)) }
        let writer = Device(caller: SyncID(unchecked: owner), knowledgeID: KnowledgeID(unchecked: "phone"))
        return OrderedRow(
            key: RowKey(table: table, owner: SyncID(unchecked: owner), id: RowID(unchecked: id)),
            knowledgeID: writer.knowledgeID, timeStamp: TimeStamp(version), version: version, isDeleted: false,
            createdAt: 1_700_000_000_123_456, updatedAt: 1_700_000_000_123_456, writer: writer, writerBatch: version,
            isExact: true, othersTimeStamp: .zero, values: values)
    }

    static func position(_ number: Int64) -> StoredPosition {
        StoredPosition(
            state: PartitionState(nextOffset: number, timeStamp: TimeStamp(number), schemaOrdinal: 1),
            orderedOffset: number)
    }

    /// The step of a partition to position `number`; the first is 1.
    static func step(
        _ number: Int64, _ rows: [OrderedRow] = [], _ outcomes: [StoredOutcome] = [], partition: Int = 0
    ) -> StoreStep {
        StoreStep(
            partition: partition, expected: number == 1 ? nil : position(number - 1), position: position(number),
            rows: rows, outcomes: outcomes)
    }

    static let device = DeviceKey(
        owner: SyncID(unchecked: "me"),
        device: Device(caller: SyncID(unchecked: "me"), knowledgeID: KnowledgeID(unchecked: "phone")))

    static func outcome(_ batch: Int64) -> StoredOutcome {
        let hash = [UInt8](repeating: UInt8(truncatingIfNeeded: batch), count: 32)
        return StoredOutcome(
            key: device, outcome: Outcome(batch: batch, contentHash: hash, timeStamp: .zero, results: []))
    }
}

extension PostgresRecordStore {
    static let epoch = "00112233445566778899aabbccddeeff"

    func prepare(_ schemas: SchemaHistory) async throws(RecordStoreError) {
        try await prepare(schemas, epoch: Self.epoch)
    }

    func migrationPlans(_ schemas: SchemaHistory) async throws(RecordStoreError) -> [MigrationPlan] {
        try await migrationPlans(schemas, epoch: Self.epoch)
    }

    @discardableResult
    func migrate(_ schemas: SchemaHistory) async throws(RecordStoreError) -> [MigrationPlan] {
        try await migrate(schemas, epoch: Self.epoch)
    }
}
