/// Rows whose primary keys were changed: the deletion under the old key and the insertion under the new one are applied
/// together or not at all, and discarded together.
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
    /// Whether the groups are those of the batch.
    private let areSent: Bool
    private var last: Int64 = 0
    /// What belongs to the groups before.
    private var seen: Set<Int64> = []

    init(mostMembers: Int, areSent: Bool = false, in database: Database) {
        self.database = database
        self.mostMembers = mostMembers
        self.areSent = areSent
    }

    /// Whether there are any that are not being sent.
    static func exist(in database: Database) throws -> Bool {
        try database.value("SELECT 1 FROM weir_key_change WHERE NOT sent LIMIT 1") != nil
    }

    /// The group that a row belongs to and that is not being sent.
    static func group(of member: Member, in database: Database) throws -> Group? {
        var changes = KeyChanges(mostMembers: .max, in: database)
        let group = try changes.group(of: member)
        return group.changes.isEmpty ? nil : group
    }

    /// The next group; `nil` at the end.
    mutating func next() throws -> Group? {
        while let first = try changes("number > ?1 ORDER BY number LIMIT 1", [.integer(last)]).first {
            last = first.number
            if !seen.contains(first.number) { return try group(of: first.old) }
        }
        return nil
    }

    private mutating func group(of first: Member) throws -> Group {
        var group = Group()
        var known: Set<Member> = [first]
        var waiting = [first]
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
        let side = areSent ? "sent" : "NOT sent"
        return try database.map(
            "SELECT number, tbl, old, new FROM weir_key_change WHERE \(side) AND \(condition)", values
        ) {
            row in
            let table = Int(row.integer(at: 1))
            return Change(
                number: row.integer(at: 0), old: Member(table: table, key: row.value(at: 2)),
                new: Member(table: table, key: row.value(at: 3)))
        }
    }

    /// Makes the edits of a group's rows ordinary ones.
    static func remove(_ group: Group, in database: Database) throws {
        for number in group.changes {
            try database.run("DELETE FROM weir_key_change WHERE number = ?1", [.integer(number)])
        }
    }

    /// Makes a group part of the batch.
    static func send(_ group: Group, in database: Database) throws {
        for number in group.changes {
            try database.run("UPDATE weir_key_change SET sent = 1 WHERE number = ?1", [.integer(number)])
        }
    }

    /// Ends those of the batch, which has its outcome.
    static func endSent(in database: Database) throws { try database.run("DELETE FROM weir_key_change WHERE sent") }

    /// Makes a group of the batch pending again.
    static func thaw(_ group: Group, in database: Database) throws {
        for number in group.changes {
            try database.run("UPDATE weir_key_change SET sent = 0 WHERE number = ?1", [.integer(number)])
        }
    }

    /// Makes those of the batch pending again, whose outcome is not known.
    static func thaw(in database: Database) throws {
        try database.run("UPDATE weir_key_change SET sent = 0 WHERE sent")
    }
}
