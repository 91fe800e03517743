import DeviceModel
import SyncModel

/// Checks the rows that a device is shown with the conflicts and refusals of a batch: on the page with the results, and on
/// the pages that follow it.
struct ShownRows {
    private let world: World
    /// The rows of the batch's changes.
    private let keys: [RowKey]
    private let readable: Set<SyncID>
    /// Each row that exists after the batch, with its timeStamp then; `nil` where the batch has no number.
    private let expected: [Int: (key: RowKey, timeStamp: TimeStamp)]?
    /// The first change that shows a row.
    private var first: [RowKey: Int] = [:]
    /// The indexes whose rows were left out so far.
    private var leftOut: [Int] = []

    /// - Parameter readable: the owners that the caller may read.
    init(_ edits: [Edit], _ batch: Int64?, of device: Device, readable: Set<SyncID>, _ world: World) {
        self.world = world
        self.readable = readable
        keys = edits.map { RowKey(table: $0.table, owner: $0.owner, id: RowID(unchecked: $0.id)) }
        expected = batch.map { batch in
            let owners = Set(edits.map(\.owner) + [device.caller])
            let outcomes = owners.reduce(into: [SyncID: OrderingModel.PartOutcome]()) { outcomes, owner in
                let part = OrderingModel.PartName(key: DeviceKey(owner: owner, device: device), batch: batch)
                outcomes[owner] = world.audit.model.outcomes[part]
            }
            // With other content, the number may be new to an owner for whom the first batch had no part.
            let own = outcomes.values.filter { $0.contentHash == outcomes[device.caller]?.contentHash }
            return own.reduce(into: [:]) { shown, outcome in shown.merge(outcome.shown) { $1 } }
        }
    }

    /// Checks the page with the results.
    mutating func check(_ results: [Answer.Result], rowsFrom: Int?) {
        var bytes = 0
        for (index, result) in results.enumerated() {
            let key = keys[index]
            guard result.status == "conflict" || result.status == "refused" else {
                if result.shown != .leftOut { fail("result \(index), \(result.status), shows a row") }
                continue
            }
            switch result.shown {
            case .none:
                if expected?[index] != nil, readable.contains(key.owner) { fail("result \(index) shows no row") }
            case .row(let json):
                bytes += json.utf8.count
                guard first.updateValue(index, forKey: key) == nil else { return fail("\(key.id) is shown twice") }
                if index != 0, bytes > world.scenario.pageBytes { fail("the rows of conflicts exceed a page") }
                if let rowsFrom, index >= rowsFrom {
                    fail("the row of result \(index) is shown, from \(rowsFrom) on none is")
                }
                check(json, index)
            case .sameAs(let other):
                if first[key] != other { fail("result \(index) refers to the row of \(other)") }
            case .leftOut:
                guard first.updateValue(index, forKey: key) == nil else {
                    return fail("result \(index) refers to no row")
                }
                leftOut.append(index)
            }
        }
        guard world.violation == nil else { return }
        // The remaining rows of a batch without a number cannot be requested.
        if expected != nil, rowsFrom != leftOut.first {
            return fail(
                "rows are left out from \(leftOut.first.map(String.init) ?? "none"), not from \(rowsFrom ?? -1)")
        }
        // The outcome of such a batch may be forgotten before its rows are read.
        if expected != nil, let next = leftOut.first { checkIsFull(bytes, next) }
    }

    /// Checks a page of further rows.
    mutating func check(_ rows: [(result: Int, json: String)], from: Int, rowsFrom: Int?) {
        var bytes = 0
        for (index, json) in rows {
            bytes += json.utf8.count
            guard leftOut.first == index else { return fail("the row of result \(index) comes before others") }
            leftOut.removeFirst()
            if index != from, bytes > world.scenario.pageBytes { fail("the rows of conflicts exceed a page") }
            check(json, index)
        }
        guard world.violation == nil else { return }
        if rows.first?.result != from { return fail("the rows from \(from) on begin with another") }
        if rowsFrom != leftOut.first { return fail("\(leftOut) are left out, not from \(rowsFrom ?? -1) on") }
        if let next = leftOut.first { checkIsFull(bytes, next) }
    }

    /// Whether further rows are to be requested.
    var next: Int? { expected == nil ? nil : leftOut.first }

    private func check(_ json: String, _ index: Int) {
        let key = keys[index]
        guard readable.contains(key.owner) else {
            return world.fail(.ownersApart, "a row of \(key.owner) is shown with result \(index)")
        }
        world.streams.check(Array(json.utf8), of: key, notBefore: expected?[index]?.timeStamp ?? .zero)
    }

    private func checkIsFull(_ bytes: Int, _ next: Int) {
        let least = expected?[next]?.timeStamp ?? .zero
        if bytes + world.streams.largest(keys[next], least) <= world.scenario.pageBytes {
            fail("the row of result \(next) is left out, though the page has \(bytes) bytes")
        }
    }

    private func fail(_ what: String) { world.fail(.exactPull, "rows of conflicts: \(what)") }
}
