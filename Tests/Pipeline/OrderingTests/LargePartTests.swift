import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import Testing

/// Parts that touch large rows: what is read for them is bounded, and the results are those of the machine alone (I4, I10).
@Suite(.timeLimit(.minutes(5)))
struct LargePartTests {
    /// The JSON of each of the large rows.
    private static let rowBytes = 10_000
    private static let sliceBytes = 30_000
    private static let slices = OrderingConfiguration().with(\.stepRowBytes, sliceBytes)

    /// Parts that each make one large row.
    private func creations(_ count: Int, _ maker: inout PartMaker) -> [ChangePart] {
        (0..<count).map { number in
            let text = String(repeating: "x", count: Self.rowBytes - 3)
            return maker.part([.edit("r\(number)", ["1", "\"\(text)\""])], batch: Int64(number + 1))
        }
    }

    /// One batch with a small edit of each row.
    private func edits(_ rows: Range<Int>, _ maker: inout PartMaker, batch: Int64, limit: Int = 1 << 30) -> ChangePart {
        var part = maker.part(rows.map { .edit("r\($0)", ["\($0)"]) }, device: "k2", batch: batch)
        part.maxBatchRowBytes = limit
        return part
    }

    /// Orders parts into tables and returns what was asked of these.
    private func order(
        _ log: MemoryChangeLog, _ tables: SQLiteRecordStore, until offset: Int,
        _ configuration: OrderingConfiguration = OrderingConfiguration()
    ) async throws -> (store: WatchedStore, reads: [(rows: Int, bytes: Int)]) {
        let stage = Stage(log, WatchedStore(tables), configuration: configuration)
        await stage.store.until(Int64(offset))
        try await stage.stop()
        return (stage.store, stage.store.reads)
    }

    @Test
    func readsTheRowsOfABatchUpToItsLimitAndTheRestIsSentAgain() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = creations(40, &maker)
            try await log.append(parts)
            _ = try await order(log, tables, until: 40)
            // Ten rows reach it.
            let limit = 10 * Self.rowBytes
            var rest = 0..<40
            for batch in 1...4 {
                let part = edits(rest, &maker, batch: Int64(batch), limit: limit)
                let next = maker.part([.edit("small", ["\(batch)"])], device: "k3", batch: Int64(batch))
                try await log.append([part, next])
                parts += [part, next]
                let (store, reads) = try await order(log, tables, until: parts.count, Self.slices)
                // No lookup is larger, and all together read no more than the limit and one lookup beyond it.
                for read in reads { #expect(read.bytes < Self.sliceBytes + 2 * Self.rowBytes) }
                #expect(reads.reduce(0) { $0 + $1.rows } <= 14)
                let outcome = try #require(
                    await store.tables(of: 0).outcomes[part.deviceKey]?.first { $0.batch == part.batch })
                let applied = outcome.results.prefix { !$0.status.isRejected }.count
                #expect(applied == 10)
                #expect(
                    outcome.results.dropFirst(applied).allSatisfy { $0.status.isBatchRowsTooLarge && $0.locator == nil }
                )
                rest = (rest.lowerBound + applied)..<40
            }
            #expect(rest.isEmpty)
            let byHand = try ByHand(parts)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await WatchedStore(tables).tables(of: 0) == byHand.tables)
        }
    }

    @Test
    func anAtomicBatchAboveItsLimitIsAbortedAndThePartitionContinues() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = creations(12, &maker)
            var atomic = edits(0..<12, &maker, batch: 1, limit: 5 * Self.rowBytes)
            atomic.isAtomic = true
            parts += [atomic, edits(0..<12, &maker, batch: 2)]
            try await log.append(parts)
            let (store, _) = try await order(log, tables, until: 14, Self.slices)
            let found = try await store.tables(of: 0)
            let outcome = try #require(found.outcomes[atomic.deviceKey]?.first)
            #expect(outcome.results.count { $0.status.isBatchRowsTooLarge } == 7)
            #expect(outcome.results.allSatisfy { $0.status.isRejected })
            #expect(found.rows.values.allSatisfy { $0.version == 2 })
            #expect(try await log.piecesOnce(in: 0) == ByHand(parts).pieces)
        }
    }

    /// However steps and lookups are cut, and wherever a worker takes over.
    @Test(arguments: [1, 12_000, 30_000, 8 << 20], [0, 1, 3])
    func theResultsAreTheSameHoweverRowsAreRead(stepRowBytes: Int, dyingAt: Int) async throws {
        var maker = PartMaker()
        var parts = creations(10, &maker)
        for batch in 1...6 {
            let first = batch % 4
            parts.append(
                edits(first..<10, &maker, batch: Int64(batch), limit: [1, 25_000, 60_000, 1 << 30][batch % 4]))
            // Makes rows smaller, or larger: rows count as they were before each part.
            let text = String(repeating: "y", count: batch % 2 == 0 ? 10 : 20_000)
            parts.append(
                maker.part(
                    [.edit("r\(first)", [nil, "\"\(text)\""]), .edit("n\(batch)", ["1"])], batch: Int64(10 + batch),
                    schema: batch > 3 ? 2 : 1))
        }
        let byHand = try ByHand(parts)
        let configuration = OrderingConfiguration().with(\.stepRowBytes, stepRowBytes)
        try await withLogAndTables { log, tables in
            try await log.append(Array(parts.dropLast()))
            let dying = WatchedStore(tables) { number throws(RecordStoreError) in
                if number == dyingAt { throw RecordStoreError(.closed, message: "the process dies") }
            }
            let first = Stage(log, dying, configuration: configuration)
            await dying.until(Int64(parts.count) - 1)
            first.cancel()
            do { try await first.ended() } catch is RecordStoreError {}
            try await log.append(Array(parts.suffix(1)))
            let (store, _) = try await order(log, tables, until: parts.count, configuration)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await store.tables(of: 0) == byHand.tables)
        }
    }

    /// The rows of several parts turn out to be larger than those read before.
    @Test
    func aStepIsCutWhereItsRowsAreLargerThanExpected() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = creations(30, &maker)
            try await log.append(parts)
            _ = try await order(log, tables, until: 30)
            let next = (0..<10).map { edits(($0 * 3)..<($0 * 3 + 3), &maker, batch: Int64($0 + 1)) }
            try await log.append(next)
            parts += next
            // By the first estimate all ten parts fit.
            let (store, reads) = try await order(log, tables, until: 40, Self.slices.with(\.stepRowBytes, 35_000))
            for read in reads { #expect(read.bytes < 35_000 + 2 * Self.rowBytes) }
            #expect(reads.count >= 10)
            let byHand = try ByHand(parts)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await store.tables(of: 0) == byHand.tables)
        }
    }

    /// A device that had no answer sends its batch again: its outcome is known, and no row matters.
    @Test
    func aRepeatIsDecidedWithTheFirstLookup() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = creations(12, &maker)
            parts += [edits(0..<12, &maker, batch: 1), edits(0..<12, &maker, batch: 1)]
            try await log.append(Array(parts.dropLast()))
            _ = try await order(log, tables, until: 13)
            try await log.append(Array(parts.suffix(1)))
            let (store, reads) = try await order(log, tables, until: 14, Self.slices)
            #expect(reads.map(\.rows) == [3])
            #expect(try await log.piecesOnce(in: 0) == ByHand(parts).pieces)
            #expect(try await store.tables(of: 0).rows.values.allSatisfy { $0.version == 2 })
        }
    }

    @Test
    func smallRowsAreReadInOneLookupOfAStep() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(200))
            _ = try await order(log, tables, until: 200)
            let next = (0..<20).map { number in
                maker.part(
                    (0..<10).map { .edit("r\(number * 10 + $0)", ["7"]) }, device: "k2", batch: Int64(number + 1))
            }
            try await log.append(next)
            let (_, reads) = try await order(log, tables, until: 220)
            #expect(reads.map(\.rows) == [200])
        }
    }

    /// What a worker read before it was replaced does not fit to what it reads later.
    @Test(arguments: [1, 2])
    func publishesNothingIfAnotherWorkerWritesBetweenTwoLookups(number: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(creations(12, &maker))
            _ = try await order(log, tables, until: 12)
            let large = edits(0..<12, &maker, batch: 1)
            try await log.append([large, maker.part([.edit("small", ["1"])], device: "k3", batch: 1)])
            let stored = try #require(await tables.position(of: 0))
            var moved = stored
            moved.state.nextOffset = 13
            moved.state.uploads[0] = UploadProgress(offset: large.upload.offset, part: 0)
            let other = StoreStep(partition: 0, expected: stored, position: moved, rows: [], outcomes: [])
            let store = WatchedStore(
                tables,
                beforeRead: { read throws(RecordStoreError) in
                    if read == number { try await tables.commit([other]) }
                })
            let stage = Stage(log, store, configuration: Self.slices)
            await store.until(14)
            try await stage.stop()
            let published = try await log.records(of: TopicPartition(.ordered, 0)).map {
                try OrderedPiece(decoding: $0.value).changesOffset
            }
            #expect(published.contains(13) && !published.contains(12))
        }
    }

    /// Steps that are written between two lookups of a part leave the overlay, which its rows were taken from.
    @Test(arguments: [1, 2, 3])
    func stepsAreWrittenBetweenTwoLookups(number: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = creations(12, &maker)
            try await log.append(parts)
            _ = try await order(log, tables, until: 12)
            // The rows of the second part are in the overlay in part; the lookups of the first are the reads 0 to 1.
            parts += [edits(3..<5, &maker, batch: 1), edits(0..<12, &maker, batch: 2, limit: 9 * Self.rowBytes)]
            try await log.append(Array(parts[12...]))
            let written = Signal<Int>()
            let store = WatchedStore(
                tables,
                beforeRead: { read throws(RecordStoreError) in
                    if read == 0 { log.pause() }
                    guard read == number else { return }
                    log.resume()
                    await written.until { !$0.isEmpty }
                })
            let stage = Stage(log, store, configuration: Self.slices.with(\.stepBytes, 1))
            await store.until(13)
            written.add(1)
            await store.until(14)
            try await stage.stop()
            let byHand = try ByHand(parts)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await store.tables(of: 0) == byHand.tables)
        }
    }
}
