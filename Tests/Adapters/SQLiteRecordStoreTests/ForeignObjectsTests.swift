import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import Testing

/// Changes of the file by others are found when the tables are prepared.
struct ForeignObjectsTests {
    static let rejected: [(sql: String, text: String)] = [
        (#"CREATE UNIQUE INDEX extra ON person (name)"#, "unique index extra"),
        (#"CREATE INDEX extra ON person (abs(age))"#, "index extra with an expression"),
        (#"CREATE INDEX extra ON person (name) WHERE age > 5"#, "index extra with an expression"),
        (#"CREATE TRIGGER extra BEFORE INSERT ON person BEGIN SELECT raise(ABORT, 'no'); END"#, "trigger extra"),
        (#"CREATE TRIGGER extra AFTER UPDATE ON weir_partitions BEGIN SELECT 1; END"#, "trigger extra"),
        (#"ALTER TABLE person ADD COLUMN "more" TEXT"#, "not as Weir created it"),
        (#"ALTER TABLE person ADD COLUMN "more" INTEGER CHECK ("more" > 5)"#, "not as Weir created it"),
        (#"ALTER TABLE person ADD COLUMN "more" TEXT REFERENCES weir_owners (sync_id)"#, "not as Weir created it"),
        (#"ALTER TABLE person RENAME COLUMN name TO title"#, "not as Weir created it"),
        (#"ALTER TABLE person DROP COLUMN age"#, "not as Weir created it"),
        (#"ALTER TABLE person RENAME TO people"#, "table person is missing"),
        (#"DROP TABLE person"#, "table person is missing"),
        (#"DROP TABLE person; CREATE TABLE person (sync_id, id, name, age, data)"#, "not as Weir created it"),
        (#"DROP TABLE weir_owners"#, "table weir_owners is missing"),
        (#"CREATE TABLE pet (name TEXT)"#, "table pet that Weir did not create"),
        (#"CREATE VIEW PET AS SELECT 1"#, "table pet that Weir did not create"),
    ]

    private let schema = Schema(tables: [
        Table(
            name: "person",
            columns: [
                Column(name: "name", type: .text), Column(name: "age", type: .integer),
                Column(name: "data", type: .json),
            ])
    ])

    private var first: SchemaHistory { history([schema]) }

    private func history(_ schemas: [Schema]) -> SchemaHistory {
        var history = SchemaHistory()
        for (index, schema) in schemas.enumerated() {
            history.append(.init(version: SchemaVersion(ordinal: index + 1, of: schema), schema: schema))
        }
        return history
    }

    /// Prepares tables, changes them with SQL, and prepares them for one more table.
    private func prepareAgain(after sql: String, in folder: String) async throws {
        let path = folder + "/tables.db"
        try await withStore(.init(path: path)) { store in try await store.prepare(first) }
        try await execute(sql, path: path)
        let wider = Schema(tables: schema.tables + [Table(name: "pet", columns: [])])
        try await withStore(.init(path: path)) { store in try await store.prepare(history([schema, wider])) }
    }

    @Test(arguments: rejected)
    func rejectsWhatCouldRejectARow(sql: String, text: String) async throws {
        try await withTemporaryFolder { folder in
            let error = await #expect(throws: RecordStoreError.self) { try await prepareAgain(after: sql, in: folder) }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
        }
    }

    @Test(arguments: [
        "CREATE INDEX extra ON person (sync_id, age)", "CREATE TABLE notes (text TEXT UNIQUE)",
        "CREATE VIEW names AS SELECT name FROM person", "ANALYZE",
    ])
    func acceptsWhatCannotRejectARow(sql: String) async throws {
        try await withTemporaryFolder { folder in try await prepareAgain(after: sql, in: folder) }
    }
}
