import AsyncPrimitives
import ChangeLog
import Dispatch
import Foundation
import Postgres
import PostgresServer

/// A database for one test.
struct TestDatabase: Sendable {
    let server: PostgresServer
    let name: String

    /// Creates an empty database.
    static func make(on server: PostgresServer) async throws -> TestDatabase {
        let name = "weir_" + UUID().uuidString.lowercased().filter { $0 != "-" }.prefix(12)
        let postgres = TestDatabase(server: server, name: "postgres")
        try await postgres.execute("CREATE DATABASE \(name) TEMPLATE template0")
        return TestDatabase(server: server, name: name)
    }

    var connectionString: String { server.connectionString(database: name) }

    /// Runs SQL with schema weir first; its columns must be texts.
    func query(_ sql: String) async throws -> [[String?]] {
        try await withSession { connection in
            let rows = try connection.queryOnce(sql)
            return try (0..<rows.count).map { row in
                try rows.columns.map { column in try rows.isNull(row, column) ? nil : rows.text(row, column) }
            }
        }
    }

    /// Runs statements.
    func execute(_ sql: String) async throws {
        try await withSession { connection in try connection.execute(sql) }
    }

    /// Repeats a query until it has a row.
    func untilRow(_ sql: String) async throws {
        try await withSession { connection in
            while try connection.queryOnce(sql).count == 0 {}
        }
    }

    /// Runs statements in a transaction that is open while a body runs, and rolls it back.
    func holding(_ sql: String, _ body: () async throws -> Void) async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let end = DispatchSemaphore(value: 0)
        async let held: Void = withSession { connection in
            defer { begin.finish() }
            try connection.execute("BEGIN; " + sql)
            begin.finish()
            end.wait()
        }
        for await _ in begun {}
        let result = await Result.capturing { try await body() }
        end.signal()
        try await held
        try result.get()
    }

    private func withSession<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        let parameters = try ConnectionParameters(connectionString)
        let path = "SET search_path = weir, public"
        let pool = try await PostgresPool.start(parameters, count: 1) { try $0.execute(path) }
        let result = await Result.capturing { try await pool.perform(body) }
        await pool.close()
        return try result.get()
    }
}
