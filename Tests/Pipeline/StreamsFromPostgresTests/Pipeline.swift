import ChangeLog
import Configuration
import FanOut
import FanOutLink
import Foundation
import MemoryChangeLog
import MemoryRecordStore
import Observability
import Ordering
import PartitionSupervision
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import Seeded
import SyncModel
import SyncWire
import Testing

typealias Tables = HeldStore<PostgresRecordStore>
typealias Stream = FanOut<MemoryChangeLog, Tables>

/// A log in memory, tables in Postgres and ordering between them, with a stream that follows `ordered` from its start.
final class Pipeline {
    let log: MemoryChangeLog
    let tables: Tables
    let reference: FanOut<MemoryChangeLog, MemoryRecordStore>
    let schema: String
    private let events = Events()
    private var uploads: Uploads
    /// The newest part in each partition.
    private var newest: [Int: PartReference] = [:]
    private let ordering: Task<Void, any Error>
    private let following: Task<Void, any Error>

    private init(seed: UInt64, folder: String) async throws {
        let server = try await PostgresServer.shared()
        schema = "streams \(UUID().uuidString.lowercased().prefix(8))"
        let parameters = try ConnectionParameters(server.connectionString())
        let store = try await PostgresRecordStore.open(
            PostgresRecordStoreConfiguration(shards: [parameters]).with(\.schema, schema).with(\.connections, 3))
        log = MemoryChangeLog(MemoryLogContents(partitionCount: Uploads.history.partitions), clock: { 1 })
        tables = HeldStore(store)
        let schemas = Uploads.schemas
        try await tables.prepare(schemas, epoch: Uploads.history.epoch)
        // Tables that remain empty: everything in this stream is from the log.
        let empty = MemoryRecordStore()
        try await empty.prepare(schemas, epoch: Uploads.history.epoch)
        let context = StageContext(log: log, history: Uploads.history, schemas: KnownSchemas(schemas))
        let reference = FanOut(
            context, partitions: Array(0..<Uploads.history.partitions), store: empty,
            configuration: FanOutConfiguration(directory: folder + "/reference"), observer: events)
        self.reference = reference
        let stage = OrderingService(
            context, store: tables, configuration: OrderingConfiguration().with(\.stepBytes, 3000))
        uploads = Uploads(seed: seed)
        ordering = Task { try await stage.run() }
        following = Task { try await reference.run() }
    }

    /// Runs a closure with a pipeline and a folder for the files of streams.
    static func with(seed: UInt64 = 1, _ body: (Pipeline, String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/streams-tests-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let pipeline = try await Pipeline(seed: seed, folder: folder)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(pipeline, folder))
        } catch {
            outcome = .failure(error)
        }
        pipeline.tables.releaseCommits()
        pipeline.ordering.cancel()
        await pipeline.reference.stop()
        _ = try await (pipeline.ordering.value, pipeline.following.value)
        await pipeline.tables.close()
        await pipeline.log.close()
        try FileManager.default.removeItem(atPath: folder)
        try outcome.get()
    }

    // MARK: Writing

    func upload(_ count: Int) async throws {
        let producer = try await log.producer()
        var records: [NewRecord] = []
        for _ in 0..<count {
            for (partition, part) in uploads.next() {
                guard let schema = Uploads.schemas.newest?.schema else { continue }
                newest[partition] = PartReference(
                    upload: part.upload, part: part.part, key: part.deviceKey, batch: part.batch)
                records.append(
                    NewRecord(to: TopicPartition(.changes, partition), value: part.encode(naming: schema)))
            }
        }
        try await producer.append(records)
        await producer.close()
    }

    /// Appends uploads and waits until tables and the reference have them.
    func order(_ count: Int) async throws {
        try await upload(count)
        try await ordered()
    }

    /// Waits until all that was uploaded is in the tables and in the reference.
    func ordered() async throws {
        for partition in partitions {
            let end = try await log.range(of: TopicPartition(.changes, partition)).end
            guard end > 0 else { continue }
            await tables.committed.until { commits in
                commits.contains { $0.partition == partition && $0.nextOffset >= end }
            }
            await events.applied(upTo: try await self.end(of: partition), of: partition)
        }
    }

    /// Waits until all that was uploaded is in the reference, whether or not the tables have it.
    func published() async throws {
        for part in newest.values { _ = try await reference.outcome(of: part, rows: .all, within: .seconds(240)) }
    }

    /// Removes what retention may: all but the newest result of each partition.
    func removeResults() async throws {
        try await log.removeRecords(of: .ordered, before: .max)
        for partition in partitions { #expect(try await start(of: partition) > 0) }
    }

    var partitions: Range<Int> { 0..<Uploads.history.partitions }

    func start(of partition: Int) async throws -> Int64 {
        try await log.range(of: TopicPartition(.ordered, partition)).start
    }

    func end(of partition: Int) async throws -> Int64 {
        try await log.range(of: TopicPartition(.ordered, partition)).end
    }

    // MARK: Streams

    /// Runs a stream whose files lie in a folder, from ready to stopped.
    func withStream(
        in folder: String, partitions: [Int]? = nil, awaitReady: Bool = true,
        check: FanOutConfiguration.Check = .full, _ body: (Stream, Events) async throws -> Void
    ) async throws {
        let events = Events()
        let served = partitions ?? Array(self.partitions)
        let stream = Stream(
            StageContext(log: log, history: Uploads.history, schemas: KnownSchemas(Uploads.schemas)),
            partitions: served, store: tables,
            configuration: FanOutConfiguration(directory: folder).with(\.check, check).with(\.rebuildRows, 50)
                .with(\.retryDelay, .milliseconds(1)...(.milliseconds(1))),
            observer: events)
        async let run: Void = stream.run()
        let outcome: Result<Void, any Error>
        do {
            if awaitReady { for partition in served { await events.ready(of: partition) } }
            outcome = .success(try await body(stream, events))
        } catch {
            outcome = .failure(error)
        }
        await stream.stop()
        try await run
        try outcome.get()
    }

    /// Waits until a stream has everything.
    func caughtUp(_ events: Events, partitions: [Int]? = nil) async throws {
        for partition in partitions ?? Array(self.partitions) {
            await events.applied(upTo: try await end(of: partition), of: partition)
        }
    }

    // MARK: Comparing

    /// Compares a stream with the reference: pages for vectors of every kind, and all outcomes.
    ///
    /// - Parameter owners: those that the stream serves.
    func expectSame(_ stream: Stream, seed: UInt64, owners: [SyncID] = Uploads.owners) async throws {
        var generator = SeededRandom(seed: seed)
        for _ in 0..<30 {
            let request = request(owners, &generator)
            let pages = try await stream.pull(request, within: .seconds(60))
            let isSame = try await pages == reference.pull(request, within: .seconds(60))
            try #require(isSame, "\(request)")
        }
        for owner in owners {
            let whole = PagePull(
                owners: [OwnerPull(owner: owner, knowledge: OwnerKnowledge())], limit: 10_000, maximumBytes: 1 << 30)
            let pages = try await stream.pull(whole, within: .seconds(60))
            let isSame = try await pages == reference.pull(whole, within: .seconds(60))
            try #require(isSame, "\(owner)")
        }
        for (device, last) in uploads.batches.sorted(by: { $0.value < $1.value }) {
            // Its own owner, and some others whose rows it may have written.
            for owner in owners where owner == device.caller || generator.chance(20) {
                for batch in max(1, last - 17)...last {
                    let key = DeviceKey(owner: owner, device: device)
                    let kept = try await stream.keptOutcome(of: batch, for: key, rows: .all, within: .zero)
                    let expected = try await reference.keptOutcome(of: batch, for: key, rows: .all, within: .zero)
                    try #require(kept == expected, "\(key) \(batch)")
                }
            }
        }
    }

    private func request(_ owners: [SyncID], _ generator: inout SeededRandom) -> PagePull {
        let asked = owners.shuffled(using: &generator).prefix(Int.random(in: 1...owners.count, using: &generator))
        return PagePull(
            owners: asked.map { owner in
                // Below the heads; above them the answer would be `historyChanged`.
                let numbers = Int64(0)...100
                var knowledge = OwnerKnowledge()
                for device in ["k1", "k2", "k3", "never"] where generator.chance(50) {
                    knowledge.entries[KnowledgeID(unchecked: device)] = TimeStamp(
                        100 * Int64.random(in: 0...1, using: &generator) + Int64.random(in: numbers, using: &generator))
                }
                if generator.chance(30) { knowledge.floor = TimeStamp(Int64.random(in: 0...150, using: &generator)) }
                let held = (0..<3).map { _ in TimeStamp(Int64.random(in: 100...300, using: &generator)) }
                return OwnerPull(owner: owner, knowledge: knowledge, held: generator.chance(30) ? Set(held) : [])
            }, limit: Int.random(in: 1...60, using: &generator),
            maximumBytes: generator.chance(50) ? 1 << 20 : Int.random(in: 1...9000, using: &generator))
    }
}

extension RowWindow {
    static let all = RowWindow(maximumBytes: 1 << 30)
}
