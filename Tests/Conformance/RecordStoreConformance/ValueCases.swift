import RecordStore
import Seeded
import SyncModel
import Testing

/// Canonical JSON at the edges of each type, in the order of the columns of `every_type`.
enum EdgeValues {
    static let byColumn: [[String]] = [
        // text
        [
            #""""#, #""a""#, #""\"\\\b\f\n\r\t""#, #""\u0001\u000b\u001f""#, "\"/\u{7F}\u{80}é\u{1F600}\u{FFFF}\"",
            "\"e\u{301}\"", "\"\u{2028}\u{FEFF}\"", #""null""#, #"" a ""#, #""'; DROP TABLE every_type; --""#,
            "\"" + String(repeating: "long ", count: 20_000) + "\"",
        ],
        // integer
        [
            "0", "1", "-1", "127", "128", "32768", "2147483648", "-2147483649", "9007199254740991", "-9007199254740991",
            #""9007199254740992""#, #""-9007199254740992""#, #""9223372036854775807""#, #""-9223372036854775808""#,
        ],
        // real
        [
            "0", "1", "-1.5", "0.1", "0.30000000000000004", "4.35", "123456789.12345678", "9007199254740992",
            "100000000000000000000", "1e+21", "1.5e+300", "1.7976931348623157e+308", "0.000001", "1e-7", "5e-324",
            "2.2250738585072014e-308", "-2.225073858507201e-308",
        ],
        // boolean
        ["true", "false"],
        // decimal(38,10)
        [
            #""0.0000000000""#, #""1.5000000000""#, #""-0.0000000001""#, #""10.0000000000""#,
            #""9999999999999999999999999999.9999999999""#, #""-9999999999999999999999999999.9999999999""#,
        ],
        // uuid
        [#""00000000-0000-0000-0000-000000000000""#, #""ffffffff-ffff-ffff-ffff-ffffffffffff""#],
        // timestamp
        [
            #""0001-01-01T00:00:00.000000Z""#, #""1969-12-31T23:59:59.999999Z""#, #""2026-02-28T12:30:00.000001Z""#,
            #""9999-12-31T23:59:59.999999Z""#,
        ],
        // date
        [#""0001-01-01""#, #""1969-12-31""#, #""2024-02-29""#, #""9999-12-31""#],
        // bytes
        [
            #""""#, #""AA==""#, #""AAA=""#, #""AAAA""#, #""/+8=""#,
            "\"" + String(repeating: "AP8n", count: 30_000) + "\"",
        ],
        // json
        [
            "{}", "[]", #""""#, "0", "-1.50", "1E400", "true", "false", #"{"b":1,"a":{"b":[null,"\n",1.0]}}"#,
            #""null""#,
            "12345678901234567890123456789", String(repeating: "[", count: 60) + String(repeating: "]", count: 60),
        ],
    ]
}

extension RecordStoreConformance {
    static let valueCases: [ConformanceCase] = [
        ConformanceCase("values of every type are read back as the same bytes") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var rows: [OrderedRow] = []
            for (column, edges) in EdgeValues.byColumn.enumerated() {
                for (index, json) in (edges + ["null"]).enumerated() {
                    let timeStamp = Int64(rows.count + 1)
                    rows.append(everyTypeRow("\(column)-\(index)", column: column, json, timeStamp: timeStamp))
                }
            }
            try await partition.commit(rows)
            try await partition.expect(rows)
        },
        ConformanceCase("rows of random edge values are read back, also after overwriting others") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var random = SeededRandom(seed: 0xED6E)
            for round in 0..<5 {
                let rows = (0..<100).map { random.everyTypeRow("\($0)", timeStamp: Int64(round * 100 + $0 + 1)) }
                try await partition.commit(rows)
                try await partition.expect(rows)
            }
        },
        ConformanceCase("all columns of a row are read back, including extreme values") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var least = orderRow("least", "x")
            least.version = 0
            least.createdAt = .min
            least.updatedAt = .min
            least.writerBatch = nil
            least.isExact = false
            var greatest = orderRow("greatest", "x")
            greatest.timeStamp = .maximum
            greatest.othersTimeStamp = .maximum
            greatest.version = .max
            greatest.createdAt = .max
            greatest.updatedAt = .max
            greatest.writerBatch = .max
            greatest.isDeleted = true
            greatest.knowledgeID = KnowledgeID(unchecked: String(repeating: "k", count: 255))
            greatest.writer = device("other writer", of: "other caller")
            try await partition.commit([least, greatest])
            try await partition.expect([least, greatest])
        },
        ConformanceCase("consecutive rows have their own device and writer") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let names = ["a long name 1", "a long name 2", "a long name", "é", "e\u{301}"]
            var rows: [OrderedRow] = []
            for (creator, caller, writer) in names.flatMap({ a in names.flatMap { b in names.map { (a, b, $0) } } }) {
                var row = orderRow("\(rows.count)", "x", timeStamp: Int64(rows.count + 1))
                row.knowledgeID = KnowledgeID(unchecked: creator)
                row.writer = device(writer, of: caller)
                rows.append(row)
            }
            try await partition.commit(rows)
            try await partition.expect(rows)
        },
        ConformanceCase("a row is updated in place, and a tombstone stays readable") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var row = orderRow("a", "first")
            let other = orderRow("b", "other")
            try await partition.commit([row, other])
            row.timeStamp = TimeStamp(2)
            row.version = 2
            row.writer = device("second")
            row.writerBatch = nil
            row.values = values(["\"second\"", "8", "\"x\""])
            try await partition.commit([row])
            try await partition.expect([row, other])
            row.isDeleted = true
            row.timeStamp = TimeStamp(3)
            try await partition.commit([row])
            try await partition.expect([row, other])
        },
        ConformanceCase("a store that is reopened has everything") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first), 3)
            let rows = [orderRow("a", "x"), everyTypeRow("a", column: 2, "0.1")]
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            try await partition.commit(rows, [StoredOutcome(key: key, outcome: outcome(4))])
            await partition.store.close()
            let again = PartitionHand(try await harness.open(Sample.first), 3)
            #expect(try await again.store.position(of: 3) == partition.position)
            try await again.expect(rows)
            #expect(
                try await again.progress(key, batch: 4) == DeviceProgress(highestBatch: 4, outcome: outcome(4)))
        },
    ]
}
