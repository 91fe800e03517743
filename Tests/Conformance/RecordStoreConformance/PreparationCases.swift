import RecordStore
import SyncModel
import Testing

extension RecordStoreConformance {
    static let preparationCases: [ConformanceCase] =
        [
            ConformanceCase("preparing again changes nothing") { harness in
                var partition = PartitionHand(try await harness.open(Sample.second))
                let rows = [orderRow("a", "x")]
                try await partition.commit(rows)
                try await partition.store.prepare(Sample.second)
                try await partition.expect(rows)
                let again = try await harness.open(Sample.second)
                try await again.prepare(Sample.second)
                try await PartitionHand(again).expect(rows)
            },
            ConformanceCase("tables cannot be used before they are prepared") { harness in
                let partition = PartitionHand(try await harness.open())
                await expectError(.incompatibleTables) { _ = try await partition.rows([orderRow("a", "x").key]) }
                await expectError(.incompatibleTables) { try await partition.store.commit([partition.step()]) }
            },
            ConformanceCase("a history with another first version is refused") { harness in
                var partition = PartitionHand(try await harness.open(Sample.first))
                try await partition.commit([orderRow("a", "x")])
                let other = Sample.history(
                    Schema(tables: [Table(name: "order", columns: [Column(name: "x", type: .text)])]))
                await expectError(.incompatibleTables) { try await partition.store.prepare(other) }
                let again = try await harness.open()
                await expectError(.incompatibleTables) { try await again.prepare(other) }
                try await partition.expect([orderRow("a", "x")])
            },
            ConformanceCase("tables with a different epoch are refused and not changed") { harness in
                var partition = PartitionHand(try await harness.open(Sample.first))
                try await partition.commit([orderRow("a", "x")])
                let again = try await harness.open()
                for schemas in [Sample.first, Sample.second] {
                    await expectError(.incompatibleTables) {
                        try await again.prepare(schemas, epoch: "ffeeddccbbaa99887766554433221100")
                    }
                }
                await expectError(.incompatibleTables) { _ = try await again.rows([], in: 0, schemaOrdinal: 1) }
                try await again.prepare(Sample.second)
                try await PartitionHand(again).expect([orderRow("a", "x")])
            },
            ConformanceCase("a history with other types is refused, even if a store represents both types alike") {
                harness in
                func history(_ type: ColumnType, _ policy: Policy = .lastSyncWins) -> SchemaHistory {
                    let column = Column(name: "name", type: type)
                    return Sample.history(Schema(tables: [Table(name: "first", policy: policy, columns: [column])]))
                }
                let store = try await harness.open(history(.text))
                await expectError(.incompatibleTables) { try await store.prepare(history(.json)) }
                await expectError(.incompatibleTables) { try await store.prepare(history(.text, .checkBase)) }
                try await store.prepare(history(.text))
            },
            ConformanceCase("a store prepared for more versions serves a worker that knows fewer") { harness in
                _ = try await harness.open(Sample.second)
                var older = PartitionHand(try await harness.open(Sample.first))
                try await older.commit([orderRow("a", "x")])
                try await older.expect([orderRow("a", "x")])
            },
        ]
        + refusedVersions.map { name, tables in
            ConformanceCase("a version that does more than add is refused: \(name)") { harness in
                var partition = PartitionHand(try await harness.open(Sample.history(Schema(tables: base))))
                let made = row(0, "owner", "a", 1, ["\"x\"", "1"])
                try await partition.commit([made])
                let refused = Sample.history(Schema(tables: base), Schema(tables: tables))
                await expectError(.incompatibleTables) { try await partition.store.prepare(refused) }
                // None of it was done: the tables can still be extended to another version.
                let wider = Table(name: "first", columns: base[0].columns + [Column(name: "extra", type: .integer)])
                try await partition.store.prepare(
                    Sample.history(Schema(tables: base), Schema(tables: [wider, base[1]])))
                let lifted = OrderedRow(made, values: values(["\"x\"", "1", "null"]))
                try await partition.expect([lifted], ordinal: 2)
            }
        }

    private static let name = Column(name: "name", type: .text)
    private static let size = Column(name: "size", type: .integer, isNullable: false, defaultValue: Sample.json("0"))
    private static let base = [
        Table(name: "first", columns: [name, size]), Table(name: "second", columns: [name]),
    ]

    private static let refusedVersions: [(String, [Table])] = [
        ("a column of another type", first(Column(name: "name", type: .json), size)),
        ("a decimal of another scale", first(Column(name: "name", type: .decimal(precision: 5, scale: 2)), size)),
        ("a column removed", first(name)),
        ("columns that changed places", first(size, name)),
        ("a column renamed", first(Column(name: "title", type: .text), size)),
        (
            "another default",
            first(
                name,
                Column(
                    name: "size", type: .integer, isNullable: false,
                    defaultValue: Sample.json("1")))
        ),
        (
            "NULL where there was none",
            first(
                name,
                Column(
                    name: "size", type: .integer,
                    defaultValue: Sample.json("0")))
        ),
        ("no NULL where there was", first(Column(name: "name", type: .text, isNullable: false), size)),
        ("a new column that is required", first(name, size, Column(name: "must", type: .text, isNullable: false))),
        ("a table removed", [base[0]]),
        ("tables that changed places", [base[1], base[0]]),
        (
            "a default of another type",
            first(
                name, size,
                Column(
                    name: "n", type: .integer,
                    defaultValue: Sample.json("\"x\"")))
        ),
    ]

    private static func first(_ columns: Column...) -> [Table] {
        [Table(name: "first", columns: columns), base[1]]
    }
}
