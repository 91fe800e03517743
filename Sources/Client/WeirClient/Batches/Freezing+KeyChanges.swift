/// An atomic batch of rows whose keys were changed.
extension Freezing {
    /// The changes of rows that are connected by changes of keys.
    struct EncodedGroup {
        let rows: [(table: CapturedTable, key: SQLValue, json: [UInt8], isDeletion: Bool)]
        let source: KeyChanges.Group
    }

    /// The groups whose changes can all be sent and fit into one batch.
    ///
    /// Where fewer than two changes are left of a group, or more than a batch may have, its edits become ordinary ones.
    mutating func sendableGroups() throws -> [EncodedGroup] {
        var groups: [EncodedGroup] = []
        next: for group in try KeyChanges.groups(in: database) {
            var rows: [(table: CapturedTable, key: SQLValue, json: [UInt8], isDeletion: Bool)] = []
            for member in group.members {
                guard let table = tables.first(where: { $0.number == member.table }),
                    let server = schema.table(for: table.name)
                else { continue next }
                switch try encode(member.key, of: table, as: server) {
                case .held: continue next
                case .nothing: break
                case .change(let json, let isDeletion): rows.append((table, member.key, json, isDeletion))
                }
            }
            if rows.count < 2 || rows.count > limits.changes || body.bytes(of: rows.map(\.json)) > limits.bytes {
                try KeyChanges.remove(group, in: database)
            } else {
                groups.append(EncodedGroup(rows: rows, source: group))
            }
        }
        return groups
    }

    /// Makes the batch one of as many groups as fit.
    mutating func add(_ groups: [EncodedGroup]) throws {
        var rows: [(table: CapturedTable, key: SQLValue, json: [UInt8], isDeletion: Bool)] = []
        for group in groups {
            let more = rows + group.rows
            if more.count > limits.changes || body.bytes(of: more.map(\.json)) > limits.bytes { break }
            rows = more
            try KeyChanges.remove(group.source, in: database)
        }
        let ranks = Dictionary(
            tables.enumerated().map { ($1.number, $0) }, uniquingKeysWith: { first, _ in first })
        func order(_ row: (table: CapturedTable, key: SQLValue, json: [UInt8], isDeletion: Bool)) -> Int {
            let rank = ranks[row.table.number] ?? 0
            return row.isDeletion ? 2 * tables.count - rank : rank
        }
        body.isAtomic = true
        for row in rows.sorted(by: { order($0) < order($1) }) {
            try move(row.key, of: row.table, to: body.changes, isDeletion: row.isDeletion)
            body.append(row.json)
        }
    }
}
