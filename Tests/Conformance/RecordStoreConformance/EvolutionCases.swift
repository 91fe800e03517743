import RecordStore
import SyncModel
import Testing

extension RecordStoreConformance {
    static let evolutionCases: [ConformanceCase] = [
        ConformanceCase("rows of an older version are read with the defaults of later columns") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let old = orderRow("a", "old")
            try await partition.commit([old])
            try await partition.store.prepare(Sample.second)
            try await partition.expect([old])
            let lifted = OrderedRow(old, values: values(["\"old\"", "7", "null"] + Sample.added.map(\.reads)))
            try await partition.expect([lifted], ordinal: 2)
            #expect(old.values.lifted(to: Sample.version2.tables[Sample.order]) == lifted.values)
        },
        ConformanceCase("tables created for all versions at once equal those that grew") { harness in
            var partition = PartitionHand(try await harness.open(Sample.second))
            let old = orderRow("a", "old")
            try await partition.commit([old])
            let lifted = OrderedRow(old, values: old.values.lifted(to: Sample.version2.tables[Sample.order]))
            try await partition.expect([lifted], ordinal: 2)
        },
        ConformanceCase("a write without the later columns keeps their values") { harness in
            var partition = PartitionHand(try await harness.open(Sample.second))
            let added = Sample.added.indices.map { $0 == 0 ? "\"mine\"" : Sample.added[$0].reads }
            let new = OrderedRow(orderRow("a", "new"), values: values(["\"new\"", "7", "null"] + added))
            try await partition.commit([new], ordinal: 2)
            try await partition.expect([new], ordinal: 2)
            let short = orderRow("a", "short", timeStamp: 2)
            try await partition.commit([short], ordinal: 2)
            try await partition.expect([short])
            let merged = OrderedRow(short, values: values(["\"short\"", "7", "null"] + added))
            try await partition.expect([merged], ordinal: 2)
        },
        ConformanceCase("a table of a later version has no rows in an older one") { harness in
            var partition = PartitionHand(try await harness.open(Sample.second))
            let late = row(Sample.late, "owner", "a", 1, ["\"x\""])
            try await partition.commit([late], ordinal: 2)
            #expect(try await partition.rows([late.key], ordinal: 1).isEmpty)
            try await partition.expect([late], ordinal: 2)
        },
        ConformanceCase("a store that is reopened after it grew has old and new rows") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let old = orderRow("a", "old")
            try await partition.commit([old])
            await partition.store.close()
            var again = PartitionHand(try await harness.open(Sample.second))
            again.position = partition.position
            let late = row(Sample.late, "owner", "a", 2, ["\"x\""])
            try await again.commit([late], ordinal: 2)
            let lifted = OrderedRow(old, values: old.values.lifted(to: Sample.version2.tables[Sample.order]))
            try await again.expect([lifted, late], ordinal: 2)
        },
        ConformanceCase("a version that the tables were not prepared for cannot be requested") { harness in
            let partition = PartitionHand(try await harness.open(Sample.first))
            await expectError(.incompatibleTables) {
                _ = try await partition.rows([orderRow("a", "x").key], ordinal: 2)
            }
        },
    ]
}
