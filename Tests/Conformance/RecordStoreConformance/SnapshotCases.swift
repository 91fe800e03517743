import RecordStore
import Seeded
import SyncModel
import Synchronization
import Testing

/// The pieces of a snapshot, put together.
private struct Snapshot {
    var position: StoredPosition?
    var rows: [OrderedRow] = []
    var outcomes: [StoredOutcome] = []
    var usage: [StoredUsage] = []

    /// Reads a snapshot, expecting the position first and once, and one owner in a piece of rows.
    ///
    /// - Parameter onPiece: called with the number of each chunk on the reading thread.
    init(
        of partition: Int, ordinal: Int = 1, _ store: any RecordStore,
        onPiece: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws {
        let pieces = Mutex<[SnapshotChunk]>([])
        try await store.snapshot(of: partition, schemaOrdinal: ordinal) { piece in
            let index = pieces.withLock { pieces in
                pieces.append(piece)
                return pieces.count - 1
            }
            onPiece(index)
        }
        for (index, piece) in pieces.withLock({ $0 }).enumerated() {
            switch piece {
            case .position(let position):
                #expect(index == 0)
                self.position = position
            case .rows(let rows):
                #expect(Set(rows.map(\.key.owner)).count == 1)
                self.rows += rows
            case .outcomes(let outcomes):
                #expect(!outcomes.isEmpty)
                self.outcomes += outcomes
            case .usage(let usage):
                #expect(!usage.isEmpty)
                self.usage += usage
            }
        }
    }

    /// The rows by owner, in the order they came.
    var rowsByOwner: [SyncID: [OrderedRow]] { Dictionary(grouping: rows, by: \.key.owner) }
}

extension RecordStoreConformance {
    static let snapshotCases: [ConformanceCase] = [
        ConformanceCase("a snapshot of an empty partition has only a position") { harness in
            let store = try await harness.open(Sample.first)
            let snapshot = try await Snapshot(of: 0, store)
            #expect(snapshot.position == StoredPosition())
            #expect(snapshot.rows.isEmpty && snapshot.outcomes.isEmpty && snapshot.usage.isEmpty)
        },
        ConformanceCase("what owners have is the newest that a step wrote, and is in snapshots") { harness in
            let store = try await harness.open(Sample.first)
            var (partition, other) = (PartitionHand(store, 0), PartitionHand(store, 1))
            let owners = ["é", "e\u{301}", "a", "gone"].map { owner($0) }
            let most = OwnerUsage(rows: .max, bytes: .max - 1, deletedRows: .max - 2, deletedBytes: .max - 3)
            func usage(_ number: Int64) -> OwnerUsage {
                OwnerUsage(rows: number, bytes: number + 1, deletedRows: number + 2, deletedBytes: number + 3)
            }
            try await partition.commit(usage: [owners[0]: usage(1), owners[1]: usage(2), owners[3]: usage(3)])
            try await other.commit(usage: [owners[2]: most])
            try await partition.commit(usage: [owners[0]: usage(7), owners[3]: OwnerUsage()])
            // A step without it leaves it.
            try await partition.commit()
            let found = try await store.usage(of: [owner("x")] + owners.dropLast(2), in: 0)
            #expect(found == [OwnerUsage(), usage(7), usage(2)])
            let lookup = try await store.lookup(
                rows: [], progress: [], applied: [], usage: [owners[1], owner("x"), owners[0]], in: 0,
                schemaOrdinal: 1, maximumBytes: 1)
            #expect(lookup.usage == [usage(2), OwnerUsage(), usage(7)])
            #expect(
                try await Snapshot(of: 0, store).usage == [
                    StoredUsage(owner: owners[1], usage: usage(2)), StoredUsage(owner: owners[0], usage: usage(7)),
                ])
            #expect(try await Snapshot(of: 1, store).usage == [StoredUsage(owner: owners[2], usage: most)])
            var late = PartitionHand(store)
            await expectError(.fenced) { try await late.commit(usage: [owners[0]: most]) }
            #expect(try await store.usage(of: [owners[0]], in: 0) == [usage(7)])
        },
        ConformanceCase("a snapshot has all rows of its partition by owner and timeStamp, over all tables") { harness in
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store, 1)
            var other = PartitionHand(store, 2)
            var random = SeededRandom(seed: 0x5A9)
            var rows: [OrderedRow] = []
            for timeStamp in 1...3000 as ClosedRange<Int64> {
                let name = ["é", "e\u{301}", "z"][Int(random.next() % 3)]
                let id = String(random.next(), radix: 36)
                rows.append(
                    random.next() % 2 == 0
                        ? orderRow(id, "\(timeStamp)", of: name, timeStamp: timeStamp)
                        : row(Sample.everyType, name, id, timeStamp, Array(repeating: "null", count: 10)))
            }
            rows[7].isDeleted = true
            try await partition.commit(rows.shuffled(using: &random))
            try await other.commit([orderRow("a", "elsewhere", of: "other", timeStamp: 1)])

            let snapshot = try await Snapshot(of: 1, store)
            #expect(snapshot.position == partition.position)
            #expect(snapshot.rowsByOwner == Dictionary(grouping: rows, by: \.key.owner))
            // One owner after the other.
            let changes = zip(snapshot.rows, snapshot.rows.dropFirst()).filter { $0.key.owner != $1.key.owner }
            #expect(changes.count == 2)
        },
        ConformanceCase("a snapshot has the stored outcomes of its partition, each device's oldest first") { harness in
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store, 1)
            var other = PartitionHand(store, 2)
            // A device without rows, one with more outcomes than are stored, and owners that share a device.
            let keys = ["a", "b", "c"].map { DeviceKey(owner: owner("owner \($0)"), device: device("d")) }
            let stored = keys.flatMap { key in
                (1...20).map { StoredOutcome(key: key, outcome: outcome(Int64($0 * 2))) }
            }
            try await partition.commit([], stored)
            try await other.commit(
                [], [StoredOutcome(key: DeviceKey(owner: owner("z"), device: device("d")), outcome: outcome(1))])
            let snapshot = try await Snapshot(of: 1, store)
            let found = Dictionary(grouping: snapshot.outcomes, by: \.key)
            #expect(found.count == keys.count)
            for key in keys { #expect(found[key] == stored.filter { $0.key == key }.suffix(Outcome.keptPerDevice)) }
        },
        ConformanceCase("a snapshot is consistent while commits continue") { harness in
            let store = try await harness.open(Sample.first)
            var partition = PartitionHand(store)
            let key = DeviceKey(owner: owner("owner"), device: device("d"))
            // Every commit writes every row again, with its number as the version, and an outcome.
            func rows(_ number: Int64) -> [OrderedRow] {
                (0..<3000).map { index in
                    var row = orderRow("\(index)", "x", timeStamp: number * 3000 + Int64(index))
                    row.version = number
                    return row
                }
            }
            try await partition.commit(rows(1), [StoredOutcome(key: key, outcome: outcome(1))])
            let position = partition.position

            // The read blocks at its first chunks until a commit has finished.
            let handOver = HandOver()
            async let reading = {
                defer { handOver.end() }
                return try await Snapshot(of: 0, store, onPiece: { index in if index < 3 { handOver.offer() } })
            }()
            // Should a commit fail, the read goes on all the same.
            defer { for _ in 0..<3 { handOver.accept() } }
            var number: Int64 = 1
            for await _ in handOver.offers {
                number += 1
                try await partition.commit(rows(number), [StoredOutcome(key: key, outcome: outcome(number))])
                handOver.accept()
            }
            let snapshot = try await reading
            #expect(number == 4)
            #expect(snapshot.position == position)
            let isSame = snapshot.rows == rows(1)
            #expect(isSame)
            #expect(snapshot.outcomes.map(\.outcome) == [outcome(1)])
            let after = try await Snapshot(of: 0, store)
            let isNewest = after.rows == rows(4)
            #expect(isNewest)
        },
        ConformanceCase("a snapshot has the columns of the requested version") { harness in
            var partition = PartitionHand(try await harness.open(Sample.first))
            let old = orderRow("a", "old")
            try await partition.commit([old])
            try await partition.store.prepare(Sample.second)
            let late = row(Sample.late, "owner", "a", 2, ["\"x\""])
            try await partition.commit([late], ordinal: 2)
            let lifted = OrderedRow(old, values: old.values.lifted(to: Sample.version2.tables[Sample.order]))
            #expect(try await Snapshot(of: 0, ordinal: 1, partition.store).rows == [old])
            #expect(try await Snapshot(of: 0, ordinal: 2, partition.store).rows == [lifted, late])
        },
        ConformanceCase("the size of a partition is that of its snapshot") { harness in
            let store = try await harness.open(Sample.first)
            #expect(try await store.size(of: 1) == PartitionSize(rows: 0, outcomes: 0))
            var partition = PartitionHand(store, 1)
            var other = PartitionHand(store, 2)
            var rows: [OrderedRow] = []
            for timeStamp in 1...60 as ClosedRange<Int64> {
                let name = "owner \(timeStamp % 3)"
                rows.append(
                    timeStamp % 2 == 0
                        ? orderRow("\(timeStamp)", "x", of: name, timeStamp: timeStamp)
                        : row(Sample.everyType, name, "\(timeStamp)", timeStamp, Array(repeating: "null", count: 10)))
            }
            rows[7].isDeleted = true
            // A device with fewer outcomes than are stored, one with more, and one whose owner has no rows.
            let keys =
                [(DeviceKey(owner: owner("owner 1"), device: device("d")), 3)]
                + ["owner 2", "none"].map { (DeviceKey(owner: owner($0), device: device("e")), 20) }
            try await partition.commit(
                rows,
                keys.flatMap { key, count in
                    (1...count).map { StoredOutcome(key: key, outcome: outcome(Int64($0))) }
                })
            try await other.commit([orderRow("a", "elsewhere", of: "other", timeStamp: 1)])
            let snapshot = try await Snapshot(of: 1, store)
            let size = try await store.size(of: 1)
            #expect(size == PartitionSize(rows: 60, outcomes: 3 + 2 * Outcome.keptPerDevice))
            #expect(size.rows == snapshot.rows.count)
            #expect(size.outcomes == snapshot.outcomes.count)
            #expect(try await store.size(of: 2) == PartitionSize(rows: 1, outcomes: 0))
        },
        ConformanceCase("an error of a snapshot's body ends the read") { harness in
            struct Enough: Error {}
            var partition = PartitionHand(try await harness.open(Sample.first))
            try await partition.commit([orderRow("a", "x")])
            let count = Mutex(0)
            await #expect(throws: Enough.self) {
                try await partition.store.snapshot(of: 0, schemaOrdinal: 1) { _ in
                    count.withLock { $0 += 1 }
                    throw Enough()
                }
            }
            #expect(count.withLock { $0 } == 1)
            #expect(try await Snapshot(of: 0, partition.store).rows.count == 1)
        },
    ]
}
