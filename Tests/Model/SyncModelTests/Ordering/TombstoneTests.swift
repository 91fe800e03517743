import SyncModel
import Testing

/// Rules 4 and 5, and I8.
@Suite struct TombstoneTests {
    @Test(arguments: [Fixture.note, .task, .account])
    func aDeleteAppliesAndMayCarryValues(table: Fixture) throws {
        var partition = Partition()
        try partition.send(.edit(table, ["1", "2"], updatedAt: 900), from: .k2, at: 1_000)
        // Under lastWriteWins a delete applies though its updatedAt is older.
        let step = try partition.send(.delete(table, ["9", nil], base: 1, updatedAt: 5), batch: 3, at: 2_000)
        #expect(
            step.statuses == [
                .applied(timeStamp: TimeStamp(2), version: 2, knowledgeID: KnowledgeID(unchecked: "k1"))
            ])
        let row = try #require(partition.row(table))
        #expect(row.isDeleted && row.version == 2 && row.values.json == ["9", "2"])
        #expect(row.createdAt == 1_000 && row.writer == .k1 && row.writerBatch == 3)
    }

    @Test(arguments: [0, 1, 2, 9])
    func aDeleteOfATombstoneIsAppliedWithTheTombstonesNumbers(base: Int64) throws {
        var partition = try tombstone(in: .note)
        let before = try #require(partition.row(.note))
        let step = try partition.send(.delete(.note, ["8", "8"], base: base), from: .k1)
        #expect(
            step.statuses == [
                .applied(timeStamp: TimeStamp(2), version: 2, knowledgeID: KnowledgeID(unchecked: "maker"))
            ])
        #expect(step.rows.isEmpty && partition.row(.note) == before)
        #expect(partition.state.timeStamp == TimeStamp(2))
        #expect(step.results.first?.heldFrom == nil)
    }

    @Test(arguments: [Fixture.note, .task], [0, 1, 3])
    func anUpdateOfATombstoneStoresItsValuesAndTheRowRemainsDeleted(table: Fixture, base: Int64) throws {
        var partition = try tombstone(in: table)
        // Under lastWriteWins rule 4 comes before the policy: an older updatedAt is stored, too.
        let step = try partition.send(.edit(table, ["9", nil], base: base, updatedAt: 5), from: .k1, at: 3_000)
        #expect(
            step.statuses == [
                .deleted(timeStamp: TimeStamp(3), version: 3, knowledgeID: KnowledgeID(unchecked: "maker"))
            ])
        let row = try #require(partition.row(table))
        #expect(row.isDeleted && row.timeStamp == TimeStamp(3) && row.values.json == ["9", "2"])
        #expect(row.writer == .k1 && row.othersTimeStamp == TimeStamp(2))
    }

    @Test(arguments: [Fixture.note, .task, .account])
    func anUpdateOfTheTombstonesNewestVersionRevivesTheRow(table: Fixture) throws {
        var partition = try tombstone(in: table)
        let step = try partition.send(.edit(table, [nil, "9"], base: 2, updatedAt: 5), from: .k1, at: 3_000)
        #expect(
            step.statuses == [
                .applied(timeStamp: TimeStamp(3), version: 3, knowledgeID: KnowledgeID(unchecked: "maker"))
            ])
        let row = try #require(partition.row(table))
        #expect(!row.isDeleted && row.version == 3 && row.values.json == ["null", "9"])
        #expect(row.knowledgeID.text == "maker" && row.createdAt == 1_000)
        #expect(row.writer == .k1 && row.othersTimeStamp == TimeStamp(2))
    }

    @Test func anEarlierTimeStampOfTheTombstoneDoesNotRevive() throws {
        var partition = try tombstone(in: .note)
        try partition.send(.edit(.note, ["5", nil], base: 1), from: .k2)
        #expect(try partition.send(.edit(.note, ["9", nil], base: 2)).statuses.map(\.name) == ["deleted"])
        #expect(try partition.send(.edit(.note, ["9", nil], base: 4)).statuses.map(\.name) == ["applied"])
        #expect(partition.row(.note)?.isDeleted == false)
    }

    @Test func aRevivalHasACreationsDefaultsAndRequiredColumns() throws {
        var partition = Partition()
        try partition.send(.edit(.member, ["\"n\"", "5", "\"r\""]))
        try partition.send(.delete(.member, base: 1))
        let missing = try partition.send(.edit(.member, [nil, "6", "\"q\""], base: 2))
        #expect(missing.statuses.map(\.name) == ["missing_value"])
        #expect(partition.row(.member)?.isDeleted == true)
        try partition.send(.edit(.member, ["\"m\""], base: 2))
        #expect(partition.row(.member)?.values.json == ["\"m\"", "1", "null"])
    }

    @Test func aRevivedRowMayBeDeletedAgain() throws {
        var partition = try tombstone(in: .note)
        try partition.send(.edit(.note, ["1", "1"], base: 2))
        #expect(try partition.send(.edit(.note, ["2", nil], base: 3)).statuses.map(\.name) == ["applied"])
        try partition.send(.delete(.note, base: 4))
        let row = try #require(partition.row(.note))
        #expect(row.isDeleted && row.version == 5 && row.values.json == ["2", "1"])
    }

    @Test func aRowDeletedInTheSameBatchRemainsDeleted() throws {
        var partition = Partition()
        let step = try partition.send(
            .edit(.note, ["1", "2"]), .delete(.note), .edit(.note, ["3", nil]), .delete(.note))
        let k1 = KnowledgeID(unchecked: "k1")
        #expect(
            step.statuses == [
                .applied(timeStamp: TimeStamp(1), version: 1, knowledgeID: k1),
                .applied(timeStamp: TimeStamp(2), version: 2, knowledgeID: k1),
                .deleted(timeStamp: TimeStamp(3), version: 3, knowledgeID: k1),
                .applied(timeStamp: TimeStamp(3), version: 3, knowledgeID: k1),
            ])
        #expect(step.rows.map(\.values.json) == [["3", "2"]])
    }

    /// A row created by the device `maker` at 1 and deleted by the second device at 2.
    private func tombstone(in table: Fixture) throws -> Partition {
        var partition = Partition()
        try partition.send(.edit(table, ["1", "2"], by: "maker", updatedAt: 900), from: .k2, at: 1_000)
        try partition.send(.delete(table, base: 1, updatedAt: 1_900), from: .k2, at: 2_000)
        return partition
    }
}
