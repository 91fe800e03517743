import ChangeLog
import Ingest
import SyncModel
import SyncWire
import Testing

/// A history of two schema versions; the second has longer titles, one more column and one more table.
enum Fixture {
    static let history = history(recordSize: 1 << 20)

    static func history(recordSize: Int) -> History {
        History(epoch: "h1", partitions: 4, recordSize: recordSize)
    }
    static let partitioning = Partitioning(count: 4)

    static let schemas: SchemaHistory = {
        var history = SchemaHistory()
        for (index, schema) in [first, second].enumerated() {
            history.append(.init(version: SchemaVersion(ordinal: index + 1, of: schema), schema: schema))
        }
        return history
    }()

    /// The first version alone.
    static let firstSchema: SchemaHistory = {
        var history = SchemaHistory()
        history.append(schemas.entries[0])
        return history
    }()

    static let oldest = SchemaVersion(ordinal: 1, of: first).hash
    static let newest = SchemaVersion(ordinal: 2, of: second).hash

    private static let first = Schema(tables: [
        Table(name: "note", columns: note(titleLength: 5)),
        Table(name: "task", policy: .lastWriteWins, columns: [Column(name: "b", type: .text)]),
    ])

    private static let second = Schema(tables: [
        // Its name comes before the others'.
        Table(name: "note", columns: note(titleLength: 10) + [Column(name: "color", type: .text)]),
        Table(
            name: "task", policy: .lastWriteWins,
            columns: [Column(name: "b", type: .text), Column(name: "a", type: .text)]),
        Table(name: "place", columns: [Column(name: "name", type: .text)]),
    ])

    private static func note(titleLength: Int) -> [Column] {
        [
            Column(name: "title", type: .text, isNullable: false, maximumLength: titleLength),
            Column(name: "count", type: .integer),
            Column(name: "price", type: .decimal(precision: 6, scale: 2)),
            Column(name: "due", type: .timestamp),
            Column(name: "labels", type: .json, maximumLength: 40),
            Column(name: "done", type: .boolean),
            Column(name: "weight", type: .real),
            Column(name: "photo", type: .bytes),
            Column(name: "key", type: .uuid),
            Column(name: "day", type: .date),
            Column(name: "body", type: .text),
        ]
    }
}

/// A record of `uploads` of Ann's device, who may write Bob's data and read Cat's.
struct Upload {
    var epoch = "h1"
    var rules = 1
    var schema = Fixture.newest
    var caller = "ann"
    var device = "k1"
    var batch: Int64? = 7
    var isAtomic = false
    var grants: [(String, Access)] = [("ann", .write), ("bob", .write), ("cat", .read)]
    var limits = OutcomeLimits()
    var changes: [UInt8]
    /// Where its edge put it, if not into the caller's own partition.
    var wrongPartition: Int?
    var offset: Int64 = 42
    var time: Int64 = 1_767_323_045_000_000

    init(_ changes: String) { self.changes = Array(changes.utf8) }

    var partition: Int { wrongPartition ?? Fixture.partitioning.partition(of: SyncID(unchecked: caller)) }

    /// A batch of these changes.
    init(_ changes: [String]) { self.init("[" + changes.joined(separator: ",") + "]") }

    var record: LogRecord {
        let batch = ChangeBatch(
            epoch: epoch, rules: rules, schema: schema,
            device: Device(caller: SyncID(unchecked: caller), knowledgeID: KnowledgeID(unchecked: device)),
            batch: batch, isAtomic: isAtomic,
            grants: grants.map { Grant(owner: SyncID(unchecked: $0), access: $1) }, limits: limits, changes: changes)
        return LogRecord(offset: offset, time: time, key: Array(caller.utf8), value: batch.encode())
    }

    /// What ingest makes of it.
    func admitted(
        limits: OutcomeLimits? = nil, maximumRecordSize: Int = 1 << 20
    ) throws -> Decoded {
        var admission = Admission(history: Fixture.history(recordSize: maximumRecordSize))
        return try Decoded(
            admission.admit(with(\.limits, limits ?? self.limits).record, of: partition, schemas: Fixture.schemas))
    }
}

extension Upload {
    func with<Value>(_ path: WritableKeyPath<Upload, Value>, _ value: Value) -> Upload {
        var copy = self
        copy[keyPath: path] = value
        return copy
    }
}

/// What a record came to, read back from the bytes.
struct Decoded {
    let admitted: Admission.Admitted
    var parts: [ChangePart] = []
    var letters: [DeadLetter] = []

    init(_ admitted: Admission.Admitted) throws {
        self.admitted = admitted
        for record in admitted.records {
            switch record.destination.topic {
            case .changes: parts.append(try ChangePart(decoding: record.value))
            default: letters.append(try DeadLetter(decoding: record.value))
            }
        }
    }

    /// The refused changes of the only dead letter.
    func refusedChanges() throws -> RefusedChanges {
        try #require(letters.count == 1)
        guard case .changes(let refused) = letters[0].subject else {
            throw Unexpected(description: "\(letters[0].subject)")
        }
        return refused
    }

    struct Unexpected: Error, CustomStringConvertible {
        let description: String
    }

    /// The refusals that part 0 tells the device.
    var refusals: [Refusal] { parts.first?.summary?.refusals ?? [] }

    /// The owner, the admitted indexes and the refusal flag of each part.
    var outline: [String] {
        parts.map { part in
            "\(part.owner)" + part.changes.map { " \($0.index)" }.joined() + (part.hasIngestRefusal ? " !" : "")
        }
    }
}

extension Change {
    /// The JSON of each column, empty where it is absent.
    var json: [String] { values.ranges.map { String(decoding: values.bytes[$0], as: UTF8.self) } }
}

extension DeadLetter.Subject {
    /// Whether changes of a batch were refused, and not a record as a whole.
    var isOfChanges: Bool { if case .changes = self { true } else { false } }
}
