import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import RecordStore
import SQLiteRecordStore
import SyncModel
import Testing

/// Publish, then write (I5), over a bounded overlay (I10).
@Suite(.timeLimit(.minutes(5)))
struct PublishingTests {
    @Test
    func writesNothingBeforeOrderedHasIt() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(30))
            let ends = Signal<Int64>()
            let store = WatchedStore.pausing(log, tables) { _ in
                do throws(ChangeLogError) {
                    ends.add(try await log.range(of: TopicPartition(.ordered, 0)).end)
                } catch {
                    Issue.record(error)
                }
            }
            let stage = Stage(log, store, configuration: OrderingConfiguration().with(\.stepBytes, 1))
            await store.untilReads(30)
            #expect(try await store.position(of: 0) == nil)
            log.resume()
            await store.until(30)
            try await stage.stop()
            let written = store.events.facts.compactMap { event in
                if case .committing(let steps) = event { steps[0].position.orderedOffset } else { nil }
            }
            #expect(!written.isEmpty && written.count == ends.facts.count)
            for (offset, end) in zip(written, ends.facts) { #expect(offset > 0 && offset <= end) }
            #expect(try await log.range(of: TopicPartition(.ordered, 0)).end == written.last)
        }
    }

    @Test
    func pausesReadingWhenTooMuchWaitsForTheTables() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(60))
            let release = Signal<Bool>()
            let store = WatchedStore(tables) { number in
                if number == 0 { await release.until { !$0.isEmpty } }
            }
            // A step of one row takes more than 1500 bytes, so the third fills the bound.
            let stage = Stage(
                log, store, configuration: OrderingConfiguration().with(\.stepBytes, 1).with(\.overlayBytes, 4000))
            await store.untilReads(3)
            // While the tables of one partition hang, the other shows that there is time to read.
            for (number, part) in maker.creations(40, owner: "ghi").enumerated() {
                try await log.append([part], to: 1)
                await store.until(Int64(number) + 1, in: 1)
            }
            let reads = store.events.facts.count { event in
                if case .readRows(partition: 0) = event { true } else { false }
            }
            #expect(reads == 3)
            release.add(true)
            await store.until(60)
            try await stage.stop()
        }
    }

    /// Parts of a few bytes may need rows of any size, and their results are as large as the rows.
    @Test
    func takesFewPartsIntoAStepWhereTheirRowsAreLarge() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let text = "\"\(String(repeating: "x", count: 4000))\""
            try await log.append((0..<40).map { maker.part([.edit("r\($0)", ["1", text])], batch: Int64($0 + 1)) })
            let configuration = OrderingConfiguration().with(\.stepRowBytes, 20_000)
            let first = Stage(log, WatchedStore(tables), configuration: configuration)
            await first.store.until(40)
            try await first.stop()
            // Small edits of the large rows.
            try await log.append((0..<40).map { maker.part([.edit("r\($0)", ["2"])], batch: Int64($0 + 41)) })
            let second = Stage(log, WatchedStore(tables), configuration: configuration)
            await second.store.until(80)
            try await second.stop()
            for stage in [first, second] {
                let reads = stage.store.events.facts.count { if case .readRows = $0 { true } else { false } }
                #expect((8...20).contains(reads), "\(reads)")
            }
        }
    }

    @Test
    func partitionsShareTheRoomForWhatWaitsForTheTables() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(60))
            let release = Signal<Bool>()
            let store = WatchedStore(tables) { number in
                if number == 0 { await release.until { !$0.isEmpty } }
            }
            let stage = Stage(
                log, store, configuration: OrderingConfiguration().with(\.stepBytes, 1).with(\.overlayBytes, 4000))
            await store.untilReads(3)
            // The first partition has all the room: the second decides a message and writes it before it reads the next.
            try await log.append(maker.creations(40, owner: "ghi"), to: 1)
            await store.until(40, in: 1)
            let written = store.events.facts.flatMap { event in
                if case .committed(let steps) = event { steps } else { [StoreStep]() }
            }
            #expect(written.filter { $0.partition == 1 }.map(\.position.state.nextOffset) == Array(1...40))
            release.add(true)
            await store.until(60)
            try await stage.stop()
        }
    }

    @Test
    func writesWhatIsPublishedWhenItIsToldToEnd() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(12)
            try await log.append(parts)
            let cancelled = Signal<Bool>()
            let wasCancelled = Signal<Bool>()
            let store = WatchedStore(tables) { _ in
                wasCancelled.add(Task.isCancelled)
            } beforeRead: { number in
                if number == 0 { log.pause() }
                guard number == 11 else { return }
                // Ends when the task is cancelled.
                for await _ in AsyncStream<Never>.makeStream().stream {}
                cancelled.add(true)
            }
            let stage = Stage(log, store, configuration: OrderingConfiguration().with(\.stepBytes, 1))
            await store.untilReads(12)
            stage.cancel()
            await cancelled.until { !$0.isEmpty }
            log.resume()
            try await stage.ended()
            let position = try #require(try await store.position(of: 0))
            #expect(position.state.nextOffset >= 11)
            #expect(position.orderedOffset == (try await log.range(of: TopicPartition(.ordered, 0)).end))
            #expect(try await store.tables(of: 0) == ByHand(Array(parts.prefix(Int(position.state.nextOffset)))).tables)
            #expect(!wasCancelled.facts.contains(true), "a store may give up a cancelled caller's commit")
        }
    }

    @Test
    func endsWhileItWaitsForMessages() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(1))
            let stage = Stage(log, WatchedStore(tables))
            await stage.store.until(1)
            try await stage.stop()
            #expect(stage.store.events.facts.count { if case .committed = $0 { true } else { false } } == 1)
        }
    }
}
