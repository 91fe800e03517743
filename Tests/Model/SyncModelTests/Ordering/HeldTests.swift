import SyncModel
import Testing

/// I6: the vector entry from which the uploading device already holds the row.
@Suite struct HeldTests {
    struct Case: CustomTestStringConvertible {
        let name: String
        /// Parts of the second device and of others, before.
        var before: [(Device, [Change])] = []
        /// One part of the first device.
        let changes: [Change]
        /// The entry that each result names; `nil` where no entry does.
        let heldFrom: [Int64?]
        /// Whether the row is exactly what the first device sent.
        let isExact: Bool
        var testDescription: String { name }
    }

    static let made: [(Device, [Change])] = [(.k2, [.edit(.note, ["1", "2"])])]
    static let madeTask: [(Device, [Change])] = [(.k2, [.edit(.task, ["1", "2"], updatedAt: 500)])]
    static let deleted: [(Device, [Change])] = [(.k2, [.edit(.note, ["1", "2"])]), (.k2, [.delete(.note)])]

    static let cases: [Case] = [
        Case(name: "full creation", changes: [.edit(.note, ["1", "2"])], heldFrom: [0], isExact: true),
        Case(name: "partial creation", changes: [.edit(.note, ["1", nil])], heldFrom: [0], isExact: false),
        Case(name: "full update", before: made, changes: [.edit(.note, ["3", "4"])], heldFrom: [0], isExact: true),
        Case(name: "partial update", before: made, changes: [.edit(.note, ["3", nil])], heldFrom: [1], isExact: false),
        Case(
            name: "altered full update", before: made, changes: [.edit(.note, ["3", "4"], isAltered: true)],
            heldFrom: [nil], isExact: false),
        Case(
            name: "altered partial update", before: made, changes: [.edit(.note, ["3", nil], isAltered: true)],
            heldFrom: [nil], isExact: false),
        Case(
            name: "creation with a default filled in", changes: [.edit(.member, ["\"n\"", nil, "\"r\""])],
            heldFrom: [nil], isExact: false),
        Case(
            name: "creation with NULL filled in", changes: [.edit(.member, ["\"n\"", "2", nil])], heldFrom: [0],
            isExact: false),
        Case(name: "delete", before: made, changes: [.delete(.note)], heldFrom: [1], isExact: true),
        Case(
            name: "delete with all values", before: made, changes: [.delete(.note, ["3", "4"])], heldFrom: [0],
            isExact: true),
        Case(
            name: "full update of a tombstone", before: deleted, changes: [.edit(.note, ["3", "4"])], heldFrom: [0],
            isExact: false),
        Case(
            name: "partial update of a tombstone", before: deleted, changes: [.edit(.note, ["3", nil])], heldFrom: [2],
            isExact: false),
        Case(
            name: "full revival", before: deleted, changes: [.edit(.note, ["3", "4"], base: 2)], heldFrom: [0],
            isExact: true),
        Case(
            name: "partial revival", before: deleted, changes: [.edit(.note, ["3", nil], base: 2)], heldFrom: [nil],
            isExact: false),
        Case(
            name: "partial, then full", before: made, changes: [.edit(.note, ["3", nil]), .edit(.note, ["4", "5"])],
            heldFrom: [0, 0], isExact: true),
        Case(
            name: "full, then partial", before: made, changes: [.edit(.note, ["3", "4"]), .edit(.note, [nil, "5"])],
            heldFrom: [1, 1], isExact: false),
        Case(
            name: "created, then partial", changes: [.edit(.note, ["3", nil]), .edit(.note, [nil, "5"])],
            heldFrom: [0, 0], isExact: false),
        Case(
            name: "full, then altered", before: made,
            changes: [.edit(.note, ["3", "4"]), .edit(.note, ["5", nil], isAltered: true)], heldFrom: [nil, nil],
            isExact: false),
        Case(
            name: "altered, then partial", before: made,
            changes: [.edit(.note, ["3", nil], isAltered: true), .edit(.note, [nil, "4"])], heldFrom: [nil, nil],
            isExact: false),
        Case(
            name: "altered, then full", before: made,
            changes: [.edit(.note, ["3", nil], isAltered: true), .edit(.note, ["4", "5"])], heldFrom: [0, 0],
            isExact: true),
        Case(
            name: "full update of a tombstone, then a delete", before: deleted,
            changes: [.edit(.note, ["3", "4"]), .delete(.note)], heldFrom: [0, nil], isExact: false),
        Case(
            name: "full update of a tombstone, then a delete whose values are dropped", before: deleted,
            changes: [.edit(.note, ["3", "4"]), .delete(.note, [nil, "5"])], heldFrom: [nil, nil], isExact: false),
        Case(
            name: "a delete whose values are dropped, then a partial update", before: deleted,
            changes: [.edit(.note, ["3", "4"]), .delete(.note, ["5", nil]), .edit(.note, [nil, "6"])],
            heldFrom: [nil, nil, nil], isExact: false),
        Case(
            name: "a delete of nothing whose values are dropped, then a partial creation",
            changes: [.delete(.note, ["5", nil]), .edit(.note, [nil, "6"])], heldFrom: [nil, nil], isExact: false),
        Case(
            name: "a delete of nothing without values, then a partial creation",
            changes: [.delete(.note, [nil, nil]), .edit(.note, [nil, "6"])], heldFrom: [nil, 0], isExact: false),
        Case(
            name: "a delete whose values are dropped, then a full update", before: deleted,
            changes: [.edit(.note, ["3", "4"]), .delete(.note, ["5", nil]), .edit(.note, ["6", "7"])],
            heldFrom: [0, nil, 0], isExact: false),
        Case(
            name: "a delete whose values are dropped, then full, then partial", before: deleted,
            changes: [.delete(.note, ["5", nil]), .edit(.note, ["6", "7"]), .edit(.note, [nil, "8"])],
            heldFrom: [nil, 2, 2], isExact: false),
        Case(
            name: "partial, then a conflict", before: made,
            changes: [.edit(.note, ["3", nil]), .edit(.note, ["4", "5"], ifBase: true)], heldFrom: [1, nil],
            isExact: false),
        Case(
            name: "lastWriteWins with its updatedAt", before: madeTask,
            changes: [.edit(.task, ["3", "4"], updatedAt: 600)], heldFrom: [0], isExact: true),
        Case(
            name: "lastWriteWins, clamped", before: madeTask, changes: [.edit(.task, ["3", "4"], updatedAt: 1_001)],
            heldFrom: [nil], isExact: true),
        Case(
            name: "lastWriteWins, updatedAt missing", before: madeTask, changes: [.edit(.task, ["3", "4"])],
            heldFrom: [nil], isExact: true),
        Case(
            name: "lastWriteWins, the row's greater updatedAt kept", before: madeTask,
            changes: [.edit(.task, ["3", "4"], updatedAt: 900), .edit(.task, ["5", "6"], updatedAt: 800)],
            heldFrom: [nil, nil], isExact: true),
        Case(
            name: "updatedAt of another policy", before: made, changes: [.edit(.note, ["3", "4"], updatedAt: 9_999)],
            heldFrom: [0], isExact: true),
    ]

    @Test(arguments: cases)
    func aResultNamesTheEntryThatHoldsTheRow(_ test: Case) throws {
        var partition = Partition()
        for (device, changes) in test.before { try partition.order(partition.part(changes, from: device)) }
        let step = try partition.order(partition.part(test.changes))
        #expect(step.results.map(\.heldFrom) == test.heldFrom.map { $0.map { TimeStamp($0) } })
        #expect(step.rows.map(\.isExact) == [test.isExact])
    }

    /// A row is exact when its columns are; before rules version 4 another `updatedAt` was a difference, too.
    @Test(arguments: [(3, 600, true), (3, 1_001, false), (4, 600, true), (4, 1_001, true)])
    func aRowIsExactByTheRulesOfItsVersion(rules: Int, updatedAt: Int64, isExact: Bool) throws {
        var partition = Partition()
        var part = partition.part([.edit(.task, ["3", "4"], updatedAt: updatedAt)])
        part.rules = rules
        #expect(try partition.order(part).rows.map(\.isExact) == [isExact])
    }

    @Test func theTimeStampBeforeTheBatchIsTheRowsOwn() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]))
        try partition.send(.edit(.shift, ["1", "2"]), from: .k2)
        let step = try partition.send(.edit(.note, ["3", nil]), .edit(.shift, [nil, "3"]), .edit(.note, ["4", nil]))
        #expect(step.results.map(\.heldFrom) == [TimeStamp(1), TimeStamp(2), TimeStamp(1)])
    }

    @Test func aStoredOutcomeKeepsItsResults() throws {
        var partition = Partition()
        let step = try partition.send(.edit(.note, ["3", nil]), batch: 1)
        #expect(step.outcome?.results == step.results)
    }
}
