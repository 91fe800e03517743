import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// Tables whose server is suspended: it keeps its connections and answers nothing.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"), .timeLimit(.minutes(5)))
struct SilentTablesTests {
    enum Moment: CaseIterable {
        case position, lookup, commit
    }

    @Test(arguments: Moment.allCases)
    func theStageEndsWhenItIsCancelledAndTheNextOneContinues(moment: Moment) async throws {
        let server = try await PostgresServer.start()
        let log = MemoryChangeLog(MemoryLogContents(partitionCount: 2))
        var maker = PartMaker()
        let parts = maker.creations(3)
        try await log.append(parts)
        let isSuspended = Signal<Void>()
        @Sendable func suspend(_ asked: Moment, _ number: Int) async throws(RecordStoreError) {
            guard asked == moment, number == 0 else { return }
            do {
                try await server.pause()
            } catch {
                throw RecordStoreError(.unavailable, message: "\(error)")
            }
            isSuspended.add(())
        }
        let silent = WatchedStore(try await open(server)) { number throws(RecordStoreError) in
            try await suspend(.commit, number)
        } beforeRead: { number throws(RecordStoreError) in
            try await suspend(.lookup, number)
        } beforePosition: { number throws(RecordStoreError) in
            try await suspend(.position, number)
        }
        let stage = Stage(log, silent)
        await isSuspended.until { !$0.isEmpty }
        try await stage.stop()
        // No session waits for the server.
        await silent.close()
        try await server.resume()
        let store = WatchedStore(try await open(server))
        let next = Stage(log, store)
        await store.until(3)
        try await next.stop()
        #expect(try await log.piecesOnce(in: 0) == ByHand(parts).pieces)
        #expect(try await store.tables(of: 0) == ByHand(parts).tables)
        await store.close()
        await log.close()
        await server.end()
    }

    private func open(_ server: PostgresServer) async throws -> PostgresRecordStore {
        let parameters = try ConnectionParameters(server.connectionString())
        let store = try await PostgresRecordStore.open(
            PostgresRecordStoreConfiguration(shards: [parameters]).with(\.connections, 2))
        try await store.prepare(Fixture.schemas, epoch: Fixture.history.epoch)
        return store
    }
}
