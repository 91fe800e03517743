import DeviceModel
import FanOutLink
import SyncModel

/// Every version of every row, by owner, and what a pull must return of them.
final class StreamModel: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    struct Version {
        let row: OrderedRow
        /// As written, and as under later schema versions: a stream that is rebuilt has the columns that were added since.
        let spellings: [[UInt8]]
        /// The timeStamp of the next version.
        var replacedAt: TimeStamp?

        var largestSize: Int { spellings.reduce(0) { max($0, $1.count) } }

        func isNewest(at head: TimeStamp) -> Bool {
            row.timeStamp <= head && replacedAt.map { $0 > head } ?? true
        }
    }

    let world: World
    private var versions: [SyncID: [Version]] = [:]
    private var newest: [RowKey: Int] = [:]

    init(_ world: World) { self.world = world }

    func add(_ rows: [OrderedRow]) {
        for row in rows {
            if let old = newest[row.key] { versions[row.key.owner]?[old].replacedAt = row.timeStamp }
            newest[row.key] = versions[row.key.owner]?.count ?? 0
            versions[row.key.owner, default: []].append(Version(row: row, spellings: spellings(of: row)))
        }
    }

    private func spellings(of row: OrderedRow) -> [[UInt8]] {
        var spellings: [[UInt8]] = []
        var last = 0
        for schema in world.scenario.versions where schema.tables.indices.contains(row.key.table) {
            let table = schema.tables[row.key.table]
            guard table.columns.count >= row.values.count, table.columns.count > last else { continue }
            last = table.columns.count
            var later = row
            later.values = RowValues(of: row, in: table)
            spellings.append(RowText.json(of: later, schema))
        }
        return spellings
    }

    func versions(of owner: SyncID) -> [Version] { versions[owner] ?? [] }

    /// The version of an owner's row with this JSON.
    func version(_ json: [UInt8], of owner: SyncID) -> Version? {
        versions[owner]?.first { $0.spellings.contains(json) }
    }

    func head(of owner: SyncID) -> TimeStamp { versions[owner]?.last?.row.timeStamp ?? .zero }

    /// The rows of an owner at a head, with tombstones.
    func rows(of owner: SyncID, at head: TimeStamp) -> [OrderedRow] {
        versions[owner]?.filter { $0.isNewest(at: head) }.map(\.row) ?? []
    }

    /// Whether a result has exactly this row.
    func has(_ row: OrderedRow) -> Bool {
        versions[row.key.owner]?.contains { $0.row.timeStamp == row.timeStamp && $0.row == row } ?? false
    }

    func row(_ key: RowKey) -> OrderedRow? { newest[key].flatMap { versions[key.owner]?[$0].row } }

    func check(_ request: PagePull, _ pages: [OwnerPage]) {
        world.audit.catchUp()
        let pulls = Dictionary(request.owners.map { ($0.owner, $0) }) { first, _ in first }
        var count = 0
        for page in pages {
            guard let pull = pulls[page.owner] else {
                return world.fail(.ownersApart, "a page of \(page.owner), which was not asked for")
            }
            switch page.content {
            case .historyChanged:
                if pull.knowledge.requiredHead <= head(of: page.owner) {
                    world.fail(
                        .drainedEqual, "\(page.owner) must resync, though the log has what the device has seen")
                }
            case .rows(let rows):
                check(rows, pull)
                count += rows.count
            }
        }
        let sizes = pages.compactMap { page -> Int? in
            if case .rows(let rows) = page.content, rows.count > 0 { rows.json.count } else { nil }
        }
        // With the commas between the owners.
        let size = sizes.reduce(sizes.count - 1, +)
        if count > 1, size > request.maximumBytes {
            world.fail(
                .exactPull, "a page of \(count) rows has \(size) bytes, at most \(request.maximumBytes) were asked for")
        }
        if count > request.limit { world.fail(.exactPull, "\(count) rows, at most \(request.limit) were asked for") }
    }

    private func check(_ page: OwnerRows, _ pull: OwnerPull) {
        let owner = pull.owner
        guard page.head <= head(of: owner) else {
            return world.fail(.exactPull, "the stream of \(owner) is at \(page.head), after its newest row")
        }
        guard page.head >= pull.requiredHead else {
            return world.fail(
                .drainedEqual, "the page of \(owner) is from a stream at \(page.head), not at \(pull.requiredHead)")
        }
        let known = pull.knowledge
        let all = (versions[owner] ?? []).filter { $0.isNewest(at: page.head) }
        let due = all.filter { $0.row.timeStamp > known[$0.row.knowledgeID] && !pull.held.contains($0.row.timeStamp) }
        let sent = due.prefix(page.count)
        guard Self.isJSON(page.json, of: sent), page.hasMore ? page.count < due.count : page.count == due.count else {
            return world.fail(
                .exactPull,
                "\(owner) at \(page.head), more \(page.hasMore), held \(pull.held.sorted()), knowledge \(known): "
                    + "\(page.count) rows of \(due.map(\.row.timeStamp)) are \(String(decoding: page.json, as: UTF8.self))"
            )
        }
        checkEntries(
            page, known, all: all.map(\.row), sent: sent.map(\.row), rest: due.dropFirst(page.count).map(\.row))
    }

    /// Whether JSON has these rows, with commas between them.
    private static func isJSON(_ json: [UInt8], of rows: some Sequence<Version>) -> Bool {
        var rest = json[...]
        for row in rows {
            if rest.startIndex > 0 {
                guard rest.popFirst() == UInt8(ascii: ",") else { return false }
            }
            let found = row.spellings.first {
                rest.starts(with: $0) && [nil, UInt8(ascii: ",")].contains(rest.dropFirst($0.count).first)
            }
            guard let found else { return false }
            rest = rest.dropFirst(found.count)
        }
        return rest.isEmpty
    }

    /// The vector never falls, covers what was sent, and on a cut page passes no row that was not.
    private func checkEntries(
        _ page: OwnerRows, _ known: OwnerKnowledge, all: [OrderedRow], sent: [OrderedRow], rest: [OrderedRow]
    ) {
        let last = sent.last
        var after = OwnerKnowledge(floor: page.floor ?? known.givenFloor)
        if let floor = page.floor, floor < known.floor {
            return world.fail(.drainedEqual, "the floor falls from \(known.floor) to \(floor)")
        }
        if let floor = page.floor, page.hasMore, floor > last?.timeStamp ?? .zero {
            return world.fail(.drainedEqual, "the floor, \(floor), passes the last row sent")
        }
        for entry in page.entries { after.entries[entry.device] = entry.timeStamp }
        for (device, timeStamp) in known.entries where after[device] < timeStamp {
            return world.fail(.drainedEqual, "the entry of \(device) falls from \(timeStamp) to \(after[device])")
        }
        for row in rest where row.timeStamp <= after[row.knowledgeID] {
            return world.fail(
                .drainedEqual,
                "the entry of \(row.knowledgeID), \(after[row.knowledgeID]), passes a row that was not sent")
        }
        for (device, timeStamp) in after.entries where timeStamp > known[device] {
            if page.hasMore, timeStamp > last?.timeStamp ?? .zero {
                return world.fail(.drainedEqual, "the entry of \(device), \(timeStamp), passes the last row sent")
            }
            guard all.contains(where: { $0.knowledgeID == device && $0.timeStamp == timeStamp }) else {
                return world.fail(.drainedEqual, "the entry of \(device), \(timeStamp), is not a row's")
            }
        }
        for row in sent where after[row.knowledgeID] < row.timeStamp {
            return world.fail(
                .drainedEqual,
                "the entry of \(row.knowledgeID), \(after[row.knowledgeID]), is below the row that was sent")
        }
        guard !page.hasMore else { return }
        for row in all where row.timeStamp > after[row.knowledgeID] {
            return world.fail(
                .drainedEqual, "after a drained page the entry of \(row.knowledgeID) is below its newest row")
        }
    }
}
