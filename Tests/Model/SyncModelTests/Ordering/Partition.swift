import SyncModel

/// One partition in memory: what a store keeps between steps, and nothing else.
struct Partition {
    static let epoch = "h3Zq"

    var machine: OrderingMachine
    var schemas: SchemaHistory
    var state = PartitionState()
    var rows: [RowKey: OrderedRow] = [:]
    var devices: [DeviceKey: [Outcome]] = [:]
    var applied: [AppliedChangeKey: AppliedChange] = [:]
    var usage: [SyncID: OwnerUsage] = [:]
    /// What the last part copied.
    private(set) var copiedBytes = 0
    private var nextUpload: Int64 = 0

    init(clock: TimeStampClock = .sequence(first: 1), schemas: SchemaHistory = Fixture.history) {
        machine = OrderingMachine(History(epoch: Self.epoch, partitions: 1, clock: clock))
        self.schemas = schemas
    }

    /// Orders a part and stores the result, as a store does.
    @discardableResult
    mutating func order(_ part: ChangePart) throws(OrderingMachine.Pause) -> OrderingMachine.Step {
        let kept = devices[part.deviceKey] ?? []
        let progress = DeviceProgress(
            highestBatch: kept.last?.batch ?? 0, outcome: kept.first { $0.batch == part.batch })
        let touched = Set(part.rowsTouched)
        var copied = 0
        let step = try machine.step(
            part, state: state, schemas: schemas, progress: progress, usage: usage[part.owner] ?? OwnerUsage()
        ) { id in
            applied[AppliedChangeKey(device: part.deviceKey, id: id)]
        } row: { key in
            precondition(touched.contains(key), "the machine looks up what rowsTouched names")
            return rows[key]
        } copied: { bytes in
            copied += bytes
        }
        copiedBytes = copied
        state = step.state
        for row in step.rows { rows[row.key] = row }
        if let now = step.usage { usage[part.owner] = now }
        for change in step.applied {
            let key = AppliedChangeKey(device: part.deviceKey, id: change.identity.id)
            precondition(applied.updateValue(change, forKey: key) == nil, "a change is applied once")
        }
        if let outcome = step.outcome {
            devices[part.deviceKey, default: []].append(outcome)
            if let count = devices[part.deviceKey]?.count, count > Outcome.keptPerDevice {
                devices[part.deviceKey]?.removeFirst(count - Outcome.keptPerDevice)
            }
        }
        return step
    }

    /// Makes a part of a record of `uploads` not seen before, to be changed and ordered.
    mutating func part(
        _ changes: [Change], from device: Device = .k1, for owner: SyncID? = nil, batch: Int64? = nil,
        at logTime: Int64 = 1_000, schema: String = "v1", isAtomic: Bool = false, hash: UInt8 = 0
    ) -> ChangePart {
        nextUpload += 1
        let owner = owner ?? device.caller
        var changes = changes
        for index in changes.indices { changes[index].index = index }
        let isCallers = owner == device.caller
        return ChangePart(
            epoch: Self.epoch, schema: schema, upload: UploadReference(partition: 0, offset: nextUpload),
            logTime: logTime, part: isCallers ? 0 : 1, owner: owner, device: device, batch: batch,
            contentHash: Array(repeating: hash, count: 32), isAtomic: isAtomic, changes: changes,
            summary: isCallers ? BatchSummary(changeCount: changes.count) : nil)
    }

    /// Makes a part and orders it.
    @discardableResult
    mutating func send(
        _ changes: Change..., from device: Device = .k1, for owner: SyncID? = nil, batch: Int64? = nil,
        at logTime: Int64 = 1_000, schema: String = "v1", isAtomic: Bool = false, hash: UInt8 = 0
    ) throws -> OrderingMachine.Step {
        try order(
            part(
                changes, from: device, for: owner, batch: batch, at: logTime, schema: schema, isAtomic: isAtomic,
                hash: hash))
    }

    /// The current row of an owner.
    func row(_ table: Fixture, _ id: String = "r", of owner: SyncID = .abc) -> OrderedRow? {
        rows[RowKey(table: table.rawValue, owner: owner, id: RowID(unchecked: id))]
    }
}

extension OrderingMachine.Step {
    /// The result of each change; empty when the part was not ordered.
    var statuses: [ChangeResult.Status] { results.map(\.status) }

    /// The results; empty when the message was not ordered.
    var results: [ChangeResult] {
        guard case .ordered(let results, _) = decision else { return [] }
        return results
    }
}

extension ChangeResult.Status {
    var code: RefusalCode? {
        guard case .refused(let code, _) = self else { return nil }
        return code
    }

    /// A short name for comparisons.
    var name: String {
        switch self {
        case .applied: "applied"
        case .deleted: "deleted"
        case .conflict: "conflict"
        case .refused(let code, _): code.rawValue
        }
    }
}

extension Change {
    /// An edit; `nil` leaves a column out.
    static func edit(
        _ table: Fixture, _ values: [String?], id: String = "r", by knowledgeID: String = "k1", base: Int64 = 0,
        ifBase: Bool = false, isForLiveRow: Bool = false, ifUnchanged: Bool = false, updatedAt: Int64? = nil,
        isAltered: Bool = false
    ) -> Change {
        Change(
            index: 0, table: table.rawValue, id: RowID(unchecked: id), knowledgeID: KnowledgeID(unchecked: knowledgeID),
            values: RowValues(json: values), base: TimeStamp(base), ifBase: ifBase, isForLiveRow: isForLiveRow,
            ifUnchanged: ifUnchanged, updatedAt: updatedAt, isAltered: isAltered)
    }

    /// A delete, which may carry values.
    static func delete(
        _ table: Fixture, _ values: [String?] = [], id: String = "r", base: Int64 = 0, ifBase: Bool = false,
        isForLiveRow: Bool = false, ifUnchanged: Bool = false, updatedAt: Int64? = nil
    ) -> Change {
        Change(
            index: 0, table: table.rawValue, id: RowID(unchecked: id), knowledgeID: KnowledgeID(unchecked: "k1"),
            isDelete: true, values: RowValues(json: values), base: TimeStamp(base), ifBase: ifBase,
            isForLiveRow: isForLiveRow, ifUnchanged: ifUnchanged, updatedAt: updatedAt)
    }
}

extension RowValues {
    /// Encodes JSON texts; `nil` is an absent column.
    init(json: [String?]) {
        self.init()
        for value in json {
            if let value { append(Array(value.utf8)) } else { appendAbsent() }
        }
    }

    /// The JSON texts, empty where a column is absent.
    var json: [String] { ranges.map { String(decoding: bytes[$0], as: UTF8.self) } }
}

extension Device {
    static let k1 = Device(caller: .abc, knowledgeID: KnowledgeID(unchecked: "k1"))
    static let k2 = Device(caller: .abc, knowledgeID: KnowledgeID(unchecked: "k2"))
    /// Another owner's device, with the knowledgeId of the first.
    static let k1OfDef = Device(caller: .def, knowledgeID: KnowledgeID(unchecked: "k1"))
}

extension SyncID {
    static let abc = SyncID(unchecked: "abc")
    static let def = SyncID(unchecked: "def")
}
