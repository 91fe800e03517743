import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import Testing

/// What the stage makes of `changes`: what the machine makes of it by hand (I4).
@Suite(.timeLimit(.minutes(5)))
struct ResultTests {
    @Test(arguments: [UInt64(1), 2, 3, 4], [1, 3_000, 1 << 20])
    func comesToWhatTheMachineSaysByHand(seed: UInt64, stepBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            let parts = randomParts(160, seed: seed, owners: ["abc", "def"])
            let byHand = try ByHand(parts)
            try await log.append(parts)
            let stage = Stage(
                log, WatchedStore(tables), configuration: OrderingConfiguration().with(\.stepBytes, stepBytes))
            await stage.store.until(160)
            try await stage.stop()
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await stage.store.tables(of: 0) == byHand.tables)
        }
    }

    @Test
    func ordersPartitionsEachForItself() async throws {
        try await withLogAndTables { log, tables in
            let first = randomParts(60, seed: 7, owners: ["abc"])
            let second = randomParts(80, seed: 8, owners: ["ghi", "jkl"])
            try await log.append(first)
            try await log.append(second, to: 1)
            let stage = Stage(log, WatchedStore(tables))
            await stage.store.until(60)
            await stage.store.until(80, in: 1)
            try await stage.stop()
            for (partition, parts) in [first, second].enumerated() {
                let byHand = try ByHand(parts)
                #expect(try await log.piecesOnce(in: partition) == byHand.pieces)
                #expect(try await stage.store.tables(of: partition) == byHand.tables)
            }
        }
    }

    @Test
    func goesOnOverRowsThatAreNotWrittenYet() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = (1...6).map { maker.part([.edit("one", ["\($0)"])], batch: Int64($0)) }
            // Reads of rows of their own say how far the stage has come.
            parts += (1...3).map { maker.part([.edit("other\($0)", ["1"])], device: "k2", batch: Int64($0)) }
            try await log.append(parts)
            let stage = Stage(log, .pausing(log, tables), configuration: OrderingConfiguration().with(\.stepBytes, 1))
            await stage.store.untilReads(4)
            log.resume()
            await stage.store.until(9)
            try await stage.stop()
            let byHand = try ByHand(parts)
            let found = try await stage.store.tables(of: 0)
            #expect(found.rows.values.first { $0.key.id == RowID(unchecked: "one") }?.version == 6)
            #expect(found == byHand.tables)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
        }
    }

    /// The tables still have an outcome that the results on their way to them have pushed out.
    @Test(arguments: [1, 1 << 20])
    func forgetsAnOutcomeThatNewerOnesPushOutBeforeTheyAreWritten(stepBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = maker.creations(Outcome.keptPerDevice)
            try await log.append(parts)
            let first = Stage(log, WatchedStore(tables))
            await first.store.until(16)
            try await first.stop()

            let newer = maker.part([.edit("x", ["1"])], batch: 17)
            var repeated = maker.part([.edit("r0", ["0"])], batch: 1)
            repeated.contentHash = parts[0].contentHash
            repeated.summary = BatchSummary(
                changeCount: 2, otherOwners: [SyncID(unchecked: "def")],
                refusals: [Refusal(index: 1, code: .notGranted, message: "")])
            var kept = maker.part([.edit("r1", ["1"])], batch: 2)
            kept.summary = repeated.summary
            try await log.append([newer, repeated, kept])
            parts += [newer, repeated, kept]
            let second = Stage(
                log, .pausing(log, tables), configuration: OrderingConfiguration().with(\.stepBytes, stepBytes))
            await second.store.untilReads(stepBytes == 1 ? 2 : 1)
            log.resume()
            await second.store.until(19)
            try await second.stop()
            let byHand = try ByHand(parts)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            let headers = try byHand.pieces.map { try OrderedPieceHeader(decoding: $0) }
            #expect(headers.last { $0.changesOffset == 17 }?.verdict == .refused(.outcomeExpired))
            #expect(headers.last { $0.changesOffset == 18 }?.verdict == .repeated)
            // The other owners' parts are ordered by themselves.
            let pieces = try byHand.pieces.map { try OrderedPiece(decoding: $0) }
            let summary = BatchSummary(changeCount: 2, otherOwners: [SyncID(unchecked: "def")])
            #expect(pieces.suffix(2).map(\.summary) == [summary, summary])
        }
    }
}
