import SyncModel
import Testing

@Suite struct AtomicTests {
    @Test(arguments: [
        (Change.edit(.account, ["9", nil], id: "x", base: 0), "conflict"),
        (.edit(.note, ["9", nil], id: "none", base: 5), "row_gone"),
        (.edit(.member, [nil, "1", nil], id: "m"), "missing_value"),
    ])
    func anyConflictOrRefusalWritesNothingOfThePart(bad: Change, status: String) throws {
        var partition = Partition()
        try partition.send(.edit(.account, ["1", "1"], id: "x"), from: .k2)
        let before = partition
        let step = try partition.send(
            .edit(.note, ["1", "1"]), .delete(.note, id: "none"), bad, .edit(.note, ["2", nil]), batch: 1,
            isAtomic: true)
        #expect(step.statuses.map(\.name) == ["batch_aborted", "batch_aborted", status, "batch_aborted"])
        #expect(step.results.map(\.index) == [0, 1, 2, 3])
        #expect(step.results.allSatisfy { $0.heldFrom == nil })
        #expect(step.rows.isEmpty && partition.rows == before.rows)
        #expect(partition.state.timeStamp == before.state.timeStamp)
        // The outcome is stored: a repeat receives the same.
        #expect(step.outcome?.results == step.results)
        // The timeStamp was not used up.
        try partition.send(.edit(.note, ["1", "1"]))
        #expect(partition.row(.note)?.timeStamp == TimeStamp(2))
    }

    @Test func aRefusalByIngestAbortsThePart() throws {
        var partition = Partition()
        try partition.send(.edit(.account, ["1", "1"], id: "x"), from: .k2)
        var part = partition.part(
            [.edit(.note, ["1", "1"]), .edit(.account, ["2", nil], id: "x")], batch: 1, isAtomic: true)
        part.hasIngestRefusal = true
        let step = try partition.order(part)
        #expect(step.statuses.map(\.name) == ["batch_aborted", "conflict"])
        #expect(step.rows.isEmpty && partition.state.timeStamp == TimeStamp(1))
        #expect(step.outcome != nil)
    }

    @Test func withoutAtomicOtherChangesApply() throws {
        var partition = Partition()
        var part = partition.part(
            [.edit(.note, ["1", "1"]), .edit(.note, ["9", nil], id: "none", base: 5), .edit(.note, ["2", nil])])
        part.hasIngestRefusal = true
        let step = try partition.order(part)
        #expect(step.statuses.map(\.name) == ["applied", "row_gone", "applied"])
        #expect(step.rows.map(\.values.json) == [["2", "1"]])
        #expect(partition.state.timeStamp == TimeStamp(2))
    }

    @Test func anAtomicPartWithoutConflictsApplies() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "1"], id: "gone"))
        try partition.send(.delete(.note, id: "gone"))
        let step = try partition.send(
            .edit(.note, ["1", "1"]), .delete(.note, id: "none"), .edit(.note, ["5", nil], id: "gone"), isAtomic: true)
        #expect(step.statuses.map(\.name) == ["applied", "applied", "deleted"])
        #expect(step.rows.count == 2 && partition.state.timeStamp == TimeStamp(4))
    }

    @Test func eachOwnersPartIsDecidedIndependently() throws {
        var partition = Partition()
        let bad = try partition.send(.edit(.note, ["1", nil], base: 5), for: .abc, batch: 1, isAtomic: true)
        let good = try partition.send(.edit(.note, ["1", nil]), for: .def, batch: 1, isAtomic: true)
        #expect(bad.statuses.map(\.name) == ["row_gone"])
        #expect(good.statuses.map(\.name) == ["applied"])
        #expect(partition.row(.note, of: .def)?.version == 1)
    }

    @Test func aConflictWithARowOfThePartItselfLeavesNoRow() throws {
        var partition = Partition()
        let step = try partition.send(
            .edit(.note, ["1", "1"]), .edit(.note, ["2", nil], base: 999, ifBase: true), isAtomic: true)
        #expect(step.statuses.map(\.name) == ["batch_aborted", "conflict"])
        #expect(partition.row(.note) == nil)
    }
}
