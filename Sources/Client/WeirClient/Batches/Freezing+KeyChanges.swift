/// An atomic batch of rows whose keys were changed.
extension Freezing {
    /// Makes the batch, which is empty, one of as many groups as fit.
    ///
    /// Where fewer than two changes are left of a group, or more than a batch may have, its edits become ordinary ones. No more groups
    /// are looked at than a batch may have changes, since all of it is one transaction.
    ///
    /// - Returns: whether edits became ordinary ones, and nothing was added.
    mutating func addGroups() throws -> Bool {
        var groups = KeyChanges(mostMembers: limits.changes, in: database)
        var rows: [EncodedRow] = []
        var bytes = body.bytes(of: [])
        var released = 0
        while released <= limits.changes, let group = try groups.next() {
            if group.isTooLarge {
                try KeyChanges.remove(group, in: database)
                released += group.members.count
                continue
            }
            guard let encoded = try encode(group) else { continue }
            let more = body.bytes(of: encoded.map(\.json))
            if encoded.count < 2 || encoded.count > limits.changes || more > limits.bytes {
                try KeyChanges.remove(group, in: database)
                released += group.members.count
                continue
            }
            bytes += more - body.bytes(of: [])
            let isFull = rows.count + encoded.count > limits.changes || bytes > limits.divisibleBytes
            if isFull, !rows.isEmpty { break }
            rows += encoded
            try KeyChanges.send(group, in: database)
        }
        if rows.isEmpty { return released > 0 }
        let ranks = Dictionary(
            tables.enumerated().map { ($1.number, $0) }, uniquingKeysWith: { first, _ in first })
        func order(_ row: EncodedRow) -> Int {
            let rank = ranks[row.table.number] ?? 0
            return row.isDeletion ? 2 * tables.count - rank : rank
        }
        body.isAtomic = true
        for row in rows.sorted(by: { order($0) < order($1) }) {
            try move(row, to: body.changes)
            body.append(row.json)
        }
        return false
    }

    /// The changes of a group's rows; `nil` if one of them cannot be sent.
    private mutating func encode(_ group: KeyChanges.Group) throws -> [EncodedRow]? {
        var rows: [EncodedRow] = []
        for member in group.members {
            guard let table = tables.first(where: { $0.number == member.table }),
                let server = schema.table(for: table.name)
            else { return nil }
            switch try encode(member.key, of: table, as: server, isInGroup: true) {
            case .held: return nil
            case .nothing: break
            case .change(let row): rows.append(row)
            }
        }
        return rows
    }
}
