/// Rows whose primary keys were changed: the deletion under the old key and the insertion under the new one are applied
/// together or not at all.
struct KeyChanges {
    /// A row by the number of its table and its key.
    struct Member: Hashable {
        let table: Int
        let key: SQLValue
    }

    /// Rows that are connected by changes of keys, such as two that exchanged theirs.
    struct Group {
        var members: [Member]
        /// The rows of `weir_key_change`.
        var changes: [Int64]
    }

    /// The groups, oldest first.
    static func groups(in database: Database) throws -> [Group] {
        let changes = try database.map("SELECT number, tbl, old, new FROM weir_key_change ORDER BY number") { row in
            (
                number: row.integer(at: 0), old: Member(table: Int(row.integer(at: 1)), key: row.value(at: 2)),
                new: Member(table: Int(row.integer(at: 1)), key: row.value(at: 3))
            )
        }
        var groups: [Int: Group] = [:]
        var groupOf: [Member: Int] = [:]
        for (index, change) in changes.enumerated() {
            var group = Group(members: [], changes: [change.number])
            for member in [change.old, change.new] where !group.members.contains(member) {
                guard let other = groupOf[member] else {
                    group.members.append(member)
                    continue
                }
                guard let joined = groups.removeValue(forKey: other) else { continue }
                group.members += joined.members
                group.changes += joined.changes
            }
            for member in group.members { groupOf[member] = index }
            groups[index] = group
        }
        return groups.sorted { $0.value.changes.min() ?? 0 < $1.value.changes.min() ?? 0 }.map(\.value)
    }

    static func remove(_ group: Group, in database: Database) throws {
        for number in group.changes {
            try database.run("DELETE FROM weir_key_change WHERE number = ?1", [.integer(number)])
        }
    }
}
