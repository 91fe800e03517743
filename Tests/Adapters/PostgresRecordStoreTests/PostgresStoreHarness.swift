import Configuration
import Foundation
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel

/// A schema of the shared server for one test.
struct PostgresStoreHarness: Sendable {
    let server: PostgresServer
    let schema: String
    let database: String

    /// In a new schema.
    static func make() async throws -> PostgresStoreHarness {
        let id = UUID().uuidString.lowercased().filter { $0 != "-" }.prefix(12)
        return PostgresStoreHarness(
            server: try await PostgresServer.shared(), schema: "weir \(id)", database: "postgres")
    }

    /// In a new database, for tests that change more than their schema.
    static func makeDatabase() async throws -> PostgresStoreHarness {
        let place = try await make()
        let name = place.schema.filter { $0 != " " }
        try await place.execute("CREATE DATABASE \(name) TEMPLATE template0")
        return PostgresStoreHarness(server: place.server, schema: place.schema, database: name)
    }

    /// With few sessions, since tests open many stores.
    var configuration: PostgresRecordStoreConfiguration {
        get throws {
            let parameters = try ConnectionParameters(server.connectionString(database: database))
            return PostgresRecordStoreConfiguration(shards: [parameters]).with(\.schema, schema).with(\.connections, 3)
        }
    }

    /// Runs a closure with a store.
    func withStore<Value>(
        _ change: (inout PostgresRecordStoreConfiguration) throws -> Void = { _ in },
        _ body: (PostgresRecordStore) async throws -> Value
    ) async throws -> Value {
        var configuration = try configuration
        try change(&configuration)
        let store = try await PostgresRecordStore.open(configuration)
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body(store))
        } catch {
            outcome = .failure(error)
        }
        await store.close()
        return try outcome.get()
    }

    /// Runs a closure with a store whose one session goes through a proxy.
    func withProxiedStore(_ body: (PostgresRecordStore, CuttingProxy) async throws -> Void) async throws {
        let proxy = try CuttingProxy(to: server)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(
                try await withStore { configuration in
                    configuration.shards[0]["host"] = proxy.folder
                    configuration.connections = 1
                } _: { store in
                    // Whatever is held up must not hold up the end.
                    defer { proxy.letGo() }
                    try await body(store, proxy)
                })
        } catch {
            outcome = .failure(error)
        }
        try proxy.end()
        try outcome.get()
    }

    /// Runs SQL as another application would, with this schema in the search path, and returns the last statement's texts.
    @discardableResult
    func query(_ sql: String..., then last: String? = nil) async throws -> [[String?]] {
        let statements = sql + [last].compactMap { $0 }
        return try await withSession { connection in
            for statement in statements.dropLast() { try connection.execute(statement) }
            let rows = try connection.queryOnce(statements[statements.count - 1])
            return try (0..<rows.count).map { row in
                try rows.columns.map { column in try rows.isNull(row, column) ? nil : rows.text(row, column) }
            }
        }
    }

    /// Runs statements as another application would.
    func execute(_ sql: String) async throws {
        try await withSession { connection in try connection.execute(sql) }
    }

    /// Runs statements, and a closure before their transaction is rolled back.
    func execute(_ sql: String, then body: @escaping @Sendable () async throws -> Void) async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let end = DispatchSemaphore(value: 0)
        async let holding: Void = withSession { connection in
            defer { begin.finish() }
            try connection.execute(sql)
            begin.finish()
            end.wait()
        }
        for await _ in begun {}
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        end.signal()
        try await holding
        try outcome.get()
    }

    private func withSession<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        let parameters = try ConnectionParameters(server.connectionString(database: database))
        let path = "SET search_path = \"\(schema)\", public"
        let pool = try await PostgresPool.start(parameters, count: 1) { try $0.execute(path) }
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await pool.perform(body))
        } catch {
            outcome = .failure(error)
        }
        await pool.close()
        return try outcome.get()
    }
}
