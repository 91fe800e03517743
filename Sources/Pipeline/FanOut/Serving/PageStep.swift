import FanOutLink
import Metrics
import SyncModel

/// An owner's part of a page that must be read from the file.
struct OwnerRead: Sendable {
    /// The index of the owner in the page.
    let position: Int
    let pull: OwnerPull
    let partition: ServedPartition
    let snapshot: ServedPartition.HeadSnapshot

    /// The owner's part of a page that is full before it.
    var unread: OwnerPage {
        let rows = OwnerRows(
            entries: PullPlan.asSent(pull.knowledge), head: snapshot.heads.head, hasMore: true)
        return OwnerPage(owner: pull.owner, content: .rows(rows))
    }
}

extension [OwnerRead] {
    /// Groups adjacent reads of the same file.
    var groupedByFile: [[OwnerRead]] {
        var groups: [[OwnerRead]] = []
        for read in self {
            if let last = groups.last?.last, last.partition === read.partition,
                last.snapshot.generation == read.snapshot.generation
            {
                groups[groups.count - 1].append(read)
            } else {
                groups.append([read])
            }
        }
        return groups
    }
}

/// What one turn of a reader thread reads of a page: some owners, and of the last one possibly no row yet.
///
/// Bounded by the page's limits, ``PullPlan/maximumSearches``, ``RowMerge/stepEntries`` and ``records``.
struct PageStep: Sendable {
    /// No further owner is begun after so many records: a millisecond or two.
    static let maximumRecords = 1000

    var budget: PageBudget
    /// The pages of the first owners.
    var pages: [OwnerRows] = []
    /// The timeStamp up to which all rows of the next owner were passed, when its search has to continue in another turn.
    var stoppedAt: TimeStamp?
    /// The number of records read.
    var records = 0
}

/// The remaining capacity of a page, over all its owners.
struct PageBudget: Sendable {
    private var rows: Int
    private var bytes: Int
    private var isEmpty: Bool
    private var isFull = false

    /// - Parameter isContinued: whether the page has rows already, and need not accept another one.
    init(rows: Int, bytes: Int, isContinued: Bool = false) {
        self.rows = isContinued ? rows : max(rows, 1)
        self.bytes = bytes
        isEmpty = !isContinued
    }

    /// Whether no further row is accepted, whatever its size.
    var isExhausted: Bool { isFull || rows <= 0 }

    /// Subtracts the size of a row and of the comma before it; returns false from when the page is full.
    ///
    /// An empty page accepts one row whatever its size.
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
    /// Reads the next owners of a page in one snapshot, at least one or a part of one.
    ///
    /// - Parameters:
    ///   - passed: where the previous step stopped in the first owner's rows.
    ///   - budget: what is left of the page.
    ///   - compared: counts the devices that are looked at.
    func step(
        _ reads: ArraySlice<OwnerRead>, passed: TimeStamp, budget: PageBudget, compared: Counter
    ) throws -> PageStep {
        cursors.count.records = 0
        defer { cursors.reset() }
        var step = PageStep(budget: budget)
        var passed = passed
        for read in reads {
            let isFull = step.budget.isExhausted && read.pull.held.isEmpty
            if !step.pages.isEmpty, isFull || cursors.count.records >= PageStep.maximumRecords { break }
            let rows = try rows(of: read, passed: &passed, budget: &step.budget, compared)
            guard let rows else {
                step.stoppedAt = passed
                break
            }
            step.pages.append(rows)
            passed = .zero
        }
        step.records = cursors.count.records
        return step
    }

    /// Reads an owner's rows for a page, within a snapshot (I6, I7).
    ///
    /// - Parameter passed: a timeStamp up to which no row is missing in the index by time; advanced when the step ends
    ///   before the first row.
    /// - Returns: `nil` when another step has to continue.
    private func rows(
        of read: OwnerRead, passed: inout TimeStamp, budget: inout PageBudget, _ compared: Counter
    ) throws -> OwnerRows? {
        let pull = read.pull
        let heads = try heads(of: pull.owner, known: read.snapshot.heads) {
            read.partition.committedHeads(of: pull.owner)
        }
        let plan = PullPlan(pull.knowledge, heads: heads, passed: passed, compared: compared)
        var merge = try RowMerge(plan, cursors)
        var page = PageRows(plan, pull)
        while let row = merge.current {
            if pull.held.contains(row.timeStamp) {
                page.passHeld(row)
            } else {
                let isSent = try row.cursor.withJSON { json in
                    guard budget.take(json.byteCount) else { return false }
                    page.send(row, json)
                    return true
                }
                guard isSent else { return try page.cut(self) }
            }
            try merge.advance()
        }
        if let stoppedAt = merge.suspendedAt {
            // Rows sent and rows still to be found are possibly not of one snapshot, so a page with rows ends here.
            if page.rows.count > 0 { return try page.cut(self) }
            passed = stoppedAt
            return nil
        }
        return try page.drained()
    }
}

/// The page of one owner while it is read.
private struct PageRows {
    var rows: OwnerRows
    private let plan: PullPlan
    private let maximumEntries: Int
    /// For each device its last row up to the last row sent.
    private var passed: [Int64: TimeStamp] = [:]
    private var last: TimeStamp?
    /// Held rows after the last row sent: on a cut page they do not count as passed (I7).
    private var heldBehind: [RowMerge.Row] = []

    init(_ plan: PullPlan, _ pull: OwnerPull) {
        self.plan = plan
        maximumEntries = pull.maximumEntries
        rows = OwnerRows(head: plan.heads.head)
    }

    mutating func passHeld(_ row: RowMerge.Row) { heldBehind.append(row) }

    mutating func send(_ row: RowMerge.Row, _ json: RawSpan) {
        if rows.count > 0 { rows.json.append(UInt8(ascii: ",")) }
        // Borrowed from SQLite until the cursor advances; copied here.
        json.withUnsafeBytes { rows.json.append(contentsOf: $0) }
        rows.count += 1
        passHeldBehind()
        passed[row.device] = row.timeStamp
        last = row.timeStamp
    }

    mutating func cut(_ reader: FileReader) throws -> OwnerRows {
        rows.hasMore = true
        let owner = plan.heads.number
        (rows.entries, rows.floor) = try plan.cut(passed, last: last, maximum: maximumEntries) { device in
            try reader.knowledgeID(of: device, of: owner)
        }
        return rows
    }

    mutating func drained() throws -> OwnerRows {
        passHeldBehind()
        guard plan.isScanComplete(passed) else {
            throw StreamFailure.damaged("rows of owner \(plan.heads.number) are missing in the index by time")
        }
        (rows.entries, rows.floor) = plan.drained(maximum: maximumEntries)
        return rows
    }

    private mutating func passHeldBehind() {
        for held in heldBehind { passed[held.device] = held.timeStamp }
        heldBehind.removeAll(keepingCapacity: true)
    }
}
