/// Which changes of a batch go into another one, as they were not judged for themselves.
///
/// Rows that changes of keys connect are stored together or not at all, and an atomic batch may have several such groups. Where a change was
/// not stored for its own sake, none of its group is repeated: the deletion under a row's old key without the insertion under its new one
/// would remove the row. The other groups are.
struct RepeatedChanges {
    private let outcome: BatchOutcome
    /// The places of changes whose groups have failed.
    private var failed: Set<Int> = []

    /// Makes groups pending again that stay together, as part of the open transaction; their rows follow.
    init(_ outcome: BatchOutcome, in database: Database) throws {
        self.outcome = outcome
        let places = outcome.results.indices
        guard places.contains(where: outcome.isAborted) else { return }
        // Without one the same batch would be aborted again.
        let hasCause = places.contains { outcome.hasFailed($0) || outcome.isTooLarge($0) }
        var groups = KeyChanges(mostMembers: .max, areSent: true, in: database)
        while let group = try groups.next() {
            let places = try group.members.compactMap { member in
                try database.integer(
                    "SELECT position FROM \(CapturedTable.sent(member.table)) WHERE id = ?1", [member.key]
                ).map { Int($0) }
            }
            if places.contains(where: outcome.hasFailed) {
                failed.formUnion(places)
            } else if hasCause, places.contains(where: outcome.isAborted), !places.contains(where: outcome.isTooLarge) {
                try KeyChanges.thaw(group, in: database)
            }
        }
    }

    func contains(_ position: Int) -> Bool {
        outcome.isTooLarge(position) || outcome.isAborted(position) && !failed.contains(position)
    }
}
