import FanOutLink
import SyncModel

/// The rows that outcomes show with conflicts and refusals.
extension StreamModel {
    /// Checks the rows of a part's outcome, as a fan-out returned it.
    ///
    /// - Parameter before: the head of the fan-out's stream before the request; its rows are not older.
    func check(
        _ outcome: PartOutcome, of owner: SyncID, in window: RowWindow?, notBefore before: TimeStamp
    ) {
        world.audit.catchUp()
        guard let window else {
            if !outcome.rows.isEmpty { world.fail(.ownersApart, "rows of \(owner) were read, though none may be") }
            return
        }
        var seen: Set<RowKey> = []
        var bytes = 0
        var isCut = false
        for result in outcome.results where result.index < window.end {
            guard let locator = result.locator else { continue }
            let key = RowKey(table: result.table, owner: owner, id: result.id)
            guard seen.insert(key).inserted, result.index >= window.from else { continue }
            guard let row = outcome.rows[result.index] else {
                if !isCut, result.index == window.from || bytes + largest(key, locator.timeStamp) <= window.maximumBytes
                {
                    return world.fail(.exactPull, "the row of conflict \(result.index) of \(owner) is missing")
                }
                isCut = true
                continue
            }
            bytes += row.count
            if isCut || result.index != window.from && bytes > window.maximumBytes {
                return world.fail(.exactPull, "the row of conflict \(result.index) of \(owner) is not in the window")
            }
            check(row, of: key, notBefore: max(locator.timeStamp, result.index < window.from ? .zero : before))
        }
        if outcome.rows.keys.contains(where: { $0 < window.from || $0 >= window.end }) {
            world.fail(.exactPull, "rows of conflicts outside the window of \(owner)")
        }
    }

    /// Checks that a row is a version of the row with a key, and was the newest at a head or later.
    func check(_ json: [UInt8], of key: RowKey, notBefore head: TimeStamp) {
        guard let version = version(json, of: key.owner) else {
            let owner = world.scenario.owners.first { version(json, of: $0) != nil }
            let text = String(decoding: json, as: UTF8.self)
            if let owner {
                return world.fail(.ownersApart, "the row of \(key.owner) is shown as one of \(owner): \(text)")
            }
            return world.fail(.exactPull, "no version of \(key.id) of \(key.owner) is \(text)")
        }
        guard version.row.key == key else {
            return world.fail(.exactPull, "\(version.row.key.id) of \(key.owner) is shown instead of \(key.id)")
        }
        if let replaced = version.replacedAt, replaced <= head {
            world.fail(
                .exactPull,
                "\(key.id) of \(key.owner) is shown at \(version.row.timeStamp), though the stream at \(head) has \(replaced)"
            )
        }
    }

    /// The size of the largest version of a row from a timeStamp on.
    func largest(_ key: RowKey, _ timeStamp: TimeStamp) -> Int {
        versions(of: key.owner).reduce(0) { size, version in
            version.row.key == key && version.row.timeStamp >= timeStamp ? max(size, version.largestSize) : size
        }
    }
}
