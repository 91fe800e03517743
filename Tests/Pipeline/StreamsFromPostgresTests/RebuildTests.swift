import FanOut
import FanOutLink
import Foundation
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// Streams made from tables in Postgres are those that following `ordered` from its start makes.
@Suite(
    .enabled(if: PostgresServer.programs != nil, Comment(rawValue: PostgresServer.skipReason)),
    .timeLimit(.minutes(5)))
struct RebuildTests {
    @Test(arguments: [UInt64(1), 2]) func aStreamFromTheTablesIsTheStreamFromTheLog(seed: UInt64) async throws {
        try await Pipeline.with(seed: seed) { pipeline, folder in
            try await pipeline.order(150)
            // Only the tables have the first rows.
            try await pipeline.removeResults()
            try await pipeline.withStream(in: folder + "/made") { stream, events in
                for partition in pipeline.partitions {
                    let rebuilt = events.events(of: partition).contains {
                        if case .rebuilt(let rows) = $0 { rows > 0 } else { false }
                    }
                    #expect(rebuilt)
                }
                try await pipeline.caughtUp(events)
                try await pipeline.expectSame(stream, seed: seed)
                // The rest of `ordered` is followed.
                try await pipeline.order(60)
                try await pipeline.caughtUp(events)
                try await pipeline.expectSame(stream, seed: seed + 100)
            }
            // The new file is used.
            try await pipeline.order(10)
            try await pipeline.withStream(in: folder + "/made") { stream, events in
                try await pipeline.caughtUp(events)
                try await pipeline.expectSame(stream, seed: seed + 200)
                for partition in pipeline.partitions {
                    let isDamaged = events.events(of: partition).contains(where: \.isDamage)
                    #expect(!isDamaged)
                }
            }
        }
    }

    @Test func orderingContinuesDuringARebuild() async throws {
        try await Pipeline.with { pipeline, folder in
            try await pipeline.order(100)
            let before = try await pipeline.end(of: 0)
            let hold = pipeline.tables.holdNextSnapshot()
            try await pipeline.withStream(in: folder + "/made", partitions: [0], awaitReady: false) { stream, events in
                // A failure below must not leave the store's thread blocked.
                defer { hold.signal() }
                await pipeline.tables.held.until { !$0.isEmpty }
                // The same rows, in the same tables, while the snapshot is open.
                try await pipeline.order(80)
                let after = try await pipeline.end(of: 0)
                try #require(after > before)
                hold.signal()
                await events.ready(of: 0)
                let first = events.events(of: 0).compactMap { event -> Int64? in
                    if case .applied(let records, _, let next, _) = event { next - Int64(records) } else { nil }
                }.first
                // It was built from the tables at its start.
                #expect(first == before)
                try await pipeline.caughtUp(events, partitions: [0])
                try await pipeline.expectSame(
                    stream, seed: 1, owners: Uploads.owners.filter { Uploads.partition(of: $0) == 0 })
            }
        }
    }

    @Test func waitsForTablesWhosePositionIsNotInTheLog() async throws {
        try await Pipeline.with { pipeline, folder in
            try await pipeline.order(30)
            // Results are published, and the log has removed them before their rows are in the tables.
            pipeline.tables.holdCommits()
            try await pipeline.upload(60)
            try await pipeline.published()
            try await pipeline.removeResults()
            try await pipeline.withStream(in: folder + "/made", awaitReady: false) { stream, events in
                let place = try #require(try await lagging(pipeline))
                await events.all.until { events in
                    events.contains { partition, event in
                        guard case .retrying(let reason, _) = event else { return false }
                        return partition == place && reason.contains("the stream waits for ordering")
                    }
                }
                let owner = try #require(Uploads.owners.first { Uploads.partition(of: $0) == place })
                await #expect(throws: FanOutError.self) { try await stream.heads(of: [owner]) }
                pipeline.tables.releaseCommits()
                for partition in pipeline.partitions { await events.ready(of: partition) }
                try await pipeline.ordered()
                try await pipeline.caughtUp(events)
                try await pipeline.expectSame(stream, seed: 1)
            }
        }
    }

    /// A partition whose tables are at a position that `ordered` no longer has.
    private func lagging(_ pipeline: Pipeline) async throws -> Int? {
        for partition in pipeline.partitions {
            let position = try await pipeline.tables.position(of: partition)?.orderedOffset ?? 0
            if try await pipeline.start(of: partition) > position { return partition }
        }
        return nil
    }

    @Test func readsOnePartitionOfADatabaseAtATime() async throws {
        try await Pipeline.with { pipeline, folder in
            try await pipeline.order(60)
            try await pipeline.withStream(in: folder + "/first") { stream, events in
                try await pipeline.withStream(in: folder + "/second") { other, otherEvents in
                    try await pipeline.caughtUp(events)
                    try await pipeline.caughtUp(otherEvents)
                    try await pipeline.expectSame(stream, seed: 1)
                    try await pipeline.expectSame(other, seed: 2)
                }
            }
            #expect(pipeline.tables.snapshotSessions == 1)
        }
    }

    @Test func stopsDuringARebuildAndRestartsIt() async throws {
        try await Pipeline.with { pipeline, folder in
            try await pipeline.order(100)
            let hold = pipeline.tables.holdNextSnapshot()
            try await pipeline.withStream(in: folder + "/made", awaitReady: false) { stream, _ in
                await pipeline.tables.held.until { !$0.isEmpty }
                async let stopped: Void = stream.stop()
                // The rest of the page has no capacity for rows.
                await #expect(throws: FanOutError.self) { try await stream.heads(of: Uploads.owners) }
                hold.signal()
                await stopped
            }
            // Its session resets what restarts.
            try await pipeline.withStream(in: folder + "/made") { stream, events in
                try await pipeline.caughtUp(events)
                try await pipeline.expectSame(stream, seed: 1)
            }
        }
    }

    @Test func servesOnlyTheConfiguredPartitions() async throws {
        let served = try #require(PartitionSelection("1-2"))
        try await Pipeline.with { pipeline, folder in
            try await pipeline.order(60)
            let numbers = try served.numbers(in: Uploads.history)
            try await pipeline.withStream(in: folder + "/made", partitions: numbers) { stream, events in
                try await pipeline.caughtUp(events, partitions: numbers)
                let (mine, others) = (
                    Uploads.owners.filter { numbers.contains(Uploads.partition(of: $0)) },
                    Uploads.owners.filter { !numbers.contains(Uploads.partition(of: $0)) }
                )
                try #require(!mine.isEmpty && !others.isEmpty)
                try await pipeline.expectSame(stream, seed: 1, owners: mine)
                for owner in others {
                    let request = PagePull(
                        owners: [OwnerPull(owner: owner, knowledge: OwnerKnowledge())], limit: 1, maximumBytes: 1)
                    await #expect(throws: FanOutError.notReady("partition 0 is not served here")) {
                        try await stream.pull(request, within: .zero)
                    }
                }
                #expect(!FileManager.default.fileExists(atPath: folder + "/made/fanout-0.db"))
            }
        }
    }
}

extension FanOutEvent {
    var isDamage: Bool { if case .damaged = self { true } else { false } }
}
