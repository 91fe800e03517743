import ChangeLog
import FanOut
import FanOutLink
import Foundation
import RecordStore
import SyncModel
import SyncWire

/// Ordering, its log and its tables, run by a test: what it writes is what the real stages would.
final class World {
    let epoch: String
    let log: MemoryLog
    let store = MemoryStore()
    let partitions: Int
    /// The size at which results are split.
    var pieceSize = 1 << 20
    /// Whether the tables are written immediately; else by ``writeTables()``.
    var writesTables = false
    private(set) var schemas = SchemaHistory()
    /// The rows as ordering has them: the model that pulls are held against.
    private(set) var rows: [RowKey: OrderedRow] = [:]
    private var states: [Int: PartitionState] = [:]
    private var positions: [Int: StoredPosition] = [:]
    private var progress: [DeviceKey: [Outcome]] = [:]
    private var uploads: [Int: Int64] = [:]
    /// The offsets after the last results published.
    private var ends: [Int: Int64] = [:]
    private var logTime: Int64 = 1_700_000_000_000_000

    init(partitions: Int = 1, epoch: String = "epoch") {
        self.epoch = epoch
        self.partitions = partitions
        log = MemoryLog(partitions: partitions)
        schemas.append(Self.entry(1, Self.schema))
    }

    static let schema = Schema(tables: [
        Table(name: "person", columns: [Column(name: "name", type: .text), Column(name: "age", type: .integer)]),
        Table(name: "note", policy: .lastWriteWins, columns: [Column(name: "body", type: .text)]),
    ])

    static func entry(_ ordinal: Int, _ schema: Schema) -> SchemaHistory.Entry {
        SchemaHistory.Entry(
            version: SchemaVersion(ordinal: ordinal, hash: String(repeating: "0", count: 31) + "\(ordinal)"),
            schema: schema)
    }

    func addSchema(_ schema: Schema) { schemas.append(Self.entry(schemas.entries.count + 1, schema)) }

    var history: History { History(epoch: epoch, partitions: partitions, clock: .sequence(first: 100)) }

    func partition(of owner: SyncID) -> Int { Partitioning(count: partitions).partition(of: owner) }

    func ordered(_ partition: Int = 0) -> TopicPartition { TopicPartition(.ordered, partition) }

    /// The offset after the last record of `ordered`.
    func end(_ partition: Int = 0) async throws -> Int64 { try await log.range(of: ordered(partition)).end }

    // MARK: Writing

    /// One batch for one owner, through ordering into `ordered` and the tables.
    ///
    /// - Returns: where its outcome is found.
    @discardableResult
    func upload(
        _ changes: [Change], owner: SyncID = "abc", device: Device = .first, batch: Int64? = nil, atomic: Bool = false,
        content: UInt8 = 1, otherHistory: Bool = false, refusals: [Refusal] = [], others: [SyncID] = [],
        publishing: Range<Int>? = nil
    ) throws -> PartReference {
        let partition = partition(of: owner)
        let uploadPartition = self.partition(of: device.caller)
        let upload = UploadReference(partition: uploadPartition, offset: uploads[uploadPartition, default: 0])
        uploads[uploadPartition] = upload.offset + 1
        logTime += 1000
        let part = ChangePart(
            epoch: epoch, schema: schemas.newest?.version.hash ?? "", upload: upload, logTime: logTime, part: 0,
            owner: owner, device: device, batch: batch, contentHash: Array(repeating: content, count: 32),
            isAtomic: atomic,
            hasOtherEpoch: otherHistory, changes: changes,
            summary: BatchSummary(
                changeCount: changes.count + refusals.count, otherOwners: others, refusals: refusals))
        let reference = PartReference(upload: upload, part: 0, key: part.deviceKey, batch: batch)
        try order(part, in: partition, publishing: publishing)
        return reference
    }

    /// Pieces that were kept from being published, in order.
    private(set) var heldBack: [(partition: Int, value: [UInt8])] = []

    /// Publishes what was kept back, but the first so many.
    func publishRest(without count: Int = 0) {
        for (partition, value) in heldBack.dropFirst(count) { log.append(value, to: ordered(partition), time: logTime) }
        heldBack = []
    }

    private func order(_ part: ChangePart, in partition: Int, publishing: Range<Int>?) throws {
        let state = states[partition] ?? PartitionState()
        let kept = progress[part.deviceKey] ?? []
        let step = try OrderingMachine(history).step(
            part, state: state, schemas: schemas,
            progress: DeviceProgress(
                highestBatch: kept.map(\.batch).max() ?? 0, outcome: kept.first { $0.batch == part.batch }),
            usage: OwnerUsage(), applied: { _ in nil }, row: { rows[$0] })
        states[partition] = step.state
        for row in step.rows { rows[row.key] = row }
        if let outcome = step.outcome { progress[part.deviceKey] = (kept + [outcome]).suffix(Outcome.keptPerDevice) }
        guard let decision = step.decision, let reached = schemas[step.state.schemaOrdinal] else { return }
        var piece = OrderedPiece(
            epoch: epoch, changesOffset: state.nextOffset, schema: reached.version.hash, upload: part.upload,
            uploadPart: part.part, logTime: part.logTime, timeStamp: step.state.timeStamp, owner: part.owner,
            device: part.device, batch: part.batch, verdict: .repeated, contentHash: part.contentHash)
        piece.touchedBytes = step.touchedBytes
        piece.summary = part.summary.map { BatchSummary(changeCount: $0.changeCount, otherOwners: $0.otherOwners) }
        switch decision {
        case .ordered(let results, let summary):
            piece.verdict = .ordered
            piece.rows = step.written
            piece.results = results
            piece.summary = summary
        case .repeated: break
        case .refused(let refusal): piece.verdict = .refused(refusal)
        }
        let values = piece.split(at: pieceSize, naming: reached.schema).map { $0.encode(naming: reached.schema) }
        let published = publishing ?? 0..<values.count
        for (index, value) in values.enumerated() {
            if published.contains(index) {
                ends[partition] = log.append(value, to: ordered(partition), time: part.logTime) + 1
            } else {
                heldBack.append((partition, value))
            }
        }
        commit(step, part, partition)
    }

    /// Steps that are not in the tables yet.
    private var waitingSteps: [StoreStep] = []

    private func commit(_ step: OrderingMachine.Step, _ part: ChangePart, _ partition: Int) {
        let expected = positions[partition]
        let position = StoredPosition(state: step.state, orderedOffset: ends[partition] ?? 0)
        positions[partition] = position
        waitingSteps.append(
            StoreStep(
                partition: partition, expected: expected, position: position, rows: step.rows,
                outcomes: step.outcome.map { [StoredOutcome(key: part.deviceKey, outcome: $0)] } ?? []))
        if writesTables { writeTables() }
    }

    /// Lets the tables catch up.
    func writeTables() {
        store.write(waitingSteps)
        waitingSteps = []
    }

    /// Recreates `ordered`, empty.
    func recreateOrdered() {
        for partition in 0..<partitions {
            log.empty(ordered(partition))
            ends[partition] = 0
        }
    }

    // MARK: Reading

    /// The rows of an owner in the order of their timeStamps.
    func stream(of owner: SyncID) -> [OrderedRow] {
        rows.values.filter { $0.key.owner == owner }.sorted { $0.timeStamp < $1.timeStamp }
    }

    /// The newest timeStamp of an owner.
    func head(of owner: SyncID) -> TimeStamp { stream(of: owner).last?.timeStamp ?? .zero }

    /// A row in the contract's format, written independently; ids in tests need no escapes.
    func json(_ row: OrderedRow) -> String {
        let table = schemas.newest!.schema.tables[row.key.table]
        var values: [String] = []
        row.values.forEachColumn { column, json in
            values.append("\"\(table.columns[column].name)\":" + String(decoding: json, as: UTF8.self))
        }
        let updatedAt = table.policy == .lastWriteWins ? ",\"updatedAt\":\"\(spell(row.updatedAt))\"" : ""
        return "{\"table\":\"\(table.name)\",\"id\":\"\(row.key.id)\",\"syncId\":\"\(row.key.owner)\","
            + "\"knowledgeId\":\"\(row.knowledgeID)\",\"timeStamp\":\(row.timeStamp),\"version\":\(row.version),"
            + "\"deleted\":\(row.isDeleted)\(updatedAt),\"writer\":{\"syncId\":\"\(row.writer.caller)\","
            + "\"knowledgeId\":\"\(row.writer.knowledgeID)\"},\"values\":{\(values.joined(separator: ","))}}"
    }

    private func spell(_ microseconds: Int64) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyy-MM-dd'T'HH:mm:ss"
        let date = Date(timeIntervalSince1970: Double(microseconds / 1_000_000))
        let fraction = String(microseconds % 1_000_000)
        return formatter.string(from: date) + "." + String(repeating: "0", count: 6 - fraction.count) + fraction + "Z"
    }
}

// Ids in tests are literals.
extension SyncID: ExpressibleByStringInterpolation {
    /// Takes a literal of a test.
    package init(stringLiteral value: String) { self.init(unchecked: value) }
}
extension KnowledgeID: ExpressibleByStringInterpolation {
    /// Takes a literal of a test.
    package init(stringLiteral value: String) { self.init(unchecked: value) }
}
extension RowID: ExpressibleByStringInterpolation {
    /// Takes a literal of a test.
    package init(stringLiteral value: String) { self.init(unchecked: value) }
}

extension Device {
    static let first = Device(caller: "abc", knowledgeID: "k1")
    static let second = Device(caller: "abc", knowledgeID: "k2")
}

extension Change {
    /// A write of a person.
    static func person(
        _ id: RowID, name: String? = "A", age: Int? = 1, by device: KnowledgeID = "k1", index: Int = 0,
        base: TimeStamp = .zero, ifBase: Bool = false, isDelete: Bool = false
    ) -> Change {
        var values = RowValues()
        if let name { values.append(Array("\"\(name)\"".utf8)) } else { values.appendAbsent() }
        if let age { values.append(Array("\(age)".utf8)) } else { values.appendAbsent() }
        return Change(
            index: index, table: 0, id: id, knowledgeID: device, isDelete: isDelete, values: values, base: base,
            ifBase: ifBase)
    }

    /// A write of a note, in the table with `lastWriteWins`.
    static func note(_ id: RowID, body: String, by device: KnowledgeID = "k1", index: Int = 0, updatedAt: Int64? = nil)
        -> Change
    {
        var values = RowValues()
        values.append(Array("\"\(body)\"".utf8))
        return Change(index: index, table: 1, id: id, knowledgeID: device, values: values, updatedAt: updatedAt)
    }
}

extension RowWindow {
    static let all = RowWindow(maximumBytes: 1 << 30)
}
