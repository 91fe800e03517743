/// Applies the changes of one part in the request's order (design: "The rules for one change").
struct ChangeRules {
    private let part: ChangePart
    /// The schema version of the changes.
    private let schema: Schema
    /// The schema version of stored rows: the newest that a part in this partition has named.
    private let reached: Schema
    private let clock: TimeStampClock
    private let maximumRowBytes: Int
    private var touched: TouchedRows
    /// What a creation stores that writes no column, by table.
    private var newRows: [Int: EditedValues] = [:]
    /// How many bytes of rows' values were copied.
    private var copiedBytes = 0
    private let quota: OwnerQuota?
    private let usageBefore: OwnerUsage
    /// With the rows that this part wrote.
    private var usage: OwnerUsage
    private let timeStampBefore: TimeStamp
    private var timeStamp: TimeStamp
    private var results: [ChangeResult] = []
    /// The rows that the changes touched, in the order in which they first did.
    private var rows: [TouchedRow] = []
    /// The index in `rows`.
    private var positions: [RowKey: Int] = [:]
    /// Whether a change is a conflict or refused.
    ///
    /// For an atomic part, refusals by ingest count too.
    private var hasRejection = false
    /// Indexes of the results that wrote a row, and of the row in `rows`.
    private var writes: [(result: Int, row: Int)] = []
    /// Whether `heldFrom` of a row changed after a result was recorded with it.
    private var mustSettle = false
    /// Rows for which the device has values that were not stored, since the last change that wrote every column.
    private var dropped: Set<RowKey> = []
    /// Rows of repeated changes: the device may have what an earlier version had.
    private var repeated: Set<RowKey> = []
    private var applied: AppliedChanges
    /// Indexes of results that the part did not cause: of changes that were applied before it.
    private var repeatedResults: Set<Int> = []

    private struct TouchedRow {
        /// After the changes so far, with the values that it had before the part; `nil` when there is none.
        var row: OrderedRow?
        /// After the changes so far, with the columns of the partition's schema version; of no row, those in `newRows`.
        var values: EditedValues
        /// `nil` for a row that the part did not write.
        var written: Written?

        var usage: OwnerUsage { row.map { OwnerUsage(of: values, isDeleted: $0.isDeleted) } ?? OwnerUsage() }
    }

    private struct Written {
        /// The row's timeStamp before the batch; zero for a created row.
        let before: TimeStamp
        /// Whether a value was altered since the last change that wrote every column (I6).
        let isAltered: Bool
        /// The least vector entry with which the device holds the row (I6).
        var heldFrom: TimeStamp?
    }

    init(
        part: ChangePart, schema: Schema, reached: Schema, clock: TimeStampClock, timeStamp: TimeStamp,
        usage: OwnerUsage, maximumRowBytes: Int, applied known: (ShortDigest) -> AppliedChange?
    ) {
        self.part = part
        self.schema = schema
        self.reached = reached
        self.clock = clock
        self.maximumRowBytes = maximumRowBytes
        touched = TouchedRows(limit: part.batchRowLimit)
        quota = part.quota
        usageBefore = usage
        self.usage = usage
        timeStampBefore = timeStamp
        self.timeStamp = timeStamp
        results.reserveCapacity(part.changes.count)
        rows.reserveCapacity(part.changes.count)
        positions.reserveCapacity(part.changes.count)
        hasRejection = part.isAtomic && part.hasIngestRefusal
        applied = AppliedChanges(of: part, known: known)
    }

    /// Applies the rules to one change: that of repeated changes, then rules 3 to 6.
    ///
    /// An atomic part that will abort still evaluates its remaining changes.
    mutating func apply(
        _ change: Change, row lookup: (RowKey) -> OrderedRow?
    ) throws(OrderingMachine.Pause) {
        guard schema.tables.indices.contains(change.table) else {
            throw .invalidPart("a change names table \(change.table) of \(schema.tables.count)")
        }
        guard change.values.count <= schema.tables[change.table].columns.count else {
            throw .invalidPart("a change of \(schema.tables[change.table].name) has more values than columns")
        }
        let key = RowKey(table: change.table, owner: part.owner, id: change.id)
        guard let index = positions[key] ?? touch(key, lookup) else { return add(change, batchRowsTooLarge) }
        let identity = part.identity(of: change)
        if let identity {
            if repeats(change, key, index, identity) { return }
            if applied.isOvertaken(key, at: results.count) { return add(change, .conflict) }
        }
        switch decide(change, on: rows[index]) {
        case .keep(let status):
            add(change, status)
            if case .applied = status { dropValues(of: change, key, index) }
        case .write(let values, let isCreation, let isAltered):
            let isDeleted = isDeleted(change, rows[index].row, isCreation: isCreation)
            let (old, new) = (rows[index].usage, OwnerUsage(of: values, isDeleted: isDeleted))
            if let quota, let message = quota.refusal(of: new, over: old, in: usage) {
                return add(change, .refused(.quotaExceeded, message: message))
            }
            usage = usage.replacing(old, with: new)
            try write(change, key, index, values: values, isCreation: isCreation, isAltered: isAltered)
        }
        if let identity, let status = results.last?.status { applied.record(identity, status) }
    }

    /// Looks up a row that no change has touched; `nil` for one that comes after the limit.
    private mutating func touch(_ key: RowKey, _ lookup: (RowKey) -> OrderedRow?) -> Int? {
        guard !touched.isFull else { return nil }
        let row = lookup(key)
        let values =
            row.map { EditedValues(lifted($0.values, key.table), in: reached.tables[key.table]) }
            ?? newRow(in: key.table)
        touched.add(values.jsonSize)
        positions[key] = rows.count
        rows.append(TouchedRow(row: row, values: values))
        return rows.count - 1
    }

    /// What a creation stores that writes no column.
    private mutating func newRow(in table: Int) -> EditedValues {
        if let known = newRows[table] { return known }
        let values = EditedValues(lifted(RowValues(), table), in: reached.tables[table])
        newRows[table] = values
        return values
    }

    /// Values with all columns of the partition's schema version.
    private mutating func lifted(_ values: RowValues, _ table: Int) -> RowValues {
        let lifted = values.lifted(to: reached.tables[table])
        if lifted.bytes.count > values.bytes.count { copiedBytes += lifted.bytes.count }
        return lifted
    }

    /// Whether a row is deleted after a change that writes it.
    private func isDeleted(_ change: Change, _ old: OrderedRow?, isCreation: Bool) -> Bool {
        change.isDelete || (old?.isDeleted == true && !isCreation)
    }

    /// Whether a change with its `changeId` was applied; then it has the same result, or is refused for other content.
    private mutating func repeats(
        _ change: Change, _ key: RowKey, _ row: Int, _ identity: ChangeIdentity
    ) -> Bool {
        guard let (first, isOwn) = applied.first(under: identity.id) else { return false }
        guard first.identity.content == identity.content else {
            add(change, AppliedChanges.mismatch)
            return true
        }
        if !isOwn { repeatedResults.insert(results.count) }
        add(change, first.status)
        dropRepeat(key, row)
        return true
    }

    /// The refusal of a change to a row that comes after the limit.
    private var batchRowsTooLarge: ChangeResult.Status {
        .refused(
            .batchRowsTooLarge,
            message: "the rows of the changes before this one reach maxBatchRowBytes, \(part.maxBatchRowBytes): "
                + "send this change again in another batch")
    }

    /// The results and rows of the part.
    ///
    /// An atomic part with a conflict or a refusal writes nothing.
    mutating func finish(
        row lookup: (RowKey) -> OrderedRow?
    ) -> (
        results: [ChangeResult], written: [WrittenRow], applied: [AppliedChange], usage: OwnerUsage,
        timeStamp: TimeStamp, touchedBytes: Int, copiedBytes: Int
    ) {
        if part.isAtomic, hasRejection { abort() }
        let written = writtenRows()
        if mustSettle { settleHeld() }
        if hasRejection { locateShownRows(lookup) }
        return (results, written, applied.own, usage, timeStamp, touched.size, copiedBytes)
    }

    /// The rows that the part wrote, with their values, by timeStamp.
    private mutating func writtenRows() -> [WrittenRow] {
        var all: [WrittenRow] = []
        all.reserveCapacity(rows.count)
        for touched in rows {
            guard var row = touched.row, let written = touched.written else { continue }
            row.values = touched.values.values(of: part.changes)
            if touched.values.isMerged { copiedBytes += row.values.bytes.count }
            all.append(WrittenRow(row, before: written.before))
        }
        all.sort { $0.row.timeStamp < $1.row.timeStamp }
        return all
    }

    /// Discards the writes of an atomic part; changes that were applied before it keep their results.
    private mutating func abort() {
        let message = "another change of this owner in the atomic batch was refused or in conflict"
        for position in results.indices
        where !results[position].status.isRejected && !repeatedResults.contains(position) {
            results[position].status = .refused(.batchAborted, message: message)
            results[position].heldFrom = nil
        }
        (rows, positions, writes) = ([], [:], [])
        applied.discardOwn()
        usage = usageBefore
        timeStamp = timeStampBefore
    }

    /// Sets the row's locator after the part in every conflict and refusal, but for rows that were not read.
    private mutating func locateShownRows(_ lookup: (RowKey) -> OrderedRow?) {
        for (position, result) in results.enumerated()
        where result.status.isRejected && !result.status.isBatchRowsTooLarge {
            let key = RowKey(table: result.table, owner: part.owner, id: result.id)
            let row = positions[key].map { rows[$0].row } ?? lookup(key)
            results[position].locator = row.map(RowLocator.init(of:))
        }
    }

    /// Sets `heldFrom` of every result that wrote a row to its value after the part's last change (I6).
    private mutating func settleHeld() {
        for write in writes { results[write.result].heldFrom = rows[write.row].written?.heldFrom }
    }

    /// A delete of a tombstone or an absent row is applied without storing its values, which its device has.
    private mutating func dropValues(of change: Change, _ key: RowKey, _ index: Int) {
        guard change.values.writesAny else { return }
        dropped.insert(key)
        isNotHeld(index)
    }

    /// A repeat is not stored again, and its device may have its values on top of those of the part's other changes: no version of
    /// the row that this part writes counts as held.
    private mutating func dropRepeat(_ key: RowKey, _ index: Int) {
        repeated.insert(key)
        isNotHeld(index)
    }

    /// The device may have other columns than a row that this part wrote; a tombstone has none that matter.
    private mutating func isNotHeld(_ index: Int) {
        guard rows[index].written != nil else { return }
        mustSettle = true
        rows[index].written?.heldFrom = nil
        if part.isExactByColumns, rows[index].row?.isDeleted == true { return }
        rows[index].row?.isExact = false
    }

    private enum Decision {
        case keep(ChangeResult.Status)
        /// The row gets these values and a new timeStamp.
        case write(EditedValues, isCreation: Bool, isAltered: Bool)
    }

    private mutating func decide(_ change: Change, on touched: TouchedRow) -> Decision {
        guard let row = touched.row else {
            if change.isDelete { return .keep(.applied(timeStamp: .zero, version: 0, knowledgeID: nil)) }
            guard change.base == .zero else {
                return .keep(.refused(.rowGone, message: "base is \(change.base), but there is no such row"))
            }
            return creation(change)
        }
        let policy = schema.tables[change.table].policy
        let isForLiveRow = part.isForLiveRow(change)
        if policy == .checkBase || change.ifBase, !(isForLiveRow && row.isDeleted),
            !row.isCurrent(change.base, for: part.device)
        {
            return .keep(.conflict)
        }
        if part.mustBeUnchanged(change), change.base != row.timeStamp { return .keep(.conflict) }
        if row.isDeleted {
            if change.isDelete {
                return .keep(
                    .applied(timeStamp: row.timeStamp, version: row.version, knowledgeID: row.knowledgeID))
            }
            // Not one that the device has edited unseen.
            let isOwn = row.writer == part.device && row.isExact
            if change.base == row.timeStamp || isForLiveRow && isOwn { return creation(change) }
        } else if policy == .lastWriteWins, !change.isDelete, row.writer != part.device,
            updatedAt(of: change) < row.updatedAt
        {
            return .keep(.conflict)
        }
        let values = merged(change, into: touched.values)
        // A row that is above the limit, which may be lower than before, can still be made smaller.
        if values.jsonSize > touched.values.jsonSize, let refusal = refusal(ofSizeOf: values) { return refusal }
        return .write(values, isCreation: false, isAltered: change.isAltered)
    }

    /// The newest change is not in `results` yet, which has one result for each.
    private func merged(_ change: Change, into values: EditedValues) -> EditedValues {
        values.merged(with: change.values, at: results.count, in: reached.tables[change.table])
    }

    /// The refusal of a row that is too large for a record of the log; `nil` for all others.
    private func refusal(ofSizeOf values: EditedValues) -> Decision? {
        guard values.jsonSize > maximumRowBytes else { return nil }
        let message = "the row would have \(values.jsonSize) bytes, at most \(maximumRowBytes) are allowed"
        return .keep(.refused(.rowTooLarge, message: message))
    }

    /// The values of a created or revived row (I8): the value sent, else the declared default, else NULL.
    private mutating func creation(_ change: Change) -> Decision {
        let values = merged(change, into: newRow(in: change.table))
        let columns = reached.tables[change.table].columns
        var isAltered = change.isAltered
        for index in columns.indices where !values.isMerged(index) {
            let column = columns[index]
            if column.defaultValue != nil {
                // The device does not know columns of versions later than the part's.
                if index < schema.tables[change.table].columns.count { isAltered = true }
            } else if !column.isNullable {
                return .keep(.refused(.missingValue, message: "a new row needs \(column.name)"))
            }
        }
        return refusal(ofSizeOf: values) ?? .write(values, isCreation: true, isAltered: isAltered)
    }

    private mutating func write(
        _ change: Change, _ key: RowKey, _ index: Int, values: EditedValues, isCreation: Bool, isAltered: Bool
    ) throws(OrderingMachine.Pause) {
        let (old, earlier) = (rows[index].row, rows[index].written)
        guard let next = clock.next(after: timeStamp, logTime: part.logTime) else { throw .timeStampsExhausted }
        timeStamp = next
        let table = schema.tables[change.table]
        let updatedAt = rowUpdatedAt(change, over: old, policy: table.policy)
        var isAltered = isAltered
        let writesAll = change.values.writesAll(table.columns.count)
        let hasLaterColumns = reached.tables[change.table].columns.count > table.columns.count
        let isFull = writesAll && (isCreation || !hasLaterColumns || part.replacesLaterColumns)
        if !repeated.isEmpty, repeated.contains(key) { isAltered = true }
        // The device may still have the tombstone's other columns of a revived row, unless the change writes every
        // column.
        if isCreation, old != nil, !isFull { isAltered = true }
        let isDeleted = isDeleted(change, old, isCreation: isCreation)
        // Of the columns that its version has.
        var isExact = writesAll && !isAltered
        // A delete leaves nothing that could differ; who edited a tombstone does not know that the row is deleted.
        if isDeleted, part.isExactByColumns { isExact = change.isDelete }
        if table.policy == .lastWriteWins, change.updatedAt != updatedAt {
            isAltered = true
            if !part.isExactByColumns { isExact = false }
        }
        let row = OrderedRow(
            key: key, knowledgeID: old?.knowledgeID ?? change.knowledgeID, timeStamp: next,
            version: (old?.version ?? 0) + 1,
            isDeleted: isDeleted, createdAt: old?.createdAt ?? part.logTime, updatedAt: updatedAt, writer: part.device,
            writerBatch: part.batch, isExact: isExact,
            othersTimeStamp: old.map { $0.writer == part.device ? $0.othersTimeStamp : $0.timeStamp } ?? .zero,
            values: old?.values ?? RowValues())
        if earlier != nil { mustSettle = true }
        let before = earlier?.before ?? old?.timeStamp ?? .zero
        // A change that writes every column replaces all earlier values.
        if isFull {
            if !dropped.isEmpty { dropped.remove(key) }
        } else if earlier?.isAltered == true || (!dropped.isEmpty && dropped.contains(key)) {
            isAltered = true
        }
        let heldFrom: TimeStamp? = isAltered ? nil : isFull ? .zero : before
        let written = Written(before: before, isAltered: isAltered, heldFrom: heldFrom)
        rows[index] = TouchedRow(row: row, values: values, written: written)
        writes.append((results.count, index))
        let status: ChangeResult.Status =
            row.isDeleted && !change.isDelete
            ? .deleted(timeStamp: next, version: row.version, knowledgeID: row.knowledgeID)
            : .applied(timeStamp: next, version: row.version, knowledgeID: row.knowledgeID)
        add(change, status, heldFrom: heldFrom)
    }

    private mutating func add(_ change: Change, _ status: ChangeResult.Status, heldFrom: TimeStamp? = nil) {
        if status.isRejected { hasRejection = true }
        results.append(
            ChangeResult(index: change.index, table: change.table, id: change.id, status: status, heldFrom: heldFrom))
    }

    /// The change's `updatedAt`, at most the log's time; the log's time when missing.
    private func updatedAt(of change: Change) -> Int64 {
        min(change.updatedAt ?? part.logTime, part.logTime)
    }

    /// Under lastWriteWins a row keeps the greatest `updatedAt`, across deletes and revivals.
    private func rowUpdatedAt(_ change: Change, over old: OrderedRow?, policy: Policy) -> Int64 {
        guard policy == .lastWriteWins else { return part.logTime }
        return max(updatedAt(of: change), old?.updatedAt ?? .min)
    }
}
