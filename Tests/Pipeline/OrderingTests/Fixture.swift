import SyncModel
import SyncWire

/// The history, the schema and the owners of these tests.
enum Fixture {
    static let history = History(epoch: "e1", partitions: 2, clock: .sequence(first: 100), pieceSize: 400)

    static let note = 0
    static let account = 1

    /// Two versions: the second adds columns.
    static let schemas: SchemaHistory = {
        let columns = [Column(name: "a", type: .integer), Column(name: "b", type: .text)]
        let added = [Column(name: "c", type: .text, isNullable: false, defaultValue: Array("\"red\"".utf8))]
        var schemas = SchemaHistory()
        for (index, tables) in [columns, columns + added].enumerated() {
            let schema = Schema(tables: [
                Table(name: "note", columns: tables), Table(name: "account", policy: .checkBase, columns: columns),
            ])
            let version = SchemaVersion(ordinal: index + 1, of: schema)
            schemas.append(SchemaHistory.Entry(version: version, schema: schema))
        }
        return schemas
    }()

    /// The first version alone.
    static let firstSchema: SchemaHistory = {
        var first = SchemaHistory()
        first.append(schemas.entries[0])
        return first
    }()

    /// The newest version's tables, which all versions have.
    static var newest: Schema { schemas.entries[schemas.entries.count - 1].schema }

    static func hash(_ ordinal: Int) -> String { schemas[ordinal]?.version.hash ?? "" }

    static func device(_ name: String, of caller: String = "abc") -> Device {
        Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: name))
    }
}

/// Makes messages of `changes` as ingest might append them.
struct PartMaker {
    private var upload: Int64 = 0

    mutating func part(
        _ changes: [Change], owner: String = "abc", device: String = "k1", batch: Int64? = nil, content: UInt8 = 0,
        schema: Int = 1
    ) -> ChangePart {
        upload += 1
        var numbered = changes
        for index in numbered.indices { numbered[index].index = index }
        return ChangePart(
            epoch: Fixture.history.epoch, schema: Fixture.hash(schema),
            upload: UploadReference(partition: 0, offset: upload), logTime: 1_000 + upload, part: 0,
            owner: SyncID(unchecked: owner), device: Fixture.device(device, of: owner), batch: batch,
            contentHash: Array(repeating: content, count: 32), changes: numbered,
            summary: BatchSummary(changeCount: changes.count))
    }

    /// Parts that each make a row of their own.
    mutating func creations(_ count: Int, owner: String = "abc") -> [ChangePart] {
        (0..<count).map { part([.edit("r\($0)", ["\($0)"])], owner: owner, batch: Int64($0 + 1)) }
    }
}

extension Change {
    /// Gives the change an id.
    mutating func name(id: UInt8, content: UInt8 = 0) {
        identity = ChangeIdentity(
            id: ShortDigest(prefixOf: Array(repeating: id, count: 16)),
            content: ShortDigest(prefixOf: Array(repeating: content, count: 16)))
    }

    /// An edit; `nil` leaves a column out.
    static func edit(
        _ id: String, _ values: [String?], table: Int = Fixture.note, isDelete: Bool = false, base: Int64 = 0
    ) -> Change {
        var columns = RowValues()
        for value in values {
            if let value { columns.append(Array(value.utf8)) } else { columns.appendAbsent() }
        }
        return Change(
            index: 0, table: table, id: RowID(unchecked: id), knowledgeID: KnowledgeID(unchecked: "k1"),
            isDelete: isDelete, values: columns, base: TimeStamp(base))
    }
}
