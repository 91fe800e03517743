import FanOutLink
import SyncModel

/// Collects the rows that a response shows with the results of a batch: owner after owner, each row once, within the size
/// of a page.
///
/// Rows that exceed it are read with further requests, each from the first row that the one before left out.
struct ShownRows: Sendable {
    private let caller: Caller
    /// Whether rows are read at all, or only found to be missing.
    private let isReading: Bool
    /// What the next owner's part may add: rows of changes before the first row that was left out.
    private var window: RowWindow
    /// By the index of the first change that shows the row.
    private(set) var rows: [Int: [UInt8]] = [:]

    init(for caller: Caller, from index: Int = 0, maximumBytes: Int) {
        self.caller = caller
        isReading = true
        window = RowWindow(from: index, maximumBytes: maximumBytes)
    }

    /// No rows, to learn whether there are any before their size is reserved.
    init(noneFor caller: Caller) {
        self.caller = caller
        isReading = false
        window = RowWindow(from: 0, maximumBytes: 0)
    }

    /// The index of the first change whose row was left out; `nil` when all are here.
    var end: Int? { window.end == .max ? nil : window.end }

    /// The rows to read with an owner's part; `nil` if the caller may not read them.
    func window(for owner: SyncID) -> RowWindow? {
        guard isReading else { return nil }
        return caller.mayRead(owner) ? window : nil
    }

    /// Moves the rows of a part here, as many as fit in the order of the changes.
    mutating func take(from part: inout BatchOutcome.Part) {
        part.mayRead = caller.mayRead(part.owner)
        guard part.mayRead else { return }
        let found = part.outcome.rows
        part.outcome.rows = [:]
        for (index, first) in part.showing
        where index == first && index >= window.from && index < window.end && found[index] == nil {
            window.end = index
        }
        rows.merge(found) { $1 }
        var bytes = 0
        for (index, row) in rows.sorted(by: { $0.key < $1.key }) {
            bytes += row.count
            if index >= window.end || (index != window.from && bytes > window.maximumBytes) {
                window.end = min(window.end, index)
                rows[index] = nil
            }
        }
    }
}

extension PartOutcome {
    /// For each conflict and refusal of a row that exists, the index of the first change of the part that shows this row.
    var showing: [Int: Int] {
        struct Row: Hashable {
            let table: Int
            let id: RowID
        }
        var first: [Row: Int] = [:]
        var showing: [Int: Int] = [:]
        for result in results where result.locator != nil {
            let row = Row(table: result.table, id: result.id)
            let index = first[row] ?? result.index
            first[row] = index
            showing[result.index] = index
        }
        return showing
    }
}
