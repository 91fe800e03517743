import Postgres
import SyncModel

/// Sessions with the databases of the tables, for what is kept beside them by owner: in the database of the owner's partition.
///
/// They open on demand, and an unreachable server is an error of each call.
package struct OwnerSessions: Sendable {
    private struct Database: Sendable {
        let name: String
        let pool: PostgresPool
    }

    /// The run-time parameters of a session: all names are qualified, and a lock or a slow statement keeps no request waiting.
    ///
    /// A crash of the server may lose the newest transactions.
    private static let settings = """
        SET search_path = ''; SET client_encoding = UTF8; SET standard_conforming_strings = on; SET timezone = UTC; \
        SET row_security = off; SET synchronous_commit = off; SET lock_timeout = 3000; SET statement_timeout = 10000; \
        SET idle_in_transaction_session_timeout = 5000; SET jit = off
        """

    /// Sessions with each database: a request takes some milliseconds.
    private static let connections = 2
    /// Requests are cancelled whenever a device hangs up, and a server that answers needs less.
    private static let grace = Duration.seconds(1)

    private let databases: [Database]
    private let partitioning: Partitioning

    /// Does not connect yet.
    ///
    /// - Parameters:
    ///   - partitions: of the history.
    ///   - waitingLimit: how many requests may wait for a session with a database; further ones fail.
    ///   - name: what the names of the sessions' threads begin with.
    package static func start(
        _ configuration: PostgresRecordStoreConfiguration, partitions: Int, waitingLimit: Int, name: String
    ) async throws -> OwnerSessions {
        var databases: [Database] = []
        do {
            for number in configuration.shards.indices {
                let parameters = configuration.sessionParameters(number)
                let pool = try await PostgresPool.start(
                    parameters, count: connections, connectTimeout: configuration.connectTimeout,
                    waitingLimit: waitingLimit, grace: grace, name: "\(name)-\(number)"
                ) { try $0.execute(settings) }
                databases.append(Database(name: parameters.description, pool: pool))
            }
        } catch {
            for database in databases { await database.pool.close() }
            throw error
        }
        return OwnerSessions(databases: databases, partitioning: Partitioning(count: partitions))
    }

    /// The numbers of the databases.
    package var indices: Range<Int> { databases.indices }

    package func number(of owner: SyncID) -> Int { partitioning.partition(of: owner) % databases.count }

    /// For messages.
    package func name(_ number: Int) -> String { databases[number].name }

    /// Runs a closure, and repeats it once if its session is lost.
    package func perform<Value: Sendable>(
        _ number: Int, _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        try await databases[number].pool.performRepeating(body)
    }

    package func close() async {
        for database in databases { await database.pool.close() }
    }
}
