/// Rows whose primary keys were changed: the deletion under the old key and the insertion under the new one are applied
/// together or not at all.
///
/// Groups are looked for one after the other, oldest first, so that a freezing reads as many as its batch may have.
struct KeyChanges {
    /// A row by the number of its table and its key.
    struct Member: Hashable {
        let table: Int
        let key: SQLValue
    }

    /// Rows that are connected by changes of keys, such as two that exchanged theirs.
    struct Group {
        var members: [Member] = []
        /// The rows of `weir_key_change`.
        var changes: [Int64] = []
        /// Whether it has more members than a batch may have changes; then only some were looked at.
        var isTooLarge = false
    }

    private struct Change {
        let number: Int64
        let old: Member
        let new: Member
    }

    let database: Database
    /// The most members of a group that can be sent.
    let mostMembers: Int
    private var last: Int64 = 0
    /// What belongs to the groups before.
    private var seen: Set<Int64> = []

    init(mostMembers: Int, in database: Database) {
        self.database = database
        self.mostMembers = mostMembers
    }

    static func exist(in database: Database) throws -> Bool {
        try database.value("SELECT 1 FROM weir_key_change LIMIT 1") != nil
    }

    /// The next group; `nil` at the end.
    mutating func next() throws -> Group? {
        while let first = try changes("number > ?1 ORDER BY number LIMIT 1", [.integer(last)]).first {
            last = first.number
            if !seen.contains(first.number) { return try group(of: first) }
        }
        return nil
    }

    private mutating func group(of first: Change) throws -> Group {
        var group = Group()
        var known: Set<Member> = [first.old]
        var waiting = [first.old]
        while let member = waiting.popLast() {
            group.members.append(member)
            if group.members.count > mostMembers {
                group.isTooLarge = true
                break
            }
            // Each of them has an index.
            for side in ["old", "new"] {
                let values: [SQLValue] = [.integer(Int64(member.table)), member.key]
                for change in try changes("tbl = ?1 AND \(side) IS ?2 ORDER BY number", values)
                where seen.insert(change.number).inserted {
                    group.changes.append(change.number)
                    for other in [change.old, change.new] where known.insert(other).inserted { waiting.append(other) }
                }
            }
        }
        return group
    }

    private func changes(_ condition: String, _ values: [SQLValue]) throws -> [Change] {
        try database.map("SELECT number, tbl, old, new FROM weir_key_change WHERE \(condition)", values) { row in
            let table = Int(row.integer(at: 1))
            return Change(
                number: row.integer(at: 0), old: Member(table: table, key: row.value(at: 2)),
                new: Member(table: table, key: row.value(at: 3)))
        }
    }

    /// Makes the edits of a group's rows ordinary ones.
    func remove(_ group: Group) throws {
        for number in group.changes {
            try database.run("DELETE FROM weir_key_change WHERE number = ?1", [.integer(number)])
        }
    }
}
