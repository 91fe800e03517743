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
        ConformanceCase("a read of bounded size returns the rows of the first keys and names the keys left") {
            harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let rows = (0..<20).map { number in
                orderRow("id-\(number)", String(repeating: "x", count: 10_000), timeStamp: Int64(number + 1))
            }
            try await partition.commit(rows)
            var keys = rows.map(\.key)
            keys.insert(orderRow("unknown", "").key, at: 3)
            // The fifth row reaches 45,000 bytes.
            try await partition.expectRead(of: keys, maximumBytes: 45_000, rows: 5, unread: Array(keys[6...]))
            try await partition.expectRead(of: keys, maximumBytes: 1, rows: 1, unread: Array(keys[1...]))
            try await partition.expectRead(of: keys, maximumBytes: 1 << 20, rows: 20, unread: [])
            // Keys left may be of rows that do not exist.
            let last = [keys[0], keys[3]]
            try await partition.expectRead(of: last, maximumBytes: 1, rows: 1, unread: [keys[3]])
            try await partition.expectRead(of: last.reversed(), maximumBytes: 1, rows: 1, unread: [])
            // In slices everything is read once.
            var found: [OrderedRow] = []
            var rest = keys
            while !rest.isEmpty {
                let read = try await partition.store.rows(rest, in: 0, schemaOrdinal: 1, maximumBytes: 25_000)
                found += read.rows
                #expect(read.unread.count < rest.count)
                rest = read.unread
            }
            #expect(found == rows)
        },
        ConformanceCase("a read of bounded size counts values of every type as they are, compressed or not") {
            harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            // Repeated text, which a database compresses to a few bytes.
            let text = String(repeating: "a", count: 100_000)
            let rows = (0..<6).map { number in
                var columns = Array(repeating: "null", count: 10)
                // The first column is a text, the last one JSON.
                if number < 3 { columns[9] = "[\"\(text)\"]" } else { columns[0] = "\"\(text)\"" }
                return row(Sample.everyType, "owner", "\(number)", Int64(number + 1), columns)
            }
            try await partition.commit(rows)
            let keys = rows.map(\.key)
            for start in [0, 3] {
                let part = Array(keys[start..<(start + 3)])
                try await partition.expectRead(of: part, maximumBytes: 150_000, rows: 2, unread: [part[2]])
            }
        },
        ConformanceCase("a read of bounded size returns a row at least, and keeps the order of keys of several tables")
        {
            harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var rows: [OrderedRow] = []
            for number in 0..<10 {
                let null = Array(repeating: "null", count: 10)
                rows.append(orderRow("\(number)", "some text", of: "owner", timeStamp: Int64(2 * number + 1)))
                rows.append(row(Sample.everyType, "owner", "\(number)", Int64(2 * number + 2), null))
            }
            try await partition.commit(rows)
            var found: Set<OrderedRow> = []
            var rest = rows.map(\.key)
            while !rest.isEmpty {
                let read = try await partition.store.rows(rest, in: 0, schemaOrdinal: 1, maximumBytes: 1)
                #expect((1...2).contains(read.rows.count))
                let isInOrder = read.unread == rest.filter { key in !read.rows.contains { $0.key == key } }
                #expect(isInOrder)
                found.formUnion(read.rows)
                rest = read.unread
            }
            #expect(found == Set(rows))
        },
    ]
}

extension PartitionHand {
    /// Expects the rows of the first keys, and the same from a lookup.
    fileprivate func expectRead(
        of keys: [RowKey], maximumBytes: Int, rows: Int, unread: [RowKey],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let read = try await store.rows(keys, in: partition, schemaOrdinal: 1, maximumBytes: maximumBytes)
        #expect(read.rows.count == rows, sourceLocation: sourceLocation)
        #expect(read.unread == unread, sourceLocation: sourceLocation)
        let found = try await store.lookup(
            rows: keys, progress: [], applied: [], usage: [], in: partition, schemaOrdinal: 1,
            maximumBytes: maximumBytes)
        let isSame = found.rows == read.rows && found.unread == read.unread
        #expect(isSame, "a lookup reads the same", sourceLocation: sourceLocation)
    }
}
