import DeviceModel
import SyncModel

/// The ordering rules in their simplest form; each result of the ordering stage is compared with it.
///
/// It keeps every version of every row and takes one part after the other.
final class OrderingModel: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.

    /// A row and every version that it had.
    struct Row {
        var state: OrderedRow
        var versions: [(timeStamp: TimeStamp, writer: Device, isDelete: Bool)]

        func lifted(to table: Table) -> Row {
            var row = self
            row.state.values = RowValues(of: state, in: table)
            return row
        }
    }

    /// The batch of a device, and the owner of one of its parts.
    struct PartName: Hashable {
        let key: DeviceKey
        let batch: Int64
    }

    /// What the first outcome of a part must show.
    struct PartOutcome {
        /// Of the whole batch.
        let contentHash: [UInt8]
        /// By the index of its change, each row that a conflict or a refusal shows, with its timeStamp after the part.
        var shown: [Int: (key: RowKey, timeStamp: TimeStamp)] = [:]
        /// The newest row that the part wrote.
        var newest: TimeStamp = .zero
    }

    private struct Progress {
        var highest: Int64 = 0
        /// The newest 16 outcomes: numbers and hashes.
        var kept: [(batch: Int64, hash: [UInt8])] = []
    }

    private let world: World
    private var timeStamps: [TimeStamp]
    /// By partition, the greatest number of a schema version that a part has named.
    private var versions: [Int]
    private(set) var rows: [RowKey: Row] = [:]
    private var progress: [DeviceKey: Progress] = [:]
    /// The parts of numbered batches that were ordered.
    private(set) var outcomes: [PartName: PartOutcome] = [:]
    private var partitionOfOwner: [SyncID: Int] = [:]
    /// By device, owner and id, the content and the result of each change that was applied.
    private var applied: [AppliedChangeKey: FirstChange] = [:]

    private struct FirstChange {
        let content: ShortDigest
        let status: ChangeResult.Status
    }

    init(_ world: World) {
        self.world = world
        timeStamps = Array(repeating: .zero, count: world.scenario.partitions)
        versions = Array(repeating: 0, count: world.scenario.partitions)
    }

    /// Compares a whole result with the part that it is of.
    func check(_ result: OrderedPiece, of part: ChangePart, _ partition: Int) {
        if partitionOfOwner.updateValue(partition, forKey: part.owner) ?? partition != partition {
            return world.fail(.oneOrder, "\(part.owner) is in another partition: \(partition)")
        }
        guard let version = world.scenario.schemas[part.schema] else {
            return world.fail(.rules, "the schema version \(part.schema) is not known; \(name(part))")
        }
        versions[partition] = max(versions[partition], version.version.ordinal)
        let expected = verdict(on: part)
        guard result.verdict == expected else {
            return world.fail(.appliedOnce, "a part is \(result.verdict), and should be \(expected); \(name(part))")
        }
        guard expected == .ordered else {
            if !result.rows.isEmpty { world.fail(.appliedOnce, "a part that is \(expected) wrote rows; \(name(part))") }
            return
        }
        if let batch = part.batch {
            var known = progress[part.deviceKey] ?? Progress()
            known.highest = batch
            known.kept = (known.kept + [(batch, part.contentHash)]).suffix(16)
            progress[part.deviceKey] = known
        }
        apply(part, version.schema, result, partition)
    }

    private func verdict(on part: ChangePart) -> OrderedPiece.Verdict {
        if part.hasOtherEpoch { return .refused(.historyChanged) }
        guard let batch = part.batch, let known = progress[part.deviceKey], batch <= known.highest else {
            return .ordered
        }
        guard let first = known.kept.first(where: { $0.batch == batch }) else { return .refused(.outcomeExpired) }
        return first.hash == part.contentHash ? .repeated : .refused(.batchMismatch)
    }

    private func next(after previous: TimeStamp, _ logTime: Int64) -> TimeStamp {
        switch world.scenario.clock {
        case .logTime: TimeStamp(previous.rawValue < logTime ? logTime : previous.rawValue + 1)
        case .sequence(let first): TimeStamp(previous == .zero ? first : previous.rawValue + 1)
        }
    }

    private func apply(_ part: ChangePart, _ schema: Schema, _ result: OrderedPiece, _ partition: Int) {
        guard result.results.count == part.changes.count else {
            return world.fail(
                .rules, "\(part.changes.count) changes have \(result.results.count) results; \(name(part))")
        }
        let reached = world.scenario.versions[versions[partition] - 1]
        var touched: [RowKey: Row] = [:]
        var timeStamp = timeStamps[partition]
        var mustAbort = part.hasIngestRefusal
        var expected: [ChangeResult.Status] = []
        var counted: [RowKey: Int] = [:]
        var appliedNow: [AppliedChangeKey: FirstChange] = [:]
        // The indexes of changes that an earlier part applied, and the rows of all that were applied before.
        var known: Set<Int> = []
        var repeated: Set<RowKey> = []
        // The last of those changes, by row.
        var last: [RowKey: Int] = [:]
        for (index, change) in part.changes.enumerated() {
            guard let identity = change.identity,
                applied[AppliedChangeKey(device: part.deviceKey, id: identity.id)]?.content == identity.content
            else { continue }
            last[RowKey(table: change.table, owner: part.owner, id: change.id)] = index
        }
        for change in part.changes {
            let key = RowKey(table: change.table, owner: part.owner, id: change.id)
            if counted[key] == nil {
                guard counted.values.reduce(0, +) < world.scenario.maxBatchRowBytes else {
                    expected.append(.refused(.batchRowsTooLarge, message: ""))
                    mustAbort = true
                    continue
                }
                counted[key] = size(of: key, reached)
            }
            let id = change.identity.map { AppliedChangeKey(device: part.deviceKey, id: $0.id) }
            if let id, let first = appliedNow[id] ?? applied[id] {
                if first.content == change.identity?.content {
                    if appliedNow[id] == nil { known.insert(expected.count) }
                    repeated.insert(key)
                    expected.append(first.status)
                } else {
                    expected.append(.refused(.changeMismatch, message: ""))
                    mustAbort = true
                }
                continue
            }
            if id != nil, let last = last[key], expected.count < last {
                expected.append(.conflict)
                mustAbort = true
                continue
            }
            var row = (touched[key] ?? rows[key])?.lifted(to: reached.tables[key.table])
            let decided = ExpectedDecision(change, on: row, by: part, schema, reached)
            switch decided.decision {
            case .unchanged(let status):
                expected.append(status)
            case .stored(let values, let isRevived):
                let next = next(after: timeStamp, part.logTime)
                let state = decided.newState(values, at: next, isRevived: isRevived)
                if exceedsQuota(state, over: row?.state, touched) {
                    expected.append(.refused(.quotaExceeded, message: ""))
                    mustAbort = true
                    continue
                }
                timeStamp = next
                row = Row(state: state, versions: (row?.versions ?? []) + [(next, part.device, change.isDelete)])
                touched[key] = row
                expected.append(
                    state.isDeleted && !change.isDelete
                        ? .deleted(timeStamp: next, version: state.version, knowledgeID: state.knowledgeID)
                        : .applied(timeStamp: next, version: state.version, knowledgeID: state.knowledgeID))
            }
            switch expected[expected.count - 1] {
            case .conflict, .refused: mustAbort = true
            case let status:
                if let id, let content = change.identity?.content {
                    appliedNow[id] = FirstChange(content: content, status: status)
                }
            }
        }
        if part.isAtomic, mustAbort {
            touched = [:]
            appliedNow = [:]
            timeStamp = timeStamps[partition]
            expected = expected.enumerated().map { index, status in
                switch status {
                case .conflict, .refused: status
                default: known.contains(index) ? status : .refused(.batchAborted, message: "")
                }
            }
        }
        applied.merge(appliedNow) { first, _ in first }
        checkHeld(result.results, repeated, part)
        for (index, status) in expected.enumerated() {
            compare(result.results[index], status, part.changes[index], part)
        }
        compare(result.rows, touched.values.map(\.state).sorted { $0.timeStamp < $1.timeStamp }, part)
        compareLocators(result.results, touched, part)
        keepOutcome(result.results, touched, part)
        if result.touchedBytes != counted.values.reduce(0, +) {
            world.fail(.limits, "\(name(part)) touched \(counted.values), and names \(result.touchedBytes) bytes")
        }
        if result.timeStamp != timeStamp {
            world.fail(
                .oneOrder, "the partition is at \(result.timeStamp), and should be at \(timeStamp); \(name(part))")
        }
        timeStamps[partition] = timeStamp
        rows.merge(touched) { _, new in new }
    }

    /// What an owner has: the sum of its rows.
    func usage(of owner: SyncID, _ touched: [RowKey: Row] = [:]) -> OwnerUsage {
        var usage = OwnerUsage()
        for row in rows.merging(touched, uniquingKeysWith: { $1 }).values.lazy.map(\.state) where row.key.owner == owner
        {
            let bytes = Int64(countedBytes(row))
            if row.isDeleted {
                usage.deletedRows += 1
                usage.deletedBytes += bytes
            } else {
                usage.rows += 1
                usage.bytes += bytes
            }
        }
        return usage
    }

    /// The JSON of the values that are not defaults.
    private func countedBytes(_ row: OrderedRow) -> Int {
        zip(world.scenario.schema.tables[row.key.table].columns, RowText.values(of: row)).reduce(0) { sum, next in
            sum + (next.1 == RowText.initial(next.0) ? 0 : next.1.utf8.count)
        }
    }

    /// Whether a row would make its owner's usage both grow and exceed the quota, or ten times the quota with deleted rows.
    private func exceedsQuota(_ new: OrderedRow, over old: OrderedRow?, _ touched: [RowKey: Row]) -> Bool {
        var after = touched
        after[new.key] = Row(state: new, versions: [])
        let (before, now) = (usage(of: new.key.owner, touched), usage(of: new.key.owner, after))
        let (rows, bytes) = (Int64(world.scenario.maxOwnerRows), Int64(world.scenario.maxOwnerBytes))
        let checks = [
            (before.rows, now.rows, rows), (before.rows + before.deletedRows, now.rows + now.deletedRows, 10 * rows),
            (before.bytes, now.bytes, bytes),
            (before.bytes + before.deletedBytes, now.bytes + now.deletedBytes, 10 * bytes),
        ]
        return checks.contains { before, now, limit in limit > 0 && now > before && now > limit }
    }

    /// The JSON of a row before the part, or what a new row has without any value sent.
    private func size(of key: RowKey, _ schema: Schema) -> Int {
        let table = schema.tables[key.table]
        let values = rows[key].map { RowText.values(of: $0.state, in: table) } ?? table.columns.map(RowText.initial)
        return values.reduce(0) { $0 + $1.utf8.count }
    }

    private func compare(
        _ result: ChangeResult, _ expected: ChangeResult.Status, _ change: Change, _ part: ChangePart
    ) {
        let found = result.status
        let item = "change \(change.index) of \(change.id); \(name(part))"
        switch (found, expected) {
        case (.applied(let one, _, _), .applied(let other, _, _)) where one != other,
            (.deleted(let one, _, _), .deleted(let other, _, _)) where one != other:
            world.fail(.oneOrder, "the timeStamp is \(one), and should be \(other): \(item)")
        case (.applied, .deleted), (.deleted, .applied):
            world.fail(.deletesStay, "it is \(found), and should be \(expected): \(item)")
        case (.refused(let one, _), .refused(let other, _)) where one == other: break
        default:
            if found != expected || result.id != change.id || result.index != change.index {
                world.fail(.rules, "it is \(found), and should be \(expected): \(item)")
            }
        }
    }

    /// No row of a repeated change counts as held by its device, which may have the change's values on top of others.
    private func checkHeld(_ results: [ChangeResult], _ repeated: Set<RowKey>, _ part: ChangePart) {
        for result in results where result.heldFrom != nil {
            if repeated.contains(RowKey(table: result.table, owner: part.owner, id: result.id)) {
                world.fail(.exactPull, "\(result.id) counts as held after a repeated change; \(name(part))")
            }
        }
    }

    /// Conflicts and refusals locate the row as it is after the part, unless it was not read.
    private func compareLocators(_ results: [ChangeResult], _ touched: [RowKey: Row], _ part: ChangePart) {
        for result in results {
            var expected: RowLocator?
            if result.status.isRejected, !result.status.isBatchRowsTooLarge {
                let key = RowKey(table: result.table, owner: part.owner, id: result.id)
                expected = (touched[key] ?? rows[key]).map {
                    RowLocator(knowledgeID: $0.state.knowledgeID, timeStamp: $0.state.timeStamp)
                }
            }
            if result.locator != expected {
                let found = "\(String(describing: result.locator))"
                world.fail(
                    .rules,
                    "\(result.id) is at \(found), and should be at \(String(describing: expected)); \(name(part))")
            }
        }
    }

    private func keepOutcome(_ results: [ChangeResult], _ touched: [RowKey: Row], _ part: ChangePart) {
        guard let batch = part.batch else { return }
        var outcome = PartOutcome(contentHash: part.contentHash)
        for result in results where result.status.isRejected && !result.status.isBatchRowsTooLarge {
            let key = RowKey(table: result.table, owner: part.owner, id: result.id)
            if let row = touched[key] ?? rows[key] { outcome.shown[result.index] = (key, row.state.timeStamp) }
        }
        outcome.newest = touched.values.map(\.state.timeStamp).max() ?? .zero
        outcomes[PartName(key: part.deviceKey, batch: batch)] = outcome
    }

    private func compare(_ found: [WrittenRow], _ expected: [OrderedRow], _ part: ChangePart) {
        guard found.map(\.row.timeStamp) == expected.map(\.timeStamp) else {
            return world.fail(
                .oneOrder,
                "rows are at \(found.map(\.row.timeStamp)), and should be at \(expected.map(\.timeStamp)); \(name(part))"
            )
        }
        for (written, other) in zip(found, expected) {
            let row = written.row
            let before = rows[row.key]?.state.timeStamp ?? .zero
            if written.before != before {
                return world.fail(.oneOrder, "\(row.key.id) was at \(before), not at \(written.before); \(name(part))")
            }
            if row.isDeleted != other.isDeleted {
                return world.fail(.deletesStay, "\(row.key.id) is deleted: \(row.isDeleted); \(name(part))")
            }
            var same = row
            // What the stage keeps for its own use is checked by its decisions.
            same.isExact = other.isExact
            same.othersTimeStamp = other.othersTimeStamp
            if same != other {
                return world.fail(.rules, "the row is \(row), and should be \(other); \(name(part))")
            }
        }
    }

    private func name(_ part: ChangePart) -> String {
        "part \(part.part) of uploads[\(part.upload.partition)] \(part.upload.offset)"
    }
}
