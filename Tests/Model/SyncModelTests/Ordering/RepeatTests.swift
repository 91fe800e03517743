import SyncModel
import Testing

@Suite struct RepeatTests {
    @Test func theSameNumberAndContentGetsTheFirstOutcome() throws {
        var partition = Partition()
        let first = try partition.send(.edit(.note, ["1", "2"]), batch: 1, hash: 7)
        try partition.send(.edit(.note, ["3", "4"]), from: .k2, batch: 1)
        let before = partition
        let again = try partition.send(.edit(.note, ["1", "2"]), batch: 1, hash: 7)
        #expect(again.decision == .repeated(try #require(first.outcome)))
        #expect(again.rows.isEmpty && again.outcome == nil)
        #expect(partition.rows == before.rows && partition.state.timeStamp == before.state.timeStamp)
        #expect(partition.state.nextOffset == before.state.nextOffset + 1)
    }

    @Test func theSameNumberWithOtherContentAppliesNothing() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]), batch: 1, hash: 7)
        let kept = partition.devices
        let other = try partition.send(.edit(.note, ["1", "2"]), batch: 1, isAtomic: true, hash: 8)
        #expect(other.decision == .refused(.batchMismatch))
        #expect(other.rows.isEmpty && other.outcome == nil && partition.devices == kept)
        let first = try partition.send(.edit(.note, ["1", "2"]), batch: 1, hash: 7)
        #expect(first.decision == .repeated(try #require(kept.values.first?.first)))
    }

    @Test func numbersMayStartAnywhereAndSkip() throws {
        var partition = Partition()
        for batch: Int64 in [41, 42, 50] {
            #expect(try partition.send(.edit(.note, ["1", nil]), batch: batch).statuses.map(\.name) == ["applied"])
        }
        #expect(try partition.send(.edit(.note, ["1", nil]), batch: 45).decision == .refused(.outcomeExpired))
        #expect(try partition.send(.edit(.note, ["1", nil]), batch: 1).decision == .refused(.outcomeExpired))
        #expect(partition.row(.note)?.version == 3)
    }

    @Test func onlyTheNewestSixteenOutcomesAreReturnedForRepeats() throws {
        var partition = Partition()
        for batch in Int64(1)...17 { try partition.send(.edit(.note, ["1", nil]), batch: batch) }
        #expect(try partition.send(.edit(.note, ["1", nil]), batch: 1).decision == .refused(.outcomeExpired))
        guard case .repeated(let outcome) = try partition.send(.edit(.note, ["1", nil]), batch: 2).decision else {
            Issue.record("the second of 17 is kept")
            return
        }
        #expect(outcome.batch == 2)
    }

    @Test func aBatchWithoutANumberStoresNoOutcomeAndIsNeverARepeat() throws {
        var partition = Partition()
        for version in 1...2 {
            let step = try partition.send(.edit(.note, ["1", "2"]))
            #expect(step.outcome == nil)
            #expect(step.statuses.map(\.name) == ["applied"])
            #expect(partition.row(.note)?.version == Int64(version))
        }
        #expect(partition.devices.isEmpty)
        #expect(partition.row(.note)?.writerBatch == nil)
    }

    @Test func anEmptyBatchKeepsAnOutcome() throws {
        var partition = Partition()
        let step = try partition.send(batch: 3)
        let outcome = Outcome(
            batch: 3, contentHash: Array(repeating: 0, count: 32), timeStamp: .zero, results: [],
            summary: BatchSummary(changeCount: 0))
        #expect(step.outcome == outcome)
        #expect(try partition.send(batch: 2).decision == .refused(.outcomeExpired))
    }

    @Test func anOutcomeHoldsTheResultsAndTheSummaryOfTheBatch() throws {
        var partition = Partition()
        var part = partition.part([.edit(.note, ["1", "2"]), .edit(.note, ["1", nil], id: "x", base: 9)], batch: 1)
        let summary = BatchSummary(
            changeCount: 3, otherOwners: [.def],
            refusals: [Refusal(index: 2, code: .unknownTable, message: "no table \"nots\"")])
        part.summary = summary
        let step = try partition.order(part)
        #expect(step.decision == .ordered(results: step.results, summary: summary))
        #expect(step.outcome?.summary == summary)
        #expect(step.outcome?.results == step.results)
        #expect(step.results.map(\.index) == [0, 1])
        #expect(step.statuses.map(\.name) == ["applied", "row_gone"])
    }

    @Test func repeatsAreDetectedPerOwnerAndDevice() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]), from: .k1, batch: 5, hash: 1)
        let others: [(Device, SyncID)] = [(.k2, .abc), (.k1, .def), (.k1OfDef, .def), (.k1OfDef, .abc)]
        for (device, owner) in others {
            let step = try partition.send(.edit(.note, ["1", "2"]), from: device, for: owner, batch: 5, hash: 2)
            #expect(step.statuses.map(\.name) == ["applied"])
        }
        #expect(partition.devices.count == 5)
        #expect(try partition.send(.edit(.note, []), from: .k1, batch: 5).decision == .refused(.batchMismatch))
    }

    @Test func aBatchWithADifferentEpochAppliesNothingAndStoresNoOutcome() throws {
        var partition = Partition()
        var part = partition.part([.edit(.note, ["1", "2"])], batch: 9)
        part.hasOtherEpoch = true
        let step = try partition.order(part)
        #expect(step.decision == .refused(.historyChanged))
        #expect(step.rows.isEmpty && step.outcome == nil && partition.devices.isEmpty)
        #expect(partition.state.timeStamp == .zero)
        #expect(try partition.send(.edit(.note, ["1", "2"]), batch: 9).statuses.map(\.name) == ["applied"])
    }

    @Test func aBatchWithADifferentEpochIsReportedEvenIfItsNumberWasUsed() throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]), batch: 1)
        var part = partition.part([.edit(.note, ["1", "2"])], batch: 1)
        part.hasOtherEpoch = true
        #expect(try partition.order(part).decision == .refused(.historyChanged))
    }
}

@Suite struct DeliveryTests {
    /// Deliveries in order; only those above all previous ones of their partition of `uploads` are ordered.
    @Test func deliveriesNotAboveTheHighestOffsetAndPartAreDropped() throws {
        var partition = Partition()
        let deliveries: [(partition: Int, offset: Int64, part: Int, isNew: Bool)] = [
            (0, 10, 0, true), (0, 10, 0, false), (0, 10, 2, true), (0, 10, 1, false), (0, 9, 5, false),
            (1, 3, 0, true), (1, 3, 0, false), (0, 11, 0, true), (0, 10, 3, false), (1, 4, 1, true), (1, 4, 0, false),
        ]
        var ordered = 0
        for (index, delivery) in deliveries.enumerated() {
            var part = partition.part([.edit(.note, ["\(index)", nil])], batch: Int64(index) + 1)
            part.upload = UploadReference(partition: delivery.partition, offset: delivery.offset)
            part.part = delivery.part
            let before = partition
            let step = try partition.order(part)
            if delivery.isNew { ordered += 1 }
            #expect((step.decision != nil) == delivery.isNew, "delivery \(index)")
            #expect(partition.state.nextOffset == Int64(index) + 1)
            if !delivery.isNew {
                #expect(step.rows.isEmpty && step.outcome == nil)
                #expect(partition.rows == before.rows && partition.devices == before.devices)
                #expect(partition.state.timeStamp == before.state.timeStamp)
                #expect(partition.state.uploads == before.state.uploads)
            }
        }
        #expect(partition.row(.note)?.version == Int64(ordered))
        #expect(
            partition.state.uploads == [
                0: UploadProgress(offset: 11, part: 0), 1: UploadProgress(offset: 4, part: 1),
            ])
    }

    @Test func aBatchThatIsRefusedWholeCountsAsDelivered() throws {
        var partition = Partition()
        var part = partition.part([.edit(.note, ["1", nil])], batch: 1)
        part.hasOtherEpoch = true
        try partition.order(part)
        #expect(try partition.order(part).decision == nil)
    }

    @Test(arguments: [0, -1, RulesVersion.current + 1])
    func unknownRulesPause(rules: Int) throws {
        try expectPause(.unknownRules(rules)) { $0.rules = rules }
    }

    @Test func anUnknownSchemaVersionPauses() throws {
        try expectPause(.unknownSchema("v9")) { $0.schema = "v9" }
    }

    @Test func aCanonicallyEquivalentEpochIsADifferentEpochAndPauses() throws {
        try expectPause(.otherEpoch("other")) { $0.epoch = "other" }
        var partition = Partition()
        partition.machine = OrderingMachine(History(epoch: "K", partitions: 1))
        var part = partition.part([])
        part.epoch = "\u{212A}"
        #expect(throws: OrderingMachine.Pause.otherEpoch("\u{212A}")) { try partition.order(part) }
    }

    @Test func aStateWithAnUnknownSchemaVersionPauses() throws {
        var partition = Partition()
        partition.state.schemaOrdinal = 4
        let part = partition.part([])
        #expect(throws: OrderingMachine.Pause.unknownSchemaNumber(4)) { try partition.order(part) }
    }

    @Test func aTableOrValueThatTheSchemaVersionDoesNotHavePauses() throws {
        try expectPause(.invalidPart("a change names table 5 of 5")) { $0.changes[0].table = 5 }
        try expectPause(.invalidPart("a change names table -1 of 5")) { $0.changes[0].table = -1 }
        try expectPause(.invalidPart("a change of note has more values than columns")) {
            $0.changes[0].values = RowValues(json: ["1", nil, nil])
        }
    }

    private func expectPause(_ pause: OrderingMachine.Pause, _ spoil: (inout ChangePart) -> Void) throws {
        var partition = Partition()
        try partition.send(.edit(.note, ["1", "2"]), batch: 1)
        let before = partition.state
        var part = partition.part([.edit(.note, ["3", "4"])], batch: 2)
        let good = part
        spoil(&part)
        #expect(throws: pause) { try partition.order(part) }
        #expect(partition.state == before)
        #expect(try partition.order(good).statuses.map(\.name) == ["applied"])
    }
}
