import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// A replaced worker that still holds the lock of a partition.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct StalledPredecessorTests {
    /// The predecessor stalls with the lock after sending half of its rows, in its first step or a later one.
    @Test(arguments: [1, 2] as [Int64])
    func aSuccessorTerminatesTheSessionThatHoldsTheLock(number: Int64) async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withProxiedStore { predecessor, proxy in
            try await predecessor.prepare(Samples.first)
            if number > 1 { try await predecessor.commit([Samples.step(1)]) }
            let rows = (0..<500).map { Samples.row("late \($0)") }
            // As much of the request as holds the lock and the first rows.
            proxy.hold(.toServer, after: 20_000)
            let late = Task { try await predecessor.commit([Samples.step(number, rows)]) }
            await proxy.waitUntilHeld()
            try await place.withStore {
                $0.stalledAfter = .milliseconds(100)
            } _: { successor in
                try await successor.prepare(Samples.first)
                try await successor.commit([Samples.step(number, [Samples.row("new")])])
                try await successor.commit([Samples.step(number + 1)])
                #expect(try await successor.rows(rows.map(\.key), in: 0, schemaOrdinal: 1).isEmpty)
                proxy.letGo()
                let error = await #expect(throws: RecordStoreError.self) { try await late.value }
                #expect(error?.code == .fenced, "\(error?.message ?? "")")
                #expect(error?.isRetriable == false)
                #expect(try await successor.position(of: 0) == Samples.position(number + 1))
            }
        }
    }

    /// Only a predecessor is terminated.
    @Test func waitsForAnOperatorsLock() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore {
            $0.stalledAfter = .milliseconds(100)
        } _: { store in
            try await store.prepare(Samples.first)
            try await place.execute("BEGIN; LOCK TABLE person IN ACCESS EXCLUSIVE MODE") {
                let error = await #expect(throws: RecordStoreError.self) {
                    try await store.commit([Samples.step(1, [Samples.row("a")])])
                }
                #expect(error?.code == .unavailable)
                #expect(error?.isRetriable == true)
            }
            try await store.commit([Samples.step(1, [Samples.row("a")])])
        }
    }

    /// Other partitions of the same store.
    @Test func otherPartitionsDoNotWait() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withProxiedStore { stalled, proxy in
            try await stalled.prepare(Samples.first)
            proxy.hold(.toServer, after: 20_000)
            let rows = (0..<500).map { Samples.row("late \($0)") }
            let late = Task { try await stalled.commit([Samples.step(1, rows)]) }
            await proxy.waitUntilHeld()
            try await place.withStore { store in
                try await store.prepare(Samples.first)
                let other = [Samples.row("a", of: "other")]
                try await store.commit([Samples.step(1, other, partition: 1)])
            }
            proxy.letGo()
            try await late.value
            #expect(try await stalled.position(of: 0) == Samples.position(1))
        }
    }
}
