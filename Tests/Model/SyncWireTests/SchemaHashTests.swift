import Digest
import SyncModel
import SyncWire
import Testing

@Suite struct SchemaHashTests {
    @Test func isAPrefixOfTheHashOfTheEncodedTables() {
        let digest = hexadecimal(SHA256.digest(of: Sample.fullSchema.encode()))
        #expect(SchemaVersion.hash(of: Sample.fullSchema) == String(digest.prefix(32)))
        #expect(SchemaVersion(ordinal: 3, of: Sample.fullSchema).hash == String(digest.prefix(32)))
    }

    /// A version is named by its hash permanently: old records must find it.
    @Test func hashesNeverChange() {
        #expect(SchemaVersion.hash(of: Schema(tables: [])) == "e3b0c44298fc1c149afbf4c8996fb924")
        #expect(SchemaVersion.hash(of: Sample.fullSchema) == "f1b0ebf8c196ca81231f4f71390d41ae")
    }

    @Test func theHashDependsOnEverythingDeclared() {
        let base = Column(name: "c", type: .decimal(precision: 5, scale: 2))
        let columns = [
            base,
            Column(name: "d", type: .decimal(precision: 5, scale: 2)),
            Column(name: "c", type: .decimal(precision: 6, scale: 2)),
            Column(name: "c", type: .decimal(precision: 5, scale: 1)),
            Column(name: "c", type: .decimal(precision: 5, scale: 2), isNullable: false),
            Column(name: "c", type: .decimal(precision: 5, scale: 2), defaultValue: Array("null".utf8)),
            Column(name: "c", type: .decimal(precision: 5, scale: 2), maximumLength: 0),
            Column(name: "c", type: .decimal(precision: 5, scale: 2), maximumLength: 1),
            Column(name: "c", type: .decimal(precision: 5, scale: 2), references: "t"),
            Column(name: "c", type: .text, references: "t"),
            Column(name: "c", type: .text, references: "t", onDelete: .reassign),
            Column(name: "c", type: .text), Column(name: "c", type: .integer), Column(name: "c", type: .real),
            Column(name: "c", type: .boolean), Column(name: "c", type: .uuid), Column(name: "c", type: .timestamp),
            Column(name: "c", type: .date), Column(name: "c", type: .bytes), Column(name: "c", type: .json),
        ]
        var schemas = columns.map { Schema(tables: [Table(name: "t", columns: [$0])]) }
        schemas += Policy.allCases.dropFirst().map { Schema(tables: [Table(name: "t", policy: $0, columns: [base])]) }
        schemas += [
            Schema(tables: []), Schema(tables: [Table(name: "u", columns: [base])]),
            Schema(tables: [Table(name: "t", columns: [])]),
            Schema(tables: [Table(name: "t", columns: [columns[0], columns[1]])]),
            Schema(tables: [Table(name: "t", columns: [columns[1], columns[0]])]),
            Schema(tables: [Table(name: "t", columns: [base]), Table(name: "u", columns: [])]),
            Schema(tables: [Table(name: "u", columns: []), Table(name: "t", columns: [base])]),
        ]
        #expect(Set(schemas.map(SchemaVersion.hash)).count == schemas.count)
    }

    @Test func aSchemaRecordWithTheHashOfAnotherSchemaIsRefused() {
        let entry = SchemaHistory.Entry(
            version: SchemaVersion(ordinal: 1, hash: Sample.hash), schema: Sample.fullSchema)
        let error = #expect(throws: WireError.self) {
            try ControlRecord(decoding: ControlRecord.schema(entry).encode())
        }
        #expect(error?.code == .hashMismatch)
        #expect(error?.path == [3, 2])
    }

    @Test(arguments: ["", "1a", "a-b", "\u{E9}", "a b", String(repeating: "a", count: 64)])
    func namesThatAStoreCouldRefuseAreRefused(name: String) {
        let table = Builder().message(1) { $0.text(1, name).varint(2, 1) }.bytes
        let error = #expect(throws: WireError.self) { try Schema(decoding: table) }
        #expect(error?.code == .invalidForm)
        #expect(error?.path == [1, 1])
    }

    @Test func brokenColumnsAreRefused() {
        let cases: [(Builder, WireError.Code, [Int])] = [
            (Builder().text(1, "c"), .missing, [1, 3, 2]),
            (Builder().varint(2, 1), .missing, [1, 3, 1]),
            (Builder().text(1, "c").varint(2, 11), .unknownValue, [1, 3, 2]),
            (Builder().text(1, "c").varint(2, 5), .missing, [1, 3, 3]),
            (Builder().text(1, "c").varint(2, 5).varint(3, 1).varint(4, 2), .outOfRange, [1, 3, 4]),
            (Builder().text(1, "c").varint(2, 1).blob(6, []), .invalidForm, [1, 3, 6]),
            (Builder().text(1, "c").varint(2, 1).text(8, "no name"), .invalidForm, [1, 3, 8]),
            (Builder().text(1, "c").varint(2, 1).text(8, "t").varint(9, 2), .unknownValue, [1, 3, 9]),
        ]
        for (column, code, path) in cases {
            let bytes = Builder().message(1) { $0.text(1, "t").varint(2, 1).blob(3, column.bytes) }.bytes
            let error = #expect(throws: WireError.self) { try Schema(decoding: bytes) }
            #expect(error?.code == code)
            #expect(error?.path == path)
        }
    }
}
