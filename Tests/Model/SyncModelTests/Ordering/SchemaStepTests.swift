import SyncModel
import Testing

/// Parts of several schema versions in one partition.
@Suite struct SchemaStepTests {
    @Test func aRowIsLiftedWithDefaultsWhenItIsWrittenUnderALaterVersion() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"], id: "old"), .edit(.note, ["1", "2"], id: "still"))
        try partition.send(.edit(.note, ["3", nil], id: "old"), schema: "v2")
        #expect(partition.row(.note, "old")?.values.json == ["3", "2", "\"red\"", "null"])
        #expect(partition.row(.note, "still")?.values.json == ["1", "2"])
    }

    @Test func aPartOfAnOlderVersionKeepsColumnsOfALaterVersion() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2", "\"blue\"", "\"home\""]), schema: "v2")
        let step = try partition.send(.edit(.note, ["3", "4"]), schema: "v1")
        #expect(partition.row(.note)?.values.json == ["3", "4", "\"blue\"", "\"home\""])
        // A device that lacks the row's version before lacks its color; the columns of its own version are as it sent them.
        #expect(step.results.first?.heldFrom == TimeStamp(1))
        #expect(partition.row(.note)?.isExact == true)
        try partition.send(.delete(.note), schema: "v1")
        #expect(partition.row(.note)?.values.json == ["3", "4", "\"blue\"", "\"home\""])
    }

    /// A row was taken for what its device had sent, whatever others had written in later columns.
    @Test(arguments: [1, 2, 3, 4]) func earlierRulesLeaveOutRowsWithColumnsOfALaterVersion(rules: Int) throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2", "\"blue\"", nil]), schema: "v2")
        var part = partition.part([.edit(.note, ["3", "4"])])
        part.rules = rules
        #expect(try partition.order(part).results.map(\.heldFrom) == [.zero])
        #expect(partition.row(.note)?.isExact == true)
    }

    @Test func rowsAreWrittenUnderTheNewestVersionOfThePartition() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"], id: "a"), schema: "v1")
        #expect(partition.state.schemaOrdinal == 1)
        try partition.send(schema: "v2")
        #expect(partition.state.schemaOrdinal == 2)
        let step = try partition.send(
            .edit(.note, ["1", "2"], id: "b"), .edit(.note, ["3", nil], id: "a"), schema: "v1")
        #expect(partition.state.schemaOrdinal == 2)
        #expect(step.rows.map(\.values.json) == [["1", "2", "\"red\"", "null"], ["3", "2", "\"red\"", "null"]])
        // A device lacks no columns that its version does not have.
        #expect(step.results.map(\.heldFrom) == [.zero, TimeStamp(1)])
        #expect(step.rows[0].isExact)
    }

    @Test func aLaterColumnsDefaultIsAnAlterationForADeviceOfThatVersion() throws {
        var partition = Partition()
        let step = try partition.send(
            .edit(.note, ["1", "2"], id: "a"), .edit(.note, ["1", "2", "\"red\"", nil], id: "b"), schema: "v2")
        #expect(step.results.map(\.heldFrom) == [nil, .zero])
    }

    @Test func aRevivalByAPartOfAnOlderVersionSetsLaterColumnsToTheirDefaults() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2", "\"blue\"", "\"home\""]), schema: "v2")
        try partition.send(.delete(.note), schema: "v2")
        try partition.send(.edit(.note, ["3", "4"], base: 2), schema: "v1")
        #expect(partition.row(.note)?.values.json == ["3", "4", "\"red\"", "null"])
    }

    @Test func aRepeatOrARefusedBatchMayAdvanceTheSchemaVersion() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]), batch: 2)
        try partition.send(.edit(.note, ["1", "2"]), batch: 2, schema: "v2")
        #expect(partition.state.schemaOrdinal == 2)
        try partition.send(batch: 1, schema: "v3")
        #expect(partition.state.schemaOrdinal == 3)
    }

    @Test func aDroppedDeliveryDoesNotAdvanceTheSchemaVersion() throws {
        var partition = Partition()
        var part = partition.part([.edit(.note, ["1", "2"])])
        try partition.order(part)
        part.schema = "v2"
        try partition.order(part)
        #expect(partition.state.schemaOrdinal == 1)
    }
}

@Suite struct SchemaHistoryTests {
    @Test func aHashNamesTheOldestVersionThatHasIt() throws {
        var history = Fixture.history
        let first = try #require(history[1])
        let again = SchemaVersion(ordinal: 4, hash: "v1")
        history.append(SchemaHistory.Entry(version: again, schema: first.schema))
        #expect(history["v1"] == first)
        #expect(history[4]?.version == again && history.newest?.version == again)
        #expect(history["V1"] == nil && history[0] == nil && history[5] == nil)
    }

    @Test func returningToAnOlderVersionDoesNotDependOnHowManyAreKnown() throws {
        var all = Fixture.history
        let first = try #require(all[1])
        all.append(SchemaHistory.Entry(version: SchemaVersion(ordinal: 4, hash: "v1"), schema: first.schema))
        var few = Partition()
        var many = Partition(schemas: all)
        for schema in ["v1", "v2", "v1"] {
            let change = Change.edit(.note, ["1", "2"])
            #expect(try few.send(change, schema: schema) == many.send(change, schema: schema))
        }
    }
}
