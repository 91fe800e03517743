import SyncModel
import Testing

/// Rule 6.
@Suite struct PolicyTests {
    @Test func underLastSyncWinsTheLaterArrivalWinsColumnByColumn() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"], updatedAt: 900))
        try partition.send(.edit(.note, [nil, "3"], updatedAt: 5), from: .k2)
        #expect(partition.row(.note)?.values.json == ["1", "3"])
        try partition.send(.edit(.note, ["null", nil]), from: .k1)
        #expect(partition.row(.note)?.values.json == ["null", "3"])
        try partition.send(.edit(.note, []), from: .k2, at: 1_234)
        let row = try #require(partition.row(.note))
        #expect(row.values.json == ["null", "3"] && row.version == 4 && row.timeStamp == TimeStamp(4))
        #expect(row.updatedAt == 1_234)
    }

    struct Case: CustomTestStringConvertible {
        /// `updatedAt` and the log's time of the first device's version.
        let row: (updatedAt: Int64?, logTime: Int64)
        let change: (device: Device, updatedAt: Int64?, logTime: Int64)
        let status: String
        /// The row's afterwards.
        let updatedAt: Int64
        var testDescription: String { "\(row) met by \(change): \(status)" }
    }

    @Test(arguments: [
        Case(row: (500, 1_000), change: (.k2, 501, 2_000), status: "applied", updatedAt: 501),
        Case(row: (500, 1_000), change: (.k2, 500, 2_000), status: "applied", updatedAt: 500),
        Case(row: (500, 1_000), change: (.k2, 499, 2_000), status: "conflict", updatedAt: 500),
        // The log's time replaces a missing `updatedAt` and limits a given one.
        Case(row: (nil, 1_000), change: (.k2, 999, 2_000), status: "conflict", updatedAt: 1_000),
        Case(row: (nil, 1_000), change: (.k2, 1_000, 2_000), status: "applied", updatedAt: 1_000),
        Case(row: (500, 1_000), change: (.k2, nil, 2_000), status: "applied", updatedAt: 2_000),
        Case(row: (9_999, 1_000), change: (.k2, 1_001, 2_000), status: "applied", updatedAt: 1_001),
        Case(row: (9_999, 1_000), change: (.k2, 999, 2_000), status: "conflict", updatedAt: 1_000),
        Case(row: (500, 1_000), change: (.k2, 9_999, 2_000), status: "applied", updatedAt: 2_000),
        Case(row: (900, 1_000), change: (.k2, 9_999, 800), status: "conflict", updatedAt: 900),
        // The last writer's own change is never older, and the row keeps the greater `updatedAt`.
        Case(row: (500, 1_000), change: (.k1, 499, 2_000), status: "applied", updatedAt: 500),
        Case(row: (500, 1_000), change: (.k1, 600, 2_000), status: "applied", updatedAt: 600),
        // Another owner's device of the same name is another device.
        Case(row: (500, 1_000), change: (.k1OfDef, 499, 2_000), status: "conflict", updatedAt: 500),
        // Times before 1970 are valid.
        Case(row: (-5, 1_000), change: (.k2, -6, 2_000), status: "conflict", updatedAt: -5),
    ])
    func underLastWriteWinsTheLaterUpdatedAtWins(_ test: Case) throws {
        var partition = Partition()
        try partition.send(.edit(.task, ["1", "2"], updatedAt: test.row.updatedAt), at: test.row.logTime)
        let step = try partition.send(
            .edit(.task, ["9", nil], base: 1, updatedAt: test.change.updatedAt), from: test.change.device, for: .abc,
            at: test.change.logTime)
        #expect(step.statuses.map(\.name) == [test.status])
        let row = try #require(partition.row(.task))
        #expect(row.updatedAt == test.updatedAt)
        #expect(row.values.json == (test.status == "applied" ? ["9", "2"] : ["1", "2"]))
    }

    @Test func underLastWriteWinsOnlyTheLastWriterIsTheOwnDevice() throws {
        var partition = Partition()
        try partition.send(.edit(.task, ["1", "1"], updatedAt: 100), from: .k1)
        try partition.send(.edit(.task, ["2", "2"], updatedAt: 200), from: .k2)
        #expect(try partition.send(.edit(.task, ["3", "3"], updatedAt: 150), from: .k1).statuses == [.conflict])
        #expect(
            try partition.send(.edit(.task, ["4", "4"], updatedAt: 150), from: .k2).statuses.map(\.name) == ["applied"])
        #expect(partition.row(.task)?.updatedAt == 200)
    }

    @Test func underLastWriteWinsTheGreatestUpdatedAtIsKeptAcrossDeletesAndRevivals() throws {
        var partition = Partition()
        try partition.send(.edit(.task, ["1", "1"], updatedAt: 500), from: .k1)
        try partition.send(.delete(.task, base: 1, updatedAt: 100), from: .k2)
        #expect(partition.row(.task)?.updatedAt == 500)
        try partition.send(.edit(.task, ["2", "2"], updatedAt: 200), from: .k1)
        #expect(partition.row(.task)?.updatedAt == 500)
        try partition.send(.edit(.task, ["3", "3"], base: 3, updatedAt: 300), from: .k2)
        let row = try #require(partition.row(.task))
        #expect(!row.isDeleted && row.updatedAt == 500)
        #expect(try partition.send(.edit(.task, ["4", "4"], updatedAt: 499), from: .k1).statuses == [.conflict])
        try partition.send(.edit(.task, ["4", "4"], updatedAt: 500), from: .k1)
        #expect(partition.row(.task)?.values.json == ["4", "4"])
    }

    @Test func underLastWriteWinsAConditionIsCheckedFirst() throws {
        var partition = Partition()
        try partition.send(.edit(.task, ["1", "1"], updatedAt: 500), from: .k2)
        let newer = Change.edit(.task, ["2", "2"], base: 0, ifBase: true, updatedAt: 600)
        #expect(try partition.send(newer).statuses == [.conflict])
        let older = Change.edit(.task, ["2", "2"], base: 1, ifBase: true, updatedAt: 400)
        #expect(try partition.send(older).statuses == [.conflict])
    }

    @Test func underCheckBaseUpdatedAtDoesNotCount() throws {
        var partition = Partition()
        try partition.send(.edit(.account, ["1", "2"], updatedAt: 900), from: .k2)
        let step = try partition.send(.edit(.account, ["9", nil], base: 1, updatedAt: 5))
        #expect(step.statuses.map(\.name) == ["applied"])
        #expect(partition.row(.account)?.values.json == ["9", "2"])
    }

    @Test func thePolicyIsThatOfThePartsSchemaVersion() throws {
        var partition = Partition()
        try partition.send(.edit(.shift, ["1", "1"]), from: .k2, schema: "v3")
        #expect(try partition.send(.edit(.shift, ["2", nil]), schema: "v3").statuses == [.conflict])
        #expect(try partition.send(.edit(.shift, ["2", nil]), schema: "v1").statuses.map(\.name) == ["applied"])
    }
}
