import RecordStore
import Seeded
import SyncModel
import Synchronization
import Testing

extension RecordStoreConformance {
    static let appliedChangeCases: [ConformanceCase] = [
        ConformanceCase("applied changes are read back completely") { harness in
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store)
            let (own, other) = (key("k"), key("k", of: "other"))
            let changes = [
                change(1, 5, 2, "k", own), change(2, 0, 0, nil, own), change(3, 7, 9, "creator", own),
                change(4, 8, 3, "k", own, isOfTombstone: true),
                change(5, 1 << 50, .max, String(repeating: "é", count: 127), own, isOfTombstone: true),
                change(1, 6, 1, "k", other),
            ]
            try await partition.commit(applied: Array(changes.prefix(4)))
            try await partition.commit(applied: Array(changes.dropFirst(4)))
            try await partition.expect(applied: changes)
            // None of these is there.
            let absent = [
                AppliedChangeKey(device: own, id: digest(99)), AppliedChangeKey(device: key("K"), id: digest(1)),
                AppliedChangeKey(device: DeviceKey(owner: owner("x"), device: device("k")), id: digest(1)),
            ]
            #expect(try await store.appliedChanges(absent, in: 0) == [nil, nil, nil])
        },
        ConformanceCase("a step has rows, outcomes and applied changes of one device, or only applied changes") {
            harness in
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store)
            let device = key("k")
            // Of a batch without a number, whose device is not known otherwise.
            try await partition.commit(applied: [change(1, 5, 2, "k", device)])
            #expect(try await partition.progress(device, batch: 1) == DeviceProgress())
            try await partition.commit(
                [], [StoredOutcome(key: device, outcome: outcome(3))], applied: [change(2, 6, 1, "k", device)])
            #expect(
                try await partition.progress(device, batch: 3) == DeviceProgress(highestBatch: 3, outcome: outcome(3)))
            try await partition.commit(applied: [change(3, 7, 1, "k", device)])
            try await partition.commit([], [StoredOutcome(key: device, outcome: outcome(4))])
            #expect(
                try await partition.progress(device, batch: 4) == DeviceProgress(highestBatch: 4, outcome: outcome(4)))
            try await partition.expect(applied: [
                change(1, 5, 2, "k", device), change(2, 6, 1, "k", device), change(3, 7, 1, "k", device),
            ])
        },
        ConformanceCase("a fenced step stores no applied change") { harness in
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store)
            try await partition.commit(applied: [change(1, 5, 2, "k", key("k"))])
            var late = PartitionHand(store)
            await expectError(.fenced) { try await late.commit(applied: [change(2, 6, 1, "k", key("k"))]) }
            try await partition.expect(applied: [change(1, 5, 2, "k", key("k"))])
        },
        ConformanceCase("thousands of applied changes are kept apart by partition, and in snapshots by position") {
            harness in
            let store = try await harness.open(Sample.first)
            var random = SeededRandom(seed: 0xA9)
            var partitions = [PartitionHand(store, 1), PartitionHand(store, 2)]
            var stored: [[StoredAppliedChange]] = [[], []]
            for round in 0..<4 {
                for index in partitions.indices {
                    let changes = (0..<700).map { number in
                        let device = DeviceKey(
                            owner: owner("owner\(index)"),
                            device: device("k\(Int.random(in: 0...3, using: &random))"))
                        return change(round * 1000 + number, Int64(number + 1), 1, "k1", device)
                    }
                    try await partitions[index].commit(applied: changes)
                    stored[index] += changes
                }
            }
            for (partition, changes) in zip(partitions, stored) { try await partition.expect(applied: changes) }
            // Another store of the same tables has them, too.
            let again = try await harness.open(Sample.first)
            let keys = stored[0].map(\.changeKey)
            #expect(try await again.appliedChanges(keys, in: 1) == stored[0].map(\.change))
        },
        ConformanceCase("an error of the reader of applied changes ends the read") { harness in
            struct Enough: Error {}
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store)
            try await partition.commit(applied: (0..<20).map { change($0, 5, 2, "k", key("k")) })
            await #expect(throws: Enough.self) { try await store.appliedChanges(of: 0) { _ in throw Enough() } }
            try await partition.expect(applied: (0..<20).map { change($0, 5, 2, "k", key("k")) })
        },
    ]

    private static func key(_ name: String, of owned: String = "owner") -> DeviceKey {
        DeviceKey(owner: owner(owned), device: device(name))
    }

    private static func digest(_ number: Int) -> ShortDigest {
        ShortDigest(prefixOf: (0..<16).map { UInt8(truncatingIfNeeded: number >> ($0 % 2 * 8)) ^ UInt8($0 * 17) })
    }

    private static func change(
        _ id: Int, _ timeStamp: Int64, _ version: Int64, _ creator: String?, _ key: DeviceKey,
        isOfTombstone: Bool = false
    ) -> StoredAppliedChange {
        StoredAppliedChange(
            key: key,
            change: AppliedChange(
                identity: ChangeIdentity(id: digest(id), content: digest(id + 7)), timeStamp: TimeStamp(timeStamp),
                version: version, knowledgeID: creator.map(KnowledgeID.init(unchecked:)),
                isOfTombstone: isOfTombstone))
    }
}

extension PartitionHand {
    /// Expects exactly these applied changes, one by one, with a lookup and all at once.
    fileprivate func expect(applied changes: [StoredAppliedChange]) async throws {
        let keys = changes.map(\.changeKey)
        let found = try await store.appliedChanges(keys, in: partition)
        #expect(found == changes.map(\.change))
        let lookup = try await store.lookup(
            rows: [], progress: [], applied: keys, usage: [], in: partition, schemaOrdinal: 1, maximumBytes: 1)
        #expect(lookup == StepLookup(rows: [], progress: [], applied: found, position: position))
        let all = Mutex<[StoredAppliedChange]>([])
        try await store.appliedChanges(of: partition) { more in all.withLock { $0 += more } }
        let whole = all.withLock { $0 }
        let isSame = whole.count == changes.count && Set(whole) == Set(changes)
        #expect(isSame, "\(whole.count) of \(changes.count) applied changes")
    }
}
