import SyncModel

/// The result of one change, derived from all versions of its row.
struct ExpectedDecision {
    enum Decision {
        /// Nothing is stored.
        case unchanged(ChangeResult.Status)
        /// These values are stored; a deleted row is recreated.
        case stored(RowValues, isRevived: Bool)
    }

    private let change: Change
    private let row: OrderingModel.Row?
    private let part: ChangePart
    /// Of the change's schema version.
    private let table: Table
    /// Of the partition's.
    private let columns: [Column]

    /// - Parameter row: with the columns of the partition's schema version.
    init(
        _ change: Change, on row: OrderingModel.Row?, by part: ChangePart, _ schema: Schema, _ reached: Schema
    ) {
        self.change = change
        self.row = row
        self.part = part
        table = schema.tables[change.table]
        columns = reached.tables[change.table].columns
    }

    var decision: Decision {
        guard let row else {
            if change.isDelete { return .unchanged(.applied(timeStamp: .zero, version: 0, knowledgeID: nil)) }
            return change.base > .zero ? .unchanged(.refused(.rowGone, message: "")) : created
        }
        let hasSeenOthers = row.versions.allSatisfy { $0.timeStamp <= change.base || $0.writer == part.device }
        let isCurrent = hasSeenOthers && change.base <= row.state.timeStamp
        let isConditional = table.policy == .checkBase || change.ifBase
        let isOpenTombstone = row.state.isDeleted && change.isForLiveRow
        if isConditional, !isOpenTombstone, !isCurrent { return .unchanged(.conflict) }
        if change.ifUnchanged, change.base != row.versions.last?.timeStamp { return .unchanged(.conflict) }
        if row.state.isDeleted {
            if change.isDelete {
                return .unchanged(
                    .applied(
                        timeStamp: row.state.timeStamp, version: row.state.version, knowledgeID: row.state.knowledgeID))
            }
            // Only a device that has seen the tombstone recreates the row.
            let isOwn = row.versions.last.map { $0.writer == part.device && $0.isDelete } ?? false
            if change.base == row.state.timeStamp || isOpenTombstone && isOwn { return created }
        } else if table.policy == .lastWriteWins, !change.isDelete, row.state.writer != part.device,
            editTime < row.state.updatedAt
        {
            return .unchanged(.conflict)
        }
        return .stored(row.state.values.merged(with: change.values), isRevived: false)
    }

    /// The row that a change creates.
    private var created: Decision {
        var values = RowValues()
        let sent = change.values.ranges
        for (index, column) in columns.enumerated() {
            if index < sent.count, !sent[index].isEmpty {
                values.append(change.values.bytes[sent[index]])
            } else if column.isRequired {
                return .unchanged(.refused(.missingValue, message: ""))
            } else {
                values.append(column.defaultValue ?? Array("null".utf8))
            }
        }
        return .stored(values, isRevived: true)
    }

    private var editTime: Int64 { min(change.updatedAt ?? part.logTime, part.logTime) }

    /// The row after the change.
    func newState(_ values: RowValues, at timeStamp: TimeStamp, isRevived: Bool) -> OrderedRow {
        let old = row?.state
        var updatedAt = part.logTime
        if table.policy == .lastWriteWins { updatedAt = max(editTime, old?.updatedAt ?? editTime) }
        return OrderedRow(
            key: RowKey(table: change.table, owner: part.owner, id: change.id),
            knowledgeID: old?.knowledgeID ?? change.knowledgeID, timeStamp: timeStamp, version: (old?.version ?? 0) + 1,
            isDeleted: change.isDelete || (old?.isDeleted ?? false) && !isRevived,
            createdAt: old?.createdAt ?? part.logTime, updatedAt: updatedAt, writer: part.device,
            writerBatch: part.batch, isExact: false, othersTimeStamp: .zero, values: values)
    }
}
