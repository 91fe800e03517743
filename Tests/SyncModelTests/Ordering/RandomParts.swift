import SyncModel

/// A generator whose numbers its seed decides (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Whether something happens that happens `percent` times in a hundred.
    mutating func isOneOf(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }
}

/// Makes messages of a partition as ingest might append them, repeats and late deliveries among them: few rows and
/// devices, so that they meet often.
struct RandomParts {
    var generator: SeededGenerator
    private var sent: [ChangePart] = []
    private var offsets: [Int64] = [0, 0]
    private var batches: [DeviceKey: Int64] = [:]
    private var logTime: Int64 = 10_000
    private var content: UInt8 = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// The next message of a partition whose rows the model knows, its schema version at most the one named.
    mutating func next(_ model: NaiveModel, newestSchema: Int) -> ChangePart {
        logTime += Int64.random(in: -300...500, using: &generator)
        var part: ChangePart
        if !sent.isEmpty, generator.isOneOf(8) { return generator.pick(sent) }
        if !sent.isEmpty, generator.isOneOf(18) {
            part = generator.pick(sent)
            if generator.isOneOf(25) { part.contentHash[0] &+= 1 }
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
        if generator.isOneOf(80) {
            batch = max(1, (batches[key] ?? 0) + Int64.random(in: -1...3, using: &generator))
            batches[key] = max(batches[key] ?? 0, batch ?? 0)
        }
        let schema = generator.pick(Array(1...newestSchema))
        var changes: [Change] = []
        for index in 0..<Int.random(in: 0...4, using: &generator) {
            changes.append(change(index, schema, owner, device, model))
        }
        content &+= 1
        return ChangePart(
            epoch: Partition.epoch, schema: "v\(schema)", upload: UploadReference(partition: 0, offset: 0),
            logTime: logTime, part: 0, owner: owner, device: device, batch: batch, contentHash: [0, content],
            isAtomic: generator.isOneOf(30), hasIngestRefusal: generator.isOneOf(15),
            isOtherHistory: generator.isOneOf(4), changes: changes)
    }

    private mutating func change(
        _ index: Int, _ schema: Int, _ owner: SyncID, _ device: Device, _ model: NaiveModel
    ) -> Change {
        let table = generator.pick(Fixture.allCases).rawValue
        let columns = Fixture.history.entries[schema - 1].schema.tables[table].columns.count
        let id = RowID(unchecked: generator.pick(["x", "y"]))
        let known = model.versions[RowKey(table: table, owner: owner, id: id)]?.map(\.timeStamp) ?? []
        let presence = generator.pick([20, 70, 100])
        let values = (0..<columns).map { _ in generator.isOneOf(presence) ? "\(generator.next() % 10)" : nil }
        let bases = [0, known.last ?? 0, known.last ?? 0, known.isEmpty ? 3 : generator.pick(known), model.newest + 1]
        return Change(
            index: index, table: table, id: id,
            knowledgeID: generator.isOneOf(80) ? device.knowledgeID : KnowledgeID(unchecked: "k9"),
            isDelete: generator.isOneOf(25), values: RowValues(json: values), base: TimeStamp(generator.pick(bases)),
            ifBase: generator.isOneOf(20),
            updatedAt: generator.isOneOf(80) ? logTime + Int64.random(in: -600...200, using: &generator) : nil,
            isAltered: generator.isOneOf(8))
    }
}
