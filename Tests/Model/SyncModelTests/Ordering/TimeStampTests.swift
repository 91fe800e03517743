import SyncModel
import Testing

/// I3.
@Suite struct TimeStampTests {
    @Test func aTimeStampIsTheLogsTimeOrOneMoreThanThePrevious() throws {
        var partition = Partition(clock: .logTime)
        // The log's time, and the timeStamps of two changes ordered then; the log's clock may go back.
        let steps: [(Int64, [Int64])] = [
            (1_000, [1_000, 1_001]), (1_001, [1_002, 1_003]), (500, [1_004, 1_005]), (-7, [1_006, 1_007]),
            (1_500, [1_500, 1_501]), (1_502, [1_502, 1_503]),
        ]
        for (logTime, expected) in steps {
            let step = try partition.send(.edit(.note, ["1", nil]), .edit(.shift, ["1", nil]), at: logTime)
            #expect(step.rows.map(\.timeStamp) == expected.map { TimeStamp($0) })
            #expect(partition.state.timeStamp == step.rows.last?.timeStamp)
        }
    }

    @Test func aSequenceStartsAtItsFirstNumber() throws {
        var partition = Partition(clock: .sequence(first: 100))
        try partition.send(.delete(.note), at: 5_000)
        #expect(partition.state.timeStamp == .zero)
        for expected in Int64(100)...103 {
            try partition.send(.edit(.note, ["1", nil]), at: 5_000)
            #expect(partition.row(.note)?.timeStamp == TimeStamp(expected))
        }
    }

    @Test func onlyAChangeThatWritesARowTakesATimeStamp() throws {
        var partition = Partition()
        try partition.send(.edit(.account, ["1", "1"], id: "theirs"), from: .k2)
        try partition.send(.edit(.note, ["1", "1"], id: "gone"), .delete(.note, id: "gone"))
        let step = try partition.send(
            .edit(.account, ["2", nil], id: "theirs"), .edit(.note, ["1", nil], id: "a"), .delete(.note, id: "none"),
            .edit(.note, ["1", nil], id: "none", base: 9), .delete(.note, id: "gone"),
            .edit(.note, ["1", nil], id: "b"))
        #expect(
            step.statuses.map(\.name) == ["conflict", "applied", "applied", "row_gone", "applied", "applied"])
        #expect(step.rows.map(\.key.id.text) == ["a", "b"])
        #expect(step.rows.map(\.timeStamp.rawValue) == [4, 5])
    }

    @Test func ownersOfAPartitionShareItsTimeStamps() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", nil]), for: .abc)
        try partition.send(.edit(.note, ["1", nil]), for: .def)
        #expect(partition.row(.note, of: .def)?.timeStamp == TimeStamp(2))
    }

    @Test func theRowsOfAPartAreUniqueAndOrderedByTimeStamp() throws {
        var partition = Partition()
        let step = try partition.send(
            .edit(.note, ["1", "1"], id: "c"), .edit(.note, ["1", "1"], id: "a"), .edit(.shift, ["1", "1"], id: "c"),
            .edit(.note, ["2", nil], id: "c"), .edit(.note, ["1", "1"], id: "b"))
        #expect(step.rows.map(\.key.id.text) == ["a", "c", "c", "b"])
        #expect(step.rows.map(\.timeStamp.rawValue) == [2, 3, 4, 5])
        #expect(step.rows[2].version == 2 && step.rows[2].values.json == ["2", "1"])
    }

    @Test func thePartitionPausesWhenEveryTimeStampIsUsedUp() throws {
        var partition = Partition(clock: .logTime)
        partition.state.timeStamp = TimeStamp((1 << 53) - 2)
        try partition.send(.edit(.note, ["1", "1"]))
        #expect(partition.row(.note)?.timeStamp == .maximum)
        let before = partition
        #expect(throws: OrderingMachine.Pause.timeStampsExhausted) { try partition.send(.edit(.note, ["2", "2"])) }
        #expect(partition.rows == before.rows && partition.state == before.state)
        // A part that writes nothing is still applied.
        #expect(try partition.send(.delete(.note, id: "none")).statuses.map(\.name) == ["applied"])
    }

    @Test func aLogTimeBeyondTheRangePauses() throws {
        var partition = Partition(clock: .logTime)
        #expect(throws: OrderingMachine.Pause.timeStampsExhausted) {
            try partition.send(.edit(.note, ["1", "1"]), at: 1 << 53)
        }
    }

    @Test(arguments: [(-1, false), (0, true), (1, true), ((1 << 53) - 1, true), (1 << 53, false), (.max, false)])
    func aTimeStampIsAtLeastZeroAndBelowTwoToThe53(value: Int64, isValid: Bool) {
        #expect((TimeStamp(rawValue: value) != nil) == isValid)
    }
}
