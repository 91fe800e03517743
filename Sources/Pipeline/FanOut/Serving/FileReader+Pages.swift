import FanOutLink
import SyncModel

/// How much a page may still take, over all its owners.
struct PageBudget: Sendable {
    private var rows: Int
    private var bytes: Int
    private var isEmpty: Bool
    private var isFull = false

    /// - Parameter isContinued: whether the page holds rows already, so that it need not take another one.
    init(rows: Int, bytes: Int, isContinued: Bool = false) {
        self.rows = isContinued ? rows : max(rows, 1)
        self.bytes = bytes
        isEmpty = !isContinued
    }

    /// Takes a row's size off, and that of a comma between rows; false when the page is full, from then on.
    ///
    /// A page takes one row whatever its size.
    mutating func take(_ size: Int) -> Bool {
        let size = isEmpty ? size : size + 1
        guard !isFull, rows > 0, isEmpty || size <= bytes else {
            isFull = true
            return false
        }
        rows -= 1
        bytes -= size
        isEmpty = false
        return true
    }
}

extension FileReader {
    /// Reads an owner's part of a page, within a snapshot (I6, I7).
    ///
    /// - Parameter known: the owner's heads as memory has them, which may be older than the snapshot.
    func rows(of pull: OwnerPull, known: OwnerHeads, budget: inout PageBudget) throws -> OwnerRows {
        let heads = try heads(of: pull.owner, known: known)
        let plan = PullPlan(pull.knowledge, heads: heads)
        defer { cursors.reset() }
        var merge = try RowMerge(plan, cursors)
        var rows = OwnerRows(head: heads.head)
        var passed = plan.sources.map(\.from)
        // Rows that the device holds, behind the last one sent: on a cut page they do not count as passed (I7).
        var heldBehind: [(source: Int, timeStamp: TimeStamp)] = []
        while let row = merge.current {
            if pull.held.contains(row.timeStamp) {
                heldBehind.append((row.source, row.timeStamp))
            } else {
                let isSent = try row.cursor.withJSON { json in
                    guard budget.take(json.byteCount) else { return false }
                    if rows.count > 0 { rows.json.append(UInt8(ascii: ",")) }
                    // Lent by SQLite until the cursor moves; copied here.
                    json.withUnsafeBytes { rows.json.append(contentsOf: $0) }
                    return true
                }
                guard isSent else {
                    rows.hasMore = true
                    rows.entries = plan.cutEntries(passed)
                    return rows
                }
                for held in heldBehind { passed[held.source] = held.timeStamp }
                heldBehind.removeAll(keepingCapacity: true)
                passed[row.source] = row.timeStamp
                rows.count += 1
            }
            try merge.advance()
        }
        rows.entries = plan.drainedEntries
        return rows
    }
}
