import Foundation
import Fuzzing
import JSONText
import PostgresRecordStore
import PostgresServer
import RecordStore
import SQLiteRecordStore
import Seeded
import SyncModel
import Testing

/// Values of every type are read as the bytes that were written, in both stores (I4).
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct RoundTripTests {
    private static let decimals = [
        (1, 0), (1, 1), (4, 0), (5, 2), (9, 9), (10, 4), (17, 5), (38, 0), (38, 10), (38, 38),
    ]

    private static let schemas: SchemaHistory = {
        var types: [SyncModel.ColumnType] = [.text, .integer, .real, .boolean, .uuid, .timestamp, .date, .bytes, .json]
        types += decimals.map { .decimal(precision: $0.0, scale: $0.1) }
        let columns = types.enumerated().map { Column(name: "c\($0.offset)", type: $0.element) }
        return Samples.history(Schema(tables: [Table(name: "values", columns: columns)]))
    }()

    @Test(arguments: TestLength.seeds(3, long: 200))
    func randomValuesRoundTripInBothStores(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let columns = Self.schemas.entries[0].schema.tables[0].columns
        let rows = (0..<300).map { number in
            let values = columns.map { random.next() % 8 == 0 ? "null" : random.value(of: $0.type) }
            return Samples.row("\(number)", values, version: Int64(number + 1))
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("weir-trip-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let embedded = try await SQLiteRecordStore.open(.init(path: folder.path + "/tables.db"))
        let expected = try await roundTrip(rows, embedded)
        await embedded.close()
        try FileManager.default.removeItem(at: folder)
        let found = try await PostgresStoreHarness.make().withStore { try await roundTrip(rows, $0) }
        for row in rows {
            #expect(found[row.key]?.values == row.values, "row \(row.key.id)")
            #expect(found[row.key] == expected[row.key], "row \(row.key.id)")
        }
    }

    private func roundTrip(_ rows: [OrderedRow], _ store: any RecordStore) async throws -> [RowKey: OrderedRow] {
        try await store.prepare(Self.schemas, epoch: PostgresRecordStore.epoch)
        try await store.commit([Samples.step(1, rows)])
        let found = try await store.rows(rows.map(\.key), in: 0, schemaOrdinal: 1)
        return Dictionary(found.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// A value that is not canonical would be read as different bytes.
    @Test(arguments: [
        (3, #""1.5""#), (3, #""1.500""#), (3, #""01.50""#), (3, #""-0.00""#), (3, #""1.5a""#), (3, #""""#),
        (3, #"".50""#), (3, #""12345.00""#), (3, #""--1.00""#), (4, "{"), (1, "1.5"), (0, "null"), (0, "x"),
    ])
    func aValueThatIsNotCanonicalIsRejected(column: Int, json: String) async throws {
        var values = [#""name""#, "1", "null", "null", "null", "null"]
        values[column] = json
        let good = Samples.row("good")
        let bad = Samples.row("bad", values)
        try await PostgresStoreHarness.make().withStore { store in
            try await store.prepare(Samples.first)
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(1, [good, bad])])
            }
            #expect(error?.code == .refusedRow(bad.key))
            #expect(error?.isRetriable == false)
            #expect(error?.message.contains("table person rejected the row with sync_id me and id bad") == true)
            #expect(try await store.position(of: 0) == nil)
        }
    }

    /// Another application created it, or a restored database is ahead.
    @Test func anExistingRowIsOverwrittenByItsFirstVersion() async throws {
        let standing = Samples.row("a", [#""old""#, "1", "null", "null", "null", "null"])
        let rows = [Samples.row("a"), Samples.row("b"), Samples.row("c", version: 7)]
        try await PostgresStoreHarness.make().withStore { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [standing])])
            try await store.commit([Samples.step(2, rows)])
            let found = try await store.rows(rows.map(\.key), in: 0, schemaOrdinal: 1)
            #expect(Set(found) == Set(rows))
            #expect(try await store.position(of: 0) == Samples.position(2))
        }
    }

    @Test func largeValuesAreCompressedWithLZ4IfAvailable() async throws {
        let place = try await PostgresStoreHarness.make()
        let long = "\"" + String(repeating: "river stone ", count: 1000) + "\""
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            let row = Samples.row("long", [#""name""#, "1", long, "null", "null", "null"])
            try await store.commit([Samples.step(1, [row])])
            let found = try await store.rows([row.key], in: 0, schemaOrdinal: 1)
            #expect(found == [row])
        }
        let methods = try await place.query(
            """
            SELECT pg_column_compression(person.note), CASE WHEN 'lz4' = ANY (enumvals) THEN 'lz4' ELSE 'pglz' END
            FROM person, pg_settings WHERE pg_settings.name = 'default_toast_compression'
            """)
        #expect(methods.count == 1)
        #expect(methods.allSatisfy { $0[0] == $0[1] }, "\(methods)")
    }
}

extension SeededRandom {
    /// A random value of a type in canonical JSON, often an edge case.
    fileprivate mutating func value(of type: SyncModel.ColumnType) -> String {
        switch type {
        case .text: quoted(text())
        case .json: ["[]", "{}", "-0.0", "1E+5", quoted(text()), "[\(quoted(text())),{\"b\":1,\"a\":2.50}]"][pick(6)]
        case .integer: integer()
        case .real: real()
        case .boolean: next() % 2 == 0 ? "true" : "false"
        case .uuid: uuid()
        case .timestamp: timestamp()
        case .date: String(timestamp().prefix(11)) + "\""
        case .bytes: "\"\(Data((0..<pick(40)).map { _ in UInt8(pick(256)) }).base64EncodedString())\""
        case .decimal(let precision, let scale): decimal(precision, scale)
        }
    }

    private mutating func pick(_ count: Int) -> Int { Int(next() % UInt64(count)) }

    private mutating func text() -> String {
        let scalars = (0..<pick(30)).map { _ -> Unicode.Scalar in
            let ranges: [ClosedRange<UInt32>] = [1...0x7F, 0x80...0x7FF, 0x800...0xD7FF, 0xE000...0x10FFFF]
            let range = ranges[pick(4)]
            return Unicode.Scalar(range.lowerBound + UInt32(pick(range.count))) ?? " "
        }
        return String(String.UnicodeScalarView(scalars))
    }

    private func quoted(_ text: String) -> String {
        var json = "\"".unicodeScalars
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": json.append(contentsOf: "\\\"".unicodeScalars)
            case "\\": json.append(contentsOf: "\\\\".unicodeScalars)
            case "\u{8}": json.append(contentsOf: "\\b".unicodeScalars)
            case "\u{C}": json.append(contentsOf: "\\f".unicodeScalars)
            case "\n": json.append(contentsOf: "\\n".unicodeScalars)
            case "\r": json.append(contentsOf: "\\r".unicodeScalars)
            case "\t": json.append(contentsOf: "\\t".unicodeScalars)
            case "\u{0}"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                json.append(contentsOf: ("\\u00" + (digits.count == 1 ? "0" : "") + digits).unicodeScalars)
            default: json.append(scalar)
            }
        }
        json.append("\"")
        return String(json)
    }

    private mutating func integer() -> String {
        let edges: [Int64] = [0, -1, 1 << 53, (1 << 53) - 1, -(1 << 53), .min, .max]
        let value = pick(3) == 0 ? edges[pick(edges.count)] : Int64(bitPattern: next()) >> Int64(pick(64))
        return value.magnitude < 1 << 53 ? "\(value)" : "\"\(value)\""
    }

    private mutating func real() -> String {
        var bytes: [UInt8] = []
        let value = pick(4) == 0 ? Double(pick(1000)) / 10 : Double(bitPattern: next())
        bytes.appendJSONNumber(value.isFinite && value != 0 ? value : 0)
        return String(decoding: bytes, as: UTF8.self)
    }

    private mutating func uuid() -> String {
        let digits = (0..<32).map { _ in String(pick(16), radix: 16) }.joined()
        let ends = [8, 12, 16, 20, 32]
        let groups = zip([0] + ends, ends).map { start, end in String(Array(digits)[start..<end]) }
        return "\"\(groups.joined(separator: "-"))\""
    }

    private mutating func timestamp() -> String {
        let least: Int64 = -62_135_596_800_000_000
        let span: UInt64 = 315_537_897_600_000_000
        let edges = [least, least + Int64(span) - 1, 0, -1, 946_684_800_000_000, 946_684_799_999_999]
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(pick(4) == 0 ? edges[pick(6)] : least + Int64(next() % span), to: &bytes)
        return "\"\(String(decoding: bytes, as: UTF8.self))\""
    }

    private mutating func decimal(_ precision: Int, _ scale: Int) -> String {
        // Nines, ones with zeros, and anything between, of every length.
        let length = pick(precision + 1)
        let kind = pick(3)
        var digits = (0..<length).map { index in
            kind == 0 ? 9 : kind == 1 ? (index == 0 ? 1 : 0) : pick(10)
        }
        digits = Array(repeating: 0, count: precision - length) + digits
        let text = digits.map(String.init)
        var whole = text.prefix(precision - scale).joined()
        while whole.count > 1, whole.hasPrefix("0") { whole.removeFirst() }
        if whole.isEmpty { whole = "0" }
        let sign = pick(2) == 0 && digits.contains { $0 != 0 } ? "-" : ""
        let fraction = scale > 0 ? "." + text.suffix(scale).joined() : ""
        return "\"\(sign)\(whole)\(fraction)\""
    }
}
