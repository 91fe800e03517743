import Postgres
import PostgresServer

/// Runs a closure with a new session with the shared server.
func withSession<Value: Sendable>(
    _ change: (inout ConnectionParameters) -> Void = { _ in },
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
) async throws -> Value {
    var parameters = try ConnectionParameters(try await PostgresServer.shared().connectionString())
    change(&parameters)
    let pool = try await PostgresPool.start(parameters, count: 1)
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await pool.perform(body))
    } catch {
        outcome = .failure(error)
    }
    await pool.close()
    return try outcome.get()
}
