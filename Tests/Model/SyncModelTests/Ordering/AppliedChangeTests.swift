import SyncModel
import Testing

/// A change with a `changeId` is applied once by its device for each owner.
@Suite struct AppliedChangeTests {
    private static let mismatch = ChangeResult.Status.refused(
        .changeMismatch,
        message:
            "this changeId was used before, for a change with other content that was applied: use each for one change"
    )

    @Test func aRepeatInALaterBatchHasTheFirstResultAndWritesNothing() throws {
        var partition = Partition()
        let change = Change.edit(.note, ["1"]).named("c")
        let first = try partition.send(change, batch: 1)
        try partition.send(.edit(.note, ["2"], base: 1), from: .k2, batch: 1)
        let before = partition
        let again = try partition.send(.edit(.note, ["9"], id: "other"), change, batch: 2)
        #expect(again.statuses.map(\.name) == ["applied", "applied"])
        #expect(again.statuses[1] == first.statuses[0])
        #expect(again.results[1].heldFrom == nil && again.results[1].locator == nil)
        #expect(again.rows.map(\.key.id.text) == ["other"])
        #expect(again.applied.isEmpty)
        #expect(partition.row(.note) == before.row(.note))
        // Also from a batch without a number, and in the batch after that.
        #expect(try partition.send(change).statuses == first.statuses)
        #expect(try partition.send(change, batch: 3).statuses == first.statuses)
    }

    /// Stored now, it would replace what its device did after it.
    @Test func aChangeThatPrecedesARepeatOfItsRowIsAConflict() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1"]), from: .k2, batch: 1)
        let edit = Change.edit(.note, ["2"], ifBase: true).named("edit")
        let delete = Change.delete(.note).named("delete")
        let first = try partition.send(edit, delete, batch: 1)
        #expect(first.statuses.map(\.name) == ["conflict", "applied"])
        let live = Change.edit(.note, ["2"], base: 1).named("edit", content: 2)
        for batch in [2, nil] as [Int64?] {
            let again = try partition.send(edit, live, delete, .edit(.note, ["3"], id: "other"), batch: batch)
            #expect(again.statuses.map(\.name) == ["conflict", "conflict", "applied", "applied"])
            #expect(again.statuses[2] == first.statuses[1])
            #expect(again.rows.map(\.key.id.text) == ["other"])
        }
        #expect(partition.row(.note)?.isDeleted == true)
        // What follows the repeat is decided as always.
        let tombstone = try #require(partition.row(.note)).timeStamp.rawValue
        let later = try partition.send(delete, .edit(.note, ["4"], base: tombstone).named("later"), batch: 3)
        #expect(later.statuses[0] == first.statuses[1] && later.statuses[1].name == "applied")
    }

    @Test func theSecondOfABatchRepeatsTheFirst() throws {
        var partition = Partition()
        let change = Change.edit(.note, ["1"]).named("c")
        let step = try partition.send(change, change, batch: 1)
        #expect(step.statuses[0] == step.statuses[1])
        #expect(step.rows.map(\.version) == [1])
        #expect(step.applied.count == 1)
    }

    @Test func otherContentIsRefusedAndShowsTheRow() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1"]).named("c"), batch: 1)
        let step = try partition.send(.edit(.note, ["2"]).named("c", content: 2), batch: 2)
        #expect(step.statuses == [Self.mismatch])
        #expect(step.results[0].locator?.timeStamp == partition.row(.note)?.timeStamp)
        #expect(step.rows.isEmpty && step.applied.isEmpty)
        // Also where the other content is of a row that does not exist.
        let other = try partition.send(.edit(.note, ["2"], id: "none").named("c", content: 3), batch: 3)
        #expect(other.statuses == [Self.mismatch] && other.results[0].locator == nil)
        // The first content still has its result.
        #expect(try partition.send(.edit(.note, ["1"]).named("c"), batch: 4).statuses.map(\.name) == ["applied"])
    }

    @Test func anIdIsThatOfOneDeviceAndOneOwner() throws {
        var partition = Partition()
        let change = Change.edit(.note, ["1"]).named("c")
        try partition.send(change, batch: 1)
        #expect(try partition.send(change, from: .k2, batch: 1).rows.map(\.version) == [2])
        #expect(try partition.send(change, from: .k1OfDef, batch: 1).rows.map(\.version) == [1])
        #expect(try partition.send(change, from: .k1, for: .def, batch: 1).rows.map(\.version) == [2])
        #expect(partition.applied.count == 4)
    }

    @Test func refusedAndConflictingChangesLeaveNoTrace() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1"]), from: .k2, batch: 1)
        let conflict = try partition.send(.edit(.note, ["2"], ifBase: true).named("c"), batch: 1)
        #expect(conflict.statuses == [.conflict] && conflict.applied.isEmpty)
        let refused = try partition.send(.edit(.note, ["2"], id: "none", base: 7).named("c"), batch: 2)
        #expect(refused.statuses.map(\.name) == ["row_gone"] && refused.applied.isEmpty)
        let applied = try partition.send(.edit(.note, ["2"], base: 1).named("c", content: 2), batch: 3)
        #expect(applied.statuses.map(\.name) == ["applied"] && applied.applied.count == 1)
    }

    @Test func theConditionOfARepeatIsNotLookedAt() throws {
        var partition = Partition()
        let creation = Change.edit(.note, ["1"], ifBase: true).named("c")
        try partition.send(creation, batch: 1)
        try partition.send(.edit(.note, ["2"], base: 1), from: .k2, batch: 1)
        #expect(try partition.send(creation, batch: 2).statuses.map(\.name) == ["applied"])
    }

    @Test func everyKindOfAppliedChangeIsRepeated() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1"], id: "gone"), from: .k2, batch: 1)
        try partition.send(.delete(.note, id: "gone", base: 1), from: .k2, batch: 2)
        let changes = [
            Change.delete(.note, id: "none").named("a"), .delete(.note, id: "gone").named("b"),
            .edit(.note, ["2"], id: "gone").named("c"), .edit(.note, ["1"]).named("d"), .delete(.note).named("e"),
        ]
        let first = try partition.order(partition.part(changes, batch: 1))
        #expect(first.statuses.map(\.name) == ["applied", "applied", "deleted", "applied", "applied"])
        #expect(first.applied.count == 5)
        try partition.send(.edit(.note, ["7"], id: "gone", base: 4), .edit(.note, ["7"], id: "none"), batch: 2)
        let again = try partition.order(partition.part(changes, batch: 3))
        #expect(again.statuses == first.statuses)
        #expect(again.rows.isEmpty)
    }

    @Test func anAbortedPartLeavesNoTrace() throws {
        var partition = Partition()
        let change = Change.edit(.note, ["1"]).named("c")
        let aborted = try partition.send(
            change, change, .edit(.note, ["1"], id: "x", base: 9), batch: 1, isAtomic: true)
        #expect(aborted.statuses.map(\.name) == ["batch_aborted", "batch_aborted", "row_gone"])
        #expect(aborted.applied.isEmpty)
        #expect(try partition.send(change, batch: 2).rows.count == 1)
    }

    @Test func aRepeatDoesNotAbortAnAtomicPartAndKeepsItsResultInAnAbortedOne() throws {
        var partition = Partition()
        let change = Change.edit(.note, ["1"]).named("c")
        let first = try partition.send(change, batch: 1)
        let applied = try partition.send(change, .edit(.note, ["1"], id: "x"), batch: 2, isAtomic: true)
        #expect(applied.statuses.map(\.name) == ["applied", "applied"] && applied.rows.count == 1)
        let aborted = try partition.send(
            .edit(.note, ["2"], id: "x", base: 2), change, .edit(.note, ["1"], id: "y", base: 9), batch: 3,
            isAtomic: true)
        #expect(aborted.statuses.map(\.name) == ["batch_aborted", "applied", "row_gone"])
        #expect(aborted.statuses[1] == first.statuses[0] && aborted.rows.isEmpty)
        let mismatch = try partition.send(
            .edit(.note, ["2"], id: "x", base: 2), change.named("c", content: 2), batch: 4, isAtomic: true)
        #expect(mismatch.statuses.map(\.name) == ["batch_aborted", "change_mismatch"] && mismatch.rows.isEmpty)
    }

    /// The device may have the repeated change on top of the part's other changes of the row.
    @Test(arguments: [true, false]) func noVersionOfARepeatedRowCountsAsHeld(isRepeatFirst: Bool) throws {
        var partition = Partition()
        let old = Change.delete(.note).named("c")
        try partition.send(.edit(.note, ["1", "1"]), batch: 1)
        try partition.send(old, batch: 2)
        try partition.send(.edit(.note, ["2", "2"], base: 2), from: .k2, batch: 1)
        let new = Change.edit(.note, ["3", "3"], base: 3)
        let step = try partition.order(partition.part(isRepeatFirst ? [old, new] : [new, old], batch: 3))
        #expect(step.results.map(\.heldFrom) == [nil, nil])
        #expect(step.rows.map(\.isExact) == [false])
        #expect(try partition.send(new, batch: 4).results.map(\.heldFrom) == [.zero])
    }

    /// The limit of a part's rows is about all of its changes, so that no row of them must be known.
    @Test func aRepeatCountsItsRowAndIsRefusedBeyondTheLimit() throws {
        var partition = Partition()
        let change = Change.edit(.note, ["1", "123456789"], id: "b").named("c")
        try partition.send(.edit(.note, ["1", "123456789"], id: "a"), change, batch: 1)
        var part = partition.part([.edit(.note, ["2"], id: "a"), change], batch: 2)
        part.maxBatchRowBytes = 10
        #expect(try partition.order(part).statuses.map(\.name) == ["applied", "batch_rows_too_large"])
        part = partition.part([change, .edit(.note, ["2"], id: "a")], batch: 3)
        part.maxBatchRowBytes = 10
        #expect(try partition.order(part).statuses.map(\.name) == ["applied", "batch_rows_too_large"])
    }

    @Test(arguments: [1, 2]) func earlierRulesApplyARepeatAgain(rules: Int) throws {
        var partition = Partition()
        for version in 1...2 as ClosedRange<Int64> {
            var part = partition.part([.edit(.note, ["1"]).named("c")], batch: version)
            part.rules = rules
            let step = try partition.order(part)
            #expect(step.rows.map(\.version) == [version] && step.applied.isEmpty)
            #expect(part.appliedChangeKeys.isEmpty)
        }
    }
}

extension Change {
    /// The same change with an id.
    ///
    /// - Parameter content: the same for the same content.
    fileprivate func named(_ id: String, content: UInt8 = 1) -> Change {
        var change = self
        let digest = Array(id.utf8) + Array(repeating: 0, count: 15)
        change.identity = ChangeIdentity(
            id: ShortDigest(prefixOf: digest),
            content: ShortDigest(prefixOf: Array(repeating: content, count: 16)))
        return change
    }
}
