import SyncModel
import Testing

/// Rule 3 with `ifBase: "live"`: a condition for a row that is not deleted.
@Suite struct LiveConditionTests {
    /// A row of which `writers` wrote a version each; the last one deleted it.
    private func partition(deletedBy writers: [Device], in table: Fixture) throws -> Partition {
        var partition = Partition()
        for (index, writer) in writers.enumerated() {
            let isLast = index == writers.count - 1
            let base = Int64(index)
            try partition.send(
                isLast ? .delete(table, base: base) : .edit(table, ["1", "2"], base: base, updatedAt: 1), from: writer,
                for: .abc)
        }
        return partition
    }

    @Test(arguments: [Fixture.note, .task, .account], [Int64(0), 1])
    func aLiveRowIsComparedAsWithIfBase(table: Fixture, base: Int64) throws {
        var partition = Partition()
        try partition.send(.edit(table, ["1", "2"], updatedAt: 1), from: .k2)
        let step = try partition.send(
            .edit(table, ["9", nil], base: base, ifBase: true, isForLiveRow: true, updatedAt: 900))
        #expect(step.statuses.first?.name == (base == 1 ? "applied" : "conflict"))
    }

    @Test(arguments: [Fixture.note, .task, .account], [Int64(0), 1])
    func anUnseenTombstoneOfAnotherStaysAndTakesTheValues(table: Fixture, base: Int64) throws {
        var partition = try partition(deletedBy: [.k1, .k2], in: table)
        let step = try partition.send(
            .edit(table, ["9", nil], base: base, ifBase: true, isForLiveRow: true, updatedAt: 900))
        #expect(step.statuses.first?.name == "deleted")
        let row = try #require(partition.row(table))
        #expect(row.isDeleted && row.timeStamp == TimeStamp(3))
        #expect(row.values.json.first == "9")
    }

    @Test(arguments: [Fixture.note, .task, .account], [[Device.k1, .k1], [.k2, .k1], [.k1, .k2, .k1]])
    func theDevicesOwnTombstoneIsRevived(table: Fixture, writers: [Device]) throws {
        var partition = try partition(deletedBy: writers, in: table)
        let step = try partition.send(
            .edit(table, ["9", "8"], base: 0, ifBase: true, isForLiveRow: true, updatedAt: 900))
        #expect(step.statuses.first?.name == "applied")
        #expect(try #require(partition.row(table)).isDeleted == false)
    }

    /// The first edit wrote the tombstone's newest version, and its device does not know of the delete.
    @Test func editsOfARowThatAnotherDeletedLeaveItDeletedHoweverManyThereAre() throws {
        var partition = try partition(deletedBy: [.k1, .k2], in: .note)
        let edits = [Change.edit(.note, ["8", nil], base: 1, ifBase: true, isForLiveRow: true)]
        for _ in 1...2 { #expect(try partition.send(edits[0]).statuses.map(\.name) == ["deleted"]) }
        let both = try partition.send(edits[0], edits[0])
        #expect(both.statuses.map(\.name) == ["deleted", "deleted"])
        #expect(try #require(partition.row(.note)).isDeleted)
    }

    @Test func aTombstoneThatWasSeenIsRevived() throws {
        var partition = try partition(deletedBy: [.k1, .k2], in: .note)
        let step = try partition.send(.edit(.note, ["9", "8"], base: 2, ifBase: true, isForLiveRow: true))
        #expect(step.statuses.first?.name == "applied")
        #expect(try #require(partition.row(.note)).isDeleted == false)
    }

    @Test func aDeleteOfATombstoneIsApplied() throws {
        var partition = try partition(deletedBy: [.k1, .k2], in: .note)
        let step = try partition.send(.delete(.note, base: 1, ifBase: true, isForLiveRow: true))
        #expect(step.statuses.first?.name == "applied")
        #expect(step.rows.isEmpty)
    }

    @Test(arguments: [1, 2, 3])
    func earlierRulesDoNotKnowIt(rules: Int) throws {
        var partition = try partition(deletedBy: [.k1, .k2], in: .note)
        var part = partition.part([.edit(.note, ["3", "4"], ifBase: true, isForLiveRow: true)])
        part.rules = rules
        #expect(try partition.order(part).statuses.first?.name == "conflict")
    }
}
