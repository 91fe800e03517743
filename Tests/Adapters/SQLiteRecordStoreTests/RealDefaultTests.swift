import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import Testing

struct RealDefaultTests {
    private let row = OrderedRow(
        key: RowKey(table: 0, owner: SyncID(unchecked: "me"), id: RowID(unchecked: "a")),
        knowledgeID: KnowledgeID(unchecked: "k"), timeStamp: TimeStamp(1), version: 1, isDeleted: false, createdAt: 0,
        updatedAt: 0, writer: Device(caller: SyncID(unchecked: "me"), knowledgeID: KnowledgeID(unchecked: "k")),
        writerBatch: nil, isExact: true, othersTimeStamp: .zero, values: RowValues())

    private func history(_ schemas: [Schema]) -> SchemaHistory {
        var history = SchemaHistory()
        for (index, schema) in schemas.enumerated() {
            history.append(.init(version: SchemaVersion(ordinal: index + 1, of: schema), schema: schema))
        }
        return history
    }

    /// SQLite 3.40 parses the last three with a wrong last bit; a version that parses them exactly may accept them.
    @Test(arguments: [
        "0.1", "1", "1e+23", "5e-324", "1.7976931348623157e+308", "53.389208", "405.488664", "142.2574803964729",
    ])
    func aDefaultIsParsedExactlyOrRejected(json: String) async throws {
        try await withTemporaryFolder { folder in
            try await withStore(.init(path: folder + "/tables.db")) { store in
                let first = Schema(tables: [Table(name: "person", columns: [])])
                try await store.prepare(history([first]))
                let position = StoredPosition(state: PartitionState(nextOffset: 1, schemaOrdinal: 1))
                try await store.commit([
                    StoreStep(partition: 0, expected: nil, position: position, rows: [row], outcomes: [])
                ])
                let column = Column(name: "real", type: .real, isNullable: false, defaultValue: Array(json.utf8))
                let second = Schema(tables: [Table(name: "person", columns: [column])])
                do {
                    try await store.prepare(history([first, second]))
                } catch let error as RecordStoreError {
                    #expect(error.code == .incompatibleTables)
                    #expect(error.message.contains("exactly"))
                    return
                }
                let found = try await store.rows([row.key], in: 0, schemaOrdinal: 2)
                #expect(found.map(\.values) == [row.values.lifted(to: second.tables[0])])
            }
        }
    }
}
