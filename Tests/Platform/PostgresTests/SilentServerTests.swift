import Postgres
import PostgresServer
import Testing

/// A server that is suspended keeps its connections and answers nothing: neither keep-alives nor timeouts of the network notice.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"), .timeLimit(.minutes(5)))
struct SilentServerTests {
    /// Also with a statement that is larger than what the system buffers, so that not even sending it ends.
    @Test(arguments: [1, 32 << 20])
    func cancellationEndsAStatementAndItsTransactionIsRolledBack(bytes: Int) async throws {
        let server = try await PostgresServer.start()
        let parameters = try ConnectionParameters(server.connectionString())
        let pool = try await PostgresPool.start(parameters, count: 1)
        @Sendable func insert(_ count: Int, _ connection: PostgresConnection) throws {
            var values = PostgresParameters()
            values.append(String(repeating: "x", count: count))
            _ = try connection.query("INSERT INTO t VALUES ($1::text)", values)
        }
        try await pool.perform { connection in
            try connection.execute("CREATE TABLE t (a text)")
            try insert(1, connection)
        }
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let call = Task {
            try await pool.perform { connection in
                try connection.execute("BEGIN")
                begin.yield()
                // Until the server is suspended.
                while true { try insert(bytes, connection) }
            }
        }
        for await _ in begun { break }
        try await expectCancelled(call, in: pool, of: server)
        let next = try await PostgresPool.start(parameters, count: 1)
        let count = try await next.perform { connection in
            // Waits for the end of the abandoned session.
            try connection.execute("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
            return try connection.query("SELECT count(*) FROM t").bigint(0, 0)
        }
        #expect(count == 1)
        await next.close()
        await server.end()
    }

    @Test func cancellationEndsTheStartOfASession() async throws {
        let server = try await PostgresServer.shared()
        let proxy = try CuttingProxy(to: server)
        var parameters = try ConnectionParameters(server.connectionString())
        parameters["host"] = proxy.folder
        let pool = try await PostgresPool.start(parameters, count: 1, connectTimeout: .seconds(3600))
        proxy.hold(.toServer, after: 0)
        let call = Task { try await pool.perform { _ in } }
        await proxy.waitUntilHeld()
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        proxy.letGo()
        // The next call gets a session.
        try await pool.perform { _ in }
        await pool.close()
        try proxy.end()
    }

    @Test func cancellationEndsALeaseWithItsTransaction() async throws {
        let server = try await PostgresServer.start()
        let parameters = try ConnectionParameters(server.connectionString())
        let pool = try await PostgresPool.start(parameters, count: 1)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let call = Task {
            try await pool.lease { session in
                try await session.perform { try $0.execute("BEGIN; CREATE TABLE t (a text)") }
                begin.yield()
                while true { try await session.perform { try $0.execute("SELECT 1") } }
            }
        }
        for await _ in begun { break }
        try await expectCancelled(call, in: pool, of: server)
        await server.end()
    }

    /// A call ends although the server is suspended, and the pool with it.
    private func expectCancelled(
        _ call: Task<Void, any Error>, in pool: PostgresPool, of server: PostgresServer
    ) async throws {
        try await server.pause()
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        await pool.close()
        try await server.resume()
    }
}
