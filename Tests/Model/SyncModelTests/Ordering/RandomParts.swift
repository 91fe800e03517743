import Seeded
import SyncModel

extension SeededRandom {
    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }
}

/// Makes parts of a partition as ingest might append them, with repeats and late deliveries.
///
/// Few rows and devices, so that they conflict often.
struct RandomParts {
    var generator: SeededRandom
    private var sent: [ChangePart] = []
    private var offsets: [Int64] = [0, 0]
    private var batches: [DeviceKey: Int64] = [:]
    private var logTime: Int64 = 10_000
    private var content: UInt8 = 0

    init(seed: UInt64) { generator = SeededRandom(seed: seed) }

    /// The next message of a partition whose rows the model knows, its schema version at most the one named.
    mutating func next(_ model: NaiveModel, newestSchema: Int) -> ChangePart {
        logTime += Int64.random(in: -300...500, using: &generator)
        var part: ChangePart
        if !sent.isEmpty, generator.chance(8) { return generator.pick(sent) }
        if !sent.isEmpty, generator.chance(18) {
            part = generator.pick(sent)
            if generator.chance(25) { part.contentHash[0] &+= 1 }
        } else {
            part = fresh(model, newestSchema: newestSchema)
        }
        let partition = generator.pick([0, 1])
        offsets[partition] += Int64.random(in: 0...2, using: &generator)
        part.upload = UploadReference(partition: partition, offset: offsets[partition])
        part.part = Int.random(in: 0...3, using: &generator)
        part.logTime = logTime
        sent.append(part)
        return part
    }

    private mutating func fresh(_ model: NaiveModel, newestSchema: Int) -> ChangePart {
        let device = generator.pick([Device.k1, .k2, .k1OfDef])
        let owner = generator.pick([SyncID.abc, .abc, .def])
        let key = DeviceKey(owner: owner, device: device)
        var batch: Int64?
        if generator.chance(80) {
            batch = max(1, (batches[key] ?? 0) + Int64.random(in: -1...3, using: &generator))
            batches[key] = max(batches[key] ?? 0, batch ?? 0)
        }
        let schema = generator.pick(Array(1...newestSchema))
        var changes: [Change] = []
        // Some change the same rows again and again.
        for index in 0..<Int.random(in: 0...(generator.chance(10) ? 40 : 4), using: &generator) {
            changes.append(change(index, schema, owner, device, model))
        }
        content &+= 1
        return ChangePart(
            epoch: Partition.epoch, rules: generator.pick([7, 7, 7, 5, 4, 3, 2, 1]), schema: "v\(schema)",
            upload: UploadReference(partition: 0, offset: 0),
            logTime: logTime, part: 0, owner: owner, device: device, batch: batch, contentHash: [0, content],
            isAtomic: generator.chance(30), hasIngestRefusal: generator.chance(15),
            hasOtherEpoch: generator.chance(4),
            maxRowBytes: generator.chance(30) ? Int.random(in: 4...30, using: &generator) : 1000,
            maxBatchRowBytes: generator.chance(30) ? Int.random(in: 1...50, using: &generator) : 1000,
            maxOwnerRows: generator.chance(20) ? Int.random(in: 0...4, using: &generator) : 1000,
            maxOwnerBytes: generator.chance(20) ? Int.random(in: 0...12, using: &generator) : 1000, changes: changes)
    }

    private mutating func change(
        _ index: Int, _ schema: Int, _ owner: SyncID, _ device: Device, _ model: NaiveModel
    ) -> Change {
        let table = generator.pick(Fixture.allCases).rawValue
        let columns = Fixture.history.entries[schema - 1].schema.tables[table].columns.count
        let id = RowID(unchecked: generator.pick(["x", "y"]))
        let known = model.versions[RowKey(table: table, owner: owner, id: id)]?.map(\.timeStamp) ?? []
        let presence = generator.pick([20, 70, 100])
        let values = (0..<columns).map { _ in generator.chance(presence) ? "\(generator.next() % 10)" : nil }
        let bases = [0, known.last ?? 0, known.last ?? 0, known.isEmpty ? 3 : generator.pick(known), model.newest + 1]
        return Change(
            index: index, table: table, id: id,
            knowledgeID: generator.chance(80) ? device.knowledgeID : KnowledgeID(unchecked: "k9"),
            isDelete: generator.chance(25), values: RowValues(json: values), base: TimeStamp(generator.pick(bases)),
            ifBase: generator.chance(30), isForLiveRow: generator.chance(30), ifUnchanged: generator.chance(15),
            updatedAt: generator.chance(80) ? logTime + Int64.random(in: -600...200, using: &generator) : nil,
            isAltered: generator.chance(8), identity: generator.chance(40) ? identity() : nil)
    }

    /// One of few ids, with one of two contents.
    private mutating func identity() -> ChangeIdentity {
        func digest(_ number: Int) -> ShortDigest {
            ShortDigest(prefixOf: Array(repeating: UInt8(number), count: 16))
        }
        return ChangeIdentity(
            id: digest(Int.random(in: 0...15, using: &generator)),
            content: digest(generator.chance(85) ? 0 : 1))
    }
}
