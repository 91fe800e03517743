import Gateway
import SyncModel

/// The children that a record has after it was deleted.
extension CrudDelete {
    /// The most transactions of one request; the next request continues.
    private static let maximumBatches = 64

    /// Reassigns children of a deleted record: those that others made while the delete was on its way, or before it was repeated.
    ///
    /// Returns once none is left that the request has a target for: a client that gets 204 forgets the record and its targets.
    ///
    /// - Parameter seen: up to where there are none; `nil` where that is not known.
    func reassignOthers(_ id: RowID, _ targets: Targets, since seen: TimeStamp?, _ head: TimeStamp) async throws {
        var (leastHead, limit) = (head, limit)
        var (changed, batches, reassigned) = (0, 0, 0)
        while true {
            let found = try await references.find(
                id, by: Set(targets.keys), since: seen, limit: self.limit, leastHead: leastHead)
            var left = found.rows[...]
            var isOld = false
            while !left.isEmpty, !isOld {
                guard batches < Self.maximumBatches else { throw Self.unfinished(reassigned) }
                // Each batch writes them, too.
                let rowsOfTargets = try await read(targets, above: id, leastHead)
                let next = left.prefix(min(limit, fitting(left, besides: rowsOfTargets)))
                var batch = FaceBatch(isAtomic: true)
                try add(next, targets, rowsOfTargets, to: &batch)
                switch try await submit(batch, seen: found.head) {
                case .changed(let newer):
                    changed += 1
                    guard changed < Self.maximumAttempts else { throw Self.busy }
                    leastHead = max(leastHead, newer)
                    isOld = true
                case .tooLarge(let fitting):
                    guard next.count > 1 else { throw tooLarge }
                    limit = max(1, min(fitting, next.count - 1))
                case .reassigned(_, let newer):
                    leastHead = max(leastHead, newer)
                    left = left.dropFirst(next.count)
                    (batches, reassigned) = (batches + 1, reassigned + next.count)
                case .done, .repeated: return
                }
            }
            if !isOld, found.total <= found.rows.count { return }
        }
    }

    /// How many of some children one batch may change besides the rows that they go to: the row that reaches the limit is changed.
    ///
    /// A batch that ordering refuses takes the device's rate, too.
    private func fitting(_ children: ArraySlice<CrudReferences.Row>, besides targets: [RowID: FaceRow]) -> Int {
        let sizes = targets.values.map { row in row.values(in: table.table).reduce(0) { $0 + $1.count } }
        let space = rows.session.limits.outcome.maxBatchRowBytes - sizes.reduce(0, +)
        var bytes = 0
        for (count, child) in children.enumerated() {
            if count > 0, bytes >= space { return count }
            bytes += child.bytes
        }
        return children.count
    }

    private static func unfinished(_ count: Int) -> Problem {
        Problem(.notReady, "\(count) children were reassigned, and others are left: send the request again")
    }
}
