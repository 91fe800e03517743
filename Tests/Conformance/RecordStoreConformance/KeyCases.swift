import RecordStore
import SyncModel
import Testing

extension RecordStoreConformance {
    static let keyCases: [ConformanceCase] = [
        ConformanceCase("rows that do not exist are absent from the answer") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let row = orderRow("a", "x")
            let unknown = orderRow("b", "x").key
            #expect(try await partition.rows([row.key, unknown]).isEmpty)
            try await partition.commit([row])
            #expect(
                try await partition.rows([unknown, row.key, RowKey(table: 0, owner: row.key.owner, id: row.key.id)])
                    == [row.key: row])
            #expect(try await partition.rows([]).isEmpty)
        },
        ConformanceCase("ids compare byte by byte") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let ids = [
                "é", "e\u{301}", "a", "A", "a ", " a", "\u{1F600}", "it's \"one\"", "line\nbreak\t", "%", "_", "\\",
                String(repeating: "é", count: 127) + "x", String(repeating: "é", count: 127) + "y", "null", "0", "00",
            ]
            let rows = ids.enumerated().map { index, id in orderRow(id, "text \(index)", timeStamp: Int64(index + 1)) }
            try await partition.commit(rows)
            try await partition.expect(rows)
        },
        ConformanceCase("rows with the same id of other owners and tables are distinct") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var rows: [OrderedRow] = []
            for name in ["abc", "ABC", "é", "e\u{301}", "a longer owner 1", "a longer owner 2"] {
                rows.append(orderRow("1", "of \(rows.count)", of: name, timeStamp: Int64(rows.count + 1)))
                rows.append(
                    row(Sample.everyType, name, "1", Int64(rows.count + 1), Array(repeating: "null", count: 10)))
            }
            try await partition.commit(rows)
            try await partition.expect(rows)
            var changed = rows[0]
            changed.values = values(["\"changed\"", "1", "null"])
            changed.timeStamp = TimeStamp(100)
            try await partition.commit([changed])
            try await partition.expect([changed] + rows.dropFirst())
        },
        ConformanceCase("many thousands of rows are written and looked up at once") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let rows = (0..<20_000).map { orderRow("id-\($0)", "\($0)", timeStamp: Int64($0 + 1)) }
            try await partition.commit(rows)
            let unknown = (0..<20_000).map { orderRow("other-\($0)", "").key }
            let found = try await partition.rows(rows.map(\.key) + unknown)
            #expect(found.count == rows.count)
            #expect(rows.allSatisfy { found[$0.key] == $0 })
        },
    ]
}
