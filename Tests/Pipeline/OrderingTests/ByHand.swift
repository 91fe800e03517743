import ChangeLog
import RecordStore
import SyncModel
import SyncWire

/// What a partition comes to when its messages go through the machine one after the other, with nothing around it.
struct ByHand {
    private let machine = OrderingMachine(Fixture.history)
    private(set) var state = PartitionState()
    private(set) var pieces: [[UInt8]] = []
    private var rows: [RowKey: OrderedRow] = [:]
    private var outcomes: [DeviceKey: [Outcome]] = [:]
    private var applied: [AppliedChangeKey: AppliedChange] = [:]
    private var usage: [SyncID: OwnerUsage] = [:]

    init(_ parts: [ChangePart]) throws {
        for (offset, part) in parts.enumerated() { try order(part, at: Int64(offset)) }
    }

    private mutating func order(_ part: ChangePart, at offset: Int64) throws {
        let kept = outcomes[part.deviceKey] ?? []
        let progress = DeviceProgress(
            highestBatch: kept.last?.batch ?? 0, outcome: kept.first { $0.batch == part.batch })
        let step = try machine.step(
            part, state: state, schemas: Fixture.schemas, progress: progress,
            usage: usage[part.owner] ?? OwnerUsage()
        ) { id in
            applied[AppliedChangeKey(device: part.deviceKey, id: id)]
        } row: {
            rows[$0]
        }
        state = step.state
        for row in step.rows { rows[row.key] = row }
        if let now = step.usage { usage[part.owner] = now == OwnerUsage() ? nil : now }
        for change in step.applied {
            applied[AppliedChangeKey(device: part.deviceKey, id: change.identity.id)] = change
        }
        if let outcome = step.outcome {
            outcomes[part.deviceKey] = (kept + [outcome]).suffix(Outcome.keptPerDevice)
        }
        guard let decision = step.decision, let schema = Fixture.schemas[state.schemaOrdinal] else { return }
        var piece = OrderedPiece(
            epoch: part.epoch, changesOffset: offset, schema: schema.version.hash, upload: part.upload,
            uploadPart: part.part, logTime: part.logTime, timeStamp: state.timeStamp, owner: part.owner,
            device: part.device, batch: part.batch, verdict: .repeated, contentHash: part.contentHash)
        piece.touchedBytes = step.touchedBytes
        piece.summary = part.summary.map { BatchSummary(changeCount: $0.changeCount, otherOwners: $0.otherOwners) }
        switch decision {
        case .ordered(let results, let summary):
            piece.verdict = .ordered
            (piece.rows, piece.results, piece.summary) = (step.written, results, summary)
        case .repeated: break
        case .refused(let refusal): piece.verdict = .refused(refusal)
        }
        pieces += piece.split(at: Fixture.history.pieceSize, naming: schema.schema).map {
            $0.encode(naming: schema.schema)
        }
    }

    /// The tables that hold this.
    var tables: Tables {
        Tables(
            state: state,
            rows: rows.mapValues { row in
                var row = row
                if let table = Fixture.schemas[state.schemaOrdinal]?.schema.tables[row.key.table] {
                    row.values = row.values.lifted(to: table)
                }
                return row
            }, outcomes: outcomes, applied: applied, usage: usage)
    }
}

/// What the tables hold of a partition.
struct Tables: Equatable, Sendable {
    var state = PartitionState()
    var rows: [RowKey: OrderedRow] = [:]
    var outcomes: [DeviceKey: [Outcome]] = [:]
    var applied: [AppliedChangeKey: AppliedChange] = [:]
    var usage: [SyncID: OwnerUsage] = [:]
}

extension WatchedStore {
    /// Reads a partition whole.
    func tables(of partition: Int) async throws -> Tables {
        guard let position = try await position(of: partition) else { return Tables() }
        let pieces = Signal<SnapshotChunk>()
        try await snapshot(of: partition, schemaOrdinal: position.state.schemaOrdinal) { pieces.add($0) }
        var tables = Tables()
        for piece in pieces.facts {
            switch piece {
            case .position(let position): tables.state = position.state
            case .rows(let rows): for row in rows { tables.rows[row.key] = row }
            case .outcomes(let outcomes):
                for stored in outcomes { tables.outcomes[stored.key, default: []].append(stored.outcome) }
            case .usage(let usage): for stored in usage { tables.usage[stored.owner] = stored.usage }
            }
        }
        let changes = Signal<[StoredAppliedChange]>()
        try await appliedChanges(of: partition) { changes.add($0) }
        for stored in changes.facts.joined() { tables.applied[stored.changeKey] = stored.change }
        return tables
    }
}

extension ChangeLog {
    /// All records of a partition.
    func records(of partition: TopicPartition) async throws -> [LogRecord] {
        let range = try await range(of: partition)
        let reader = try await reader(of: partition, from: range.start)
        var records: [LogRecord] = []
        while records.count < range.end - range.start { records += try await reader.next(maximumBytes: 1 << 20) }
        await reader.close()
        return records
    }

    /// The pieces of a partition of `ordered` as a reader takes them, without those that it has already (I2).
    func piecesOnce(in partition: Int) async throws -> [[UInt8]] {
        var last: (Int64, Int) = (-1, 0)
        var pieces: [[UInt8]] = []
        for record in try await records(of: TopicPartition(.ordered, partition)) {
            let header = try OrderedPieceHeader(decoding: record.value)
            guard (header.changesOffset, header.piece) > last else { continue }
            last = (header.changesOffset, header.piece)
            pieces.append(record.value)
        }
        return pieces
    }

    /// Appends messages to a partition of `changes`.
    func append(_ parts: [ChangePart], to partition: Int = 0) async throws {
        let producer = try await producer()
        try await producer.append(
            parts.map { NewRecord(to: TopicPartition(.changes, partition), value: $0.encode(naming: Fixture.newest)) })
        await producer.close()
    }

    /// Appends results as they are to the first partition.
    func publish(_ pieces: [[UInt8]]) async throws {
        let producer = try await producer()
        try await producer.append(pieces.map { NewRecord(to: TopicPartition(.ordered, 0), value: $0) })
        await producer.close()
    }
}
