import Seeded
import SyncModel
import SyncWire

/// Parts as ingest makes them from uploads of devices of several owners, which also write each other's rows.
struct Uploads {
    static let history = History(epoch: "e1", partitions: 3, clock: .sequence(first: 100), pieceSize: 2000)
    /// Some in each partition.
    static let owners: [SyncID] = ["abc", "def", "jkl", "stu", "o'\"ß"].map(SyncID.init(unchecked:))

    /// A column of each type, with canonical values.
    private static let spellings: [(type: ColumnType, values: [String])] = [
        (.text, [#""""#, #""näm \"e\" \\ \n""#, #""a""#]),
        (.integer, ["0", "-7", "9007199254740991", #""9223372036854775807""#]),
        (.real, ["0", "0.1", "-2.5"]), (.boolean, ["true", "false"]),
        (.decimal(precision: 8, scale: 2), [#""12.50""#, #""-0.01""#]),
        (.uuid, [#""0a1b2c3d-0000-4000-8000-00000000beef""#]),
        (.timestamp, [#""2026-01-02T03:04:05.000006Z""#, #""0001-01-01T00:00:00.000000Z""#]),
        (.date, [#""2024-02-29""#]), (.bytes, [#""AAEC/w==""#, #""""#]),
        (.json, [#"{"b":[1,null,"x"],"a":{}}"#, "[]", "null"]),
    ]

    static let schemas: SchemaHistory = {
        let columns = spellings.enumerated().map { Column(name: "c\($0)", type: $1.type) }
        let schema = Schema(tables: [
            Table(name: "item", columns: columns),
            Table(name: "note", policy: .lastWriteWins, columns: [columns[0]]),
            Table(name: "account", policy: .checkBase, columns: [columns[0], columns[1]]),
        ])
        var schemas = SchemaHistory()
        schemas.append(.init(version: SchemaVersion(ordinal: 1, of: schema), schema: schema))
        return schemas
    }()

    private var generator: SeededRandom
    private var offsets: [Int: Int64] = [:]
    /// The last batch number of each device.
    private(set) var batches: [Device: Int64] = [:]
    private var logTime: Int64 = 1_700_000_000_000_000

    init(seed: UInt64) { generator = SeededRandom(seed: seed) }

    static func partition(of owner: SyncID) -> Int { Partitioning(count: history.partitions).partition(of: owner) }

    /// The messages of the next upload, each with its partition.
    mutating func next() -> [(partition: Int, part: ChangePart)] {
        let caller = Self.owners.randomElement(using: &generator) ?? Self.owners[0]
        let device = Device(
            caller: caller, knowledgeID: KnowledgeID(unchecked: "k\(Int.random(in: 1...3, using: &generator))"))
        let place = Self.partition(of: caller)
        let offset = offsets[place, default: 0]
        offsets[place] = offset + 1
        let batch = batches[device, default: 0] + 1
        batches[device] = batch
        logTime += 1000
        let other = generator.chance(30) ? Self.owners.filter { $0 != caller }.randomElement(using: &generator) : nil
        var index = 0
        let owners = [caller] + (other.map { [$0] } ?? [])
        let parts = owners.enumerated().map { number, owner in
            let changes = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                defer { index += 1 }
                return change(index, of: device)
            }
            return ChangePart(
                epoch: Self.history.epoch, schema: Self.schemas.newest?.version.hash ?? "",
                upload: UploadReference(partition: place, offset: offset), logTime: logTime, part: number, owner: owner,
                device: device, batch: batch, contentHash: Array(repeating: UInt8(batch % 251), count: 32),
                isAtomic: generator.chance(10), changes: changes)
        }
        return parts.map { part in
            var part = part
            if part.part == 0 {
                part.summary = BatchSummary(changeCount: index, otherOwners: other.map { [$0] } ?? [])
            }
            return (Self.partition(of: part.owner), part)
        }
    }

    private mutating func change(_ index: Int, of device: Device) -> Change {
        let table = [0, 0, 0, 1, 2].randomElement(using: &generator) ?? 0
        let columns = Self.schemas.newest?.schema.tables[table].columns.count ?? 0
        var values = RowValues()
        for column in 0..<columns {
            if generator.chance(35) {
                values.appendAbsent()
            } else {
                values.append(Array((Self.spellings[column].values.randomElement(using: &generator) ?? "null").utf8))
            }
        }
        return Change(
            index: index, table: table, id: RowID(unchecked: "r\(Int.random(in: 0..<20, using: &generator))"),
            knowledgeID: device.knowledgeID, isDelete: generator.chance(15), values: values,
            base: generator.chance(30) ? TimeStamp(Int64.random(in: 100...200, using: &generator)) : .zero,
            updatedAt: generator.chance(50) ? logTime - Int64.random(in: 0...5000, using: &generator) : nil)
    }
}
