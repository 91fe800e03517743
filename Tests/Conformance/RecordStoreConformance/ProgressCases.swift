import RecordStore
import SyncModel
import Testing

extension RecordStoreConformance {
    static let progressCases: [ConformanceCase] = [
        ConformanceCase("a device's progress has its highest batch and the requested outcome") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            try await partition.commit([], [StoredOutcome(key: key, outcome: outcome(5))])
            try await partition.commit([], [StoredOutcome(key: key, outcome: outcome(90))])
            #expect(
                try await partition.progress(key, batch: 5) == DeviceProgress(highestBatch: 90, outcome: outcome(5)))
            #expect(
                try await partition.progress(key, batch: 90) == DeviceProgress(highestBatch: 90, outcome: outcome(90)))
            for absent in [1, 6, 89, 91] as [Int64] {
                #expect(try await partition.progress(key, batch: absent) == DeviceProgress(highestBatch: 90))
            }
        },
        ConformanceCase("outcomes are read back completely") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let results = sampleResults
            let summary = BatchSummary(
                changeCount: 9, otherOwners: [owner("é"), owner("e\u{301}")],
                refusals: [Refusal(index: 8, code: .unknownTable, message: "no such table")])
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            let whole = outcome(.max, results: results, summary: summary)
            try await partition.commit([], [StoredOutcome(key: key, outcome: whole)])
            #expect(
                try await partition.progress(key, batch: .max) == DeviceProgress(highestBatch: .max, outcome: whole))
        },
        ConformanceCase("only the newest 16 outcomes of a device are stored") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            // Some alone, then more than 16 in one step; numbers skip.
            let batches = (1...40).map { Int64($0 * 3) }
            for batch in batches.prefix(20) {
                try await partition.commit([], [StoredOutcome(key: key, outcome: outcome(batch))])
            }
            try await partition.expectKept(batches.prefix(20), key)
            try await partition.commit([], batches.dropFirst(20).map { StoredOutcome(key: key, outcome: outcome($0)) })
            try await partition.expectKept(batches[...], key)
        },
        ConformanceCase("progress is stored per owner, caller and device, compared byte by byte") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            var keys: [DeviceKey] = []
            for owned in ["é", "e\u{301}"] {
                for caller in ["c", "C"] {
                    for name in ["k", "k "] {
                        keys.append(DeviceKey(owner: owner(owned), device: device(name, of: caller)))
                    }
                }
            }
            let outcomes = keys.enumerated().map { StoredOutcome(key: $1, outcome: outcome(Int64($0 + 1))) }
            try await partition.commit([], outcomes)
            let unknown = DeviceKey(owner: owner("x"), device: device("k", of: "c"))
            let requests =
                outcomes.map { ProgressRequest(key: $0.key, batch: $0.outcome.batch) }
                + [ProgressRequest(key: unknown, batch: 1), ProgressRequest(key: keys[2], batch: 1)]
            let answers = try await partition.store.progress(requests, in: 0)
            #expect(
                answers == outcomes.map { DeviceProgress(highestBatch: $0.outcome.batch, outcome: $0.outcome) }
                    + [DeviceProgress(), DeviceProgress(highestBatch: 3)])
        },
    ]

    private static let sampleResults: [ChangeResult] = [
        ChangeResult(
            index: 0, table: 1, id: RowID(unchecked: "a"),
            status: .applied(timeStamp: .maximum, version: 2, knowledgeID: KnowledgeID(unchecked: "k")),
            heldFrom: .zero),
        ChangeResult(
            index: 2, table: 0, id: RowID(unchecked: "e\u{301}"),
            status: .applied(timeStamp: .zero, version: 0, knowledgeID: nil), heldFrom: nil),
        ChangeResult(
            index: 3, table: 0, id: RowID(unchecked: "é"),
            status: .deleted(timeStamp: TimeStamp(5), version: 7, knowledgeID: KnowledgeID(unchecked: "other")),
            heldFrom: TimeStamp(4)),
        ChangeResult(
            index: 4, table: 0, id: RowID(unchecked: "b"), status: .conflict,
            locator: RowLocator(knowledgeID: KnowledgeID(unchecked: "third"), timeStamp: TimeStamp(9))),
        ChangeResult(index: 5, table: 1, id: RowID(unchecked: "c"), status: .refused(.rowGone, message: "gone")),
    ]
}

extension PartitionHand {
    /// Expects the newest 16 of these batches to have their outcomes, and no other.
    fileprivate func expectKept(_ batches: ArraySlice<Int64>, _ key: DeviceKey) async throws {
        let highest = try #require(batches.last)
        let requests = batches.map { ProgressRequest(key: key, batch: $0) }
        let answers = try await store.progress(requests, in: partition)
        for (batch, answer) in zip(batches, answers) {
            let isKept = batches.suffix(Outcome.keptPerDevice).contains(batch)
            #expect(
                answer == DeviceProgress(highestBatch: highest, outcome: isKept ? outcome(batch) : nil),
                "batch \(batch)")
        }
    }
}
