import SyncModel
import Testing

/// Rule 3: when `base` is a condition, and when it is current.
@Suite struct ConditionTests {
    struct Case: CustomTestStringConvertible {
        /// Who wrote the row's versions, whose timeStamps are 1, 2, 3 ….
        let writers: [Device]
        let base: Int64
        let isCurrent: Bool
        var testDescription: String {
            "base \(base) after \(writers.map(\.knowledgeID.text)): \(isCurrent ? "current" : "conflict")"
        }
    }

    /// The edit is always the first device's.
    static let cases: [Case] = [
        Case(writers: [.k2], base: 1, isCurrent: true),
        Case(writers: [.k2], base: 0, isCurrent: false),
        Case(writers: [.k2], base: 2, isCurrent: false),
        Case(writers: [.k1], base: 0, isCurrent: true),
        Case(writers: [.k1], base: 2, isCurrent: false),
        Case(writers: [.k1, .k1, .k1], base: 0, isCurrent: true),
        Case(writers: [.k1, .k1, .k1], base: 1, isCurrent: true),
        Case(writers: [.k2, .k1, .k1], base: 1, isCurrent: true),
        Case(writers: [.k2, .k1, .k1], base: 0, isCurrent: false),
        Case(writers: [.k1, .k2, .k1], base: 1, isCurrent: false),
        Case(writers: [.k1, .k2, .k1], base: 2, isCurrent: true),
        Case(writers: [.k1, .k1, .k2], base: 2, isCurrent: false),
        Case(writers: [.k1, .k1, .k2], base: 3, isCurrent: true),
        Case(writers: [.k1, .k1OfDef, .k1], base: 1, isCurrent: false),
        Case(writers: [.k2, .k1OfDef, .k1], base: 1, isCurrent: false),
        Case(writers: [.k2, .k1OfDef, .k1], base: 2, isCurrent: true),
    ]

    @Test(arguments: cases, [Fixture.note, .task, .account])
    func aChangeWithACondition(_ test: Case, in table: Fixture) throws {
        let ifBase = table != .account
        try expect(test, in: table) { .edit(table, ["9", nil], base: $0, ifBase: ifBase, updatedAt: 900) }
        try expect(test, in: table) { .delete(table, base: $0, ifBase: ifBase) }
    }

    @Test(arguments: cases)
    func aChangeToATombstoneWithACondition(_ test: Case) throws {
        try expect(test, in: .account, isDeleted: true) { .edit(.account, ["9", nil], base: $0) }
        try expect(test, in: .account, isDeleted: true) { .delete(.account, base: $0) }
        try expect(test, in: .note, isDeleted: true) { .delete(.note, base: $0, ifBase: true) }
    }

    @Test(arguments: cases)
    func aChangeWithoutACondition(_ test: Case) throws {
        let always = Case(writers: test.writers, base: test.base, isCurrent: true)
        try expect(always, in: .note) { .edit(.note, ["9", nil], base: $0) }
        try expect(always, in: .note) { .delete(.note, base: $0) }
    }

    private func expect(
        _ test: Case, in table: Fixture, isDeleted: Bool = false, _ change: (_ base: Int64) -> Change
    ) throws {
        var partition = Partition()
        // A tombstone has one more version before, by the same device as the first.
        let shift: Int64 = isDeleted ? 1 : 0
        if isDeleted { try partition.send(.edit(table, ["1", "2"]), from: test.writers[0], for: .abc) }
        for (index, writer) in test.writers.enumerated() {
            let newest = partition.state.timeStamp.rawValue
            let isLast = index == test.writers.count - 1
            let version =
                isDeleted && isLast
                ? Change.delete(table, base: newest) : Change.edit(table, ["1", "2"], base: newest, updatedAt: 1)
            try partition.send(version, from: writer, for: .abc)
        }
        let before = try #require(partition.row(table))
        #expect(before.isDeleted == isDeleted)
        #expect(before.timeStamp == TimeStamp(Int64(test.writers.count) + shift))
        let step = try partition.send(change(test.base == 0 ? 0 : test.base + shift))
        if test.isCurrent {
            #expect(["applied", "deleted"].contains(step.statuses.first?.name))
        } else {
            #expect(step.statuses == [.conflict])
            #expect(step.rows.isEmpty && partition.row(table) == before)
            #expect(partition.state.timeStamp == before.timeStamp)
            #expect(step.results.first?.heldFrom == nil)
        }
    }

    @Test func laterEditsOfARowInABatchSeeTheDevicesOwnVersions() throws {
        var partition = Partition()
        try partition.send(.edit(.account, ["1", "1"]), from: .k2)
        let step = try partition.send(
            .edit(.account, ["2", nil], base: 1), .edit(.account, ["3", nil], base: 1), .delete(.account, base: 1))
        #expect(step.statuses.map(\.name) == ["applied", "applied", "applied"])
        #expect(partition.row(.account)?.othersTimeStamp == TimeStamp(1))
    }

    /// The writers in order, and the newest timeStamp by another device than the last writer.
    @Test(
        arguments: [
            ([Device.k1], 0), ([.k1, .k1], 0), ([.k1, .k2], 1), ([.k1, .k2, .k2], 1), ([.k1, .k2, .k1], 2),
            ([.k1, .k2, .k1, .k1], 2), ([.k1, .k2, .k1OfDef], 2), ([.k1, .k1OfDef, .k1], 2), ([.k2, .k2, .k1, .k2], 3),
        ] as [([Device], Int64)])
    func aRowKnowsTheNewestVersionByOtherDevices(writers: [Device], others: Int64) throws {
        var partition = Partition()
        for writer in writers { try partition.send(.edit(.note, ["1", "2"]), from: writer, for: .abc) }
        let row = try #require(partition.row(.note))
        #expect(row.othersTimeStamp == TimeStamp(others))
        #expect(row.writer == writers.last)
        #expect(row.version == Int64(writers.count))
    }
}

/// Rule 3's second half: rows that do not exist.
@Suite struct AbsentRowTests {
    @Test(arguments: Fixture.allCases, [false, true])
    func anEditOfAnAbsentRowIsRefused(table: Fixture, ifBase: Bool) throws {
        var partition = Partition()
        let step = try partition.send(.edit(table, ["1", "2"], base: 5, ifBase: ifBase))
        #expect(step.statuses.map(\.name) == ["row_gone"])
        #expect(step.rows.isEmpty && partition.state.timeStamp == .zero)
    }

    @Test(arguments: Fixture.allCases, [0, 5])
    func aDeleteOfAnAbsentRowIsAppliedWithZeros(table: Fixture, base: Int64) throws {
        var partition = Partition()
        let step = try partition.send(.delete(table, ["1", "2"], base: base, ifBase: true))
        #expect(step.statuses == [.applied(timeStamp: .zero, version: 0, knowledgeID: nil)])
        #expect(step.rows.isEmpty && partition.state.timeStamp == .zero)
    }

    static let creations: [([String?], String)] = [
        (["\"n\"", nil, nil], "applied"), ([nil, "2", "\"r\""], "missing_value"), ([], "missing_value"),
        (["\"n\""], "applied"),
    ]

    @Test(arguments: creations)
    func aCreationNeedsItsRequiredColumns(values: [String?], status: String) throws {
        var partition = Partition()
        let step = try partition.send(.edit(.member, values))
        #expect(step.statuses.map(\.name) == [status])
        #expect((partition.row(.member) == nil) == (status == "missing_value"))
    }

    @Test func aCreationFillsInDefaultsAndNull() throws {
        var partition = Partition()
        try partition.send(.edit(.member, ["\"n\""], by: "other"), batch: 4, at: 77)
        let row = try #require(partition.row(.member))
        #expect(row.values.json == ["\"n\"", "1", "null"])
        #expect(row.knowledgeID.text == "other")
        #expect(row.version == 1 && !row.isDeleted)
        #expect(row.createdAt == 77 && row.updatedAt == 77)
        #expect(row.writer == .k1 && row.writerBatch == 4)
    }

    @Test func aCreationThatSendsNullDoesNotGetADefault() throws {
        var partition = Partition()
        try partition.send(.edit(.member, ["\"n\"", "5", "null"]))
        #expect(partition.row(.member)?.values.json == ["\"n\"", "5", "null"])
    }

    @Test func rowsWithEqualIdsOfTwoOwnersOrTablesAreDistinct() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "1"]))
        try partition.send(.edit(.note, ["2", "2"]), from: .k1, for: .def)
        try partition.send(.edit(.shift, ["3", "3"]))
        #expect(partition.row(.note)?.values.json == ["1", "1"])
        #expect(partition.row(.note, of: .def)?.values.json == ["2", "2"])
        #expect(partition.row(.shift)?.values.json == ["3", "3"])
    }
}

/// Rule 3 with `ifUnchanged`: the row is at `base`, whoever wrote it.
@Suite struct UnchangedTests {
    @Test(arguments: [Device.k1, .k2], [Fixture.note, .task, .account])
    func aChangedRowIsAConflictWhoeverChangedIt(writer: Device, table: Fixture) throws {
        for (base, isUnchanged) in [(Int64(0), false), (1, false), (2, true), (3, false)] {
            var partition = Partition()
            try partition.send(.edit(table, ["1", "2"], updatedAt: 1), from: writer, for: .abc)
            try partition.send(.edit(table, ["3", "4"], base: 1, updatedAt: 1), from: writer, for: .abc)
            for change in [
                Change.edit(table, ["9", nil], base: base, ifUnchanged: true, updatedAt: 900),
                .delete(table, base: base, ifUnchanged: true),
            ] {
                var copy = partition
                let step = try copy.send(change)
                #expect(step.statuses.first?.name == (isUnchanged ? "applied" : "conflict"), "base \(base)")
                if !isUnchanged { #expect(step.written.isEmpty) }
            }
        }
    }

    @Test func aCreationNeedsThatThereIsNoRowAndNoTombstone() throws {
        var partition = Partition()
        let creation = Change.edit(.note, ["1", "2"], ifUnchanged: true)
        #expect(try partition.send(creation).statuses.first?.name == "applied")
        #expect(try partition.send(creation).statuses.first?.name == "conflict")
        #expect(try partition.send(.delete(.note, base: 1, ifUnchanged: true)).statuses.first?.name == "applied")
        #expect(try partition.send(creation).statuses.first?.name == "conflict")
        #expect(try partition.send(.delete(.note, ifUnchanged: true)).statuses.first?.name == "conflict")
    }

    @Test func theTombstonesTimeStampRevivesARow() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]))
        try partition.send(.delete(.note, base: 1))
        let step = try partition.send(.edit(.note, ["3", "4"], base: 2, ifUnchanged: true))
        #expect(step.statuses.first?.name == "applied")
        #expect(try #require(partition.row(.note)).isDeleted == false)
    }

    @Test func anAbsentRowIsAsWithoutTheCondition() throws {
        var partition = Partition()
        #expect(
            try partition.send(.edit(.note, ["1", "2"], base: 5, ifUnchanged: true)).statuses.first?.name == "row_gone")
        #expect(try partition.send(.delete(.note, base: 5, ifUnchanged: true)).statuses.first?.name == "applied")
    }

    @Test(arguments: [1, 2, 3])
    func earlierRulesDoNotKnowIt(rules: Int) throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]))
        var part = partition.part([.edit(.note, ["3", "4"], ifUnchanged: true)])
        part.rules = rules
        #expect(try partition.order(part).statuses.first?.name == "applied")
    }
}
