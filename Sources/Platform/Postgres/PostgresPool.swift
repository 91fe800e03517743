import ThreadExecutor

/// Connections to one database, each on a thread of its own, opened on demand and reopened when they are lost.
///
/// A caller that is cancelled gets `CancellationError`; the statements of a closure that has begun fail, since its session ends.
/// They may have been executed or not, as those of any session that is lost.
package final class PostgresPool: Sendable {
    private let hosts: ResourcePool<ConnectionHost>

    /// Starts the threads, and does not connect yet.
    ///
    /// - Parameters:
    ///   - connectTimeout: to connect and authenticate.
    ///   - maximumStatements: the most prepared statements that a session keeps between two uses.
    ///   - waitingLimit: how many callers may wait for a connection; further ones fail as overloaded.
    ///   - grace: how long a call may go on after its caller was cancelled, where callers are cancelled often and a session is worth
    ///     more than the wait.
    ///   - name: of the threads, for debuggers.
    ///   - setUp: runs first in every new session.
    /// - Throws: `ThreadStartError`.
    package static func start(
        _ parameters: ConnectionParameters, count: Int, connectTimeout: Duration = .seconds(10),
        maximumStatements: Int = 200, waitingLimit: Int = 4096, grace: Duration = .zero, name: String = "postgres",
        setUp: @escaping @Sendable (PostgresConnection) throws -> Void = { _ in }
    ) async throws -> PostgresPool {
        precondition(count > 0, "a pool has at least one connection")
        var hosts: [ConnectionHost] = []
        do {
            for number in 1...count {
                let thread = try DedicatedThread(name: "\(name)-\(number)")
                hosts.append(
                    ConnectionHost(thread: thread, grace: grace) { interrupt in
                        let connection = try PostgresConnection(
                            parameters, timeout: connectTimeout, maximumStatements: maximumStatements,
                            interrupt: interrupt)
                        do {
                            try setUp(connection)
                        } catch {
                            connection.close()
                            throw error
                        }
                        return connection
                    })
            }
        } catch {
            for host in hosts { await host.close() }
            throw error
        }
        // The pool lends the last one first.
        return PostgresPool(ResourcePool(hosts.reversed(), waitingLimit: waitingLimit))
    }

    private init(_ hosts: ResourcePool<ConnectionHost>) {
        self.hosts = hosts
    }

    /// Runs a closure on the thread of a connection; a transaction that it leaves open is rolled back.
    ///
    /// - Throws: what the closure throws; `PostgresError` if the connection cannot be opened; `PoolUnavailable`;
    ///   `CancellationError`.
    package func perform<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        try await hosts.lend { try await $0.perform(body) }
    }

    /// Runs a closure as ``perform(_:)`` does, and repeats it once if its session is lost: a server restart ends all sessions.
    package func performRepeating<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        do {
            return try await perform(body)
        } catch let error as PostgresError where error.isConnectionLost {
            return try await perform(body)
        }
    }

    /// Lends a session to a closure, for a transaction between whose statements it does something else; a transaction that it
    /// leaves open is rolled back.
    ///
    /// - Throws: as ``perform(_:)``.
    package func lease<Value: Sendable>(
        _ body: (LeasedConnection) async throws -> Value
    ) async throws -> Value {
        try await hosts.lend { host in
            try await host.beginLease()
            let outcome: Result<Value, any Error>
            do {
                outcome = .success(try await body(LeasedConnection(host: host)))
            } catch {
                outcome = .failure(error)
            }
            await host.rollBack()
            return try outcome.get()
        }
    }

    /// Rejects further calls, waits for the accepted ones, closes the connections and ends the threads; may be repeated.
    package func close() async {
        await hosts.close { await $0.close() }
    }
}

/// A session of a ``PostgresPool``, until the closure that got it returns.
package struct LeasedConnection: Sendable {
    fileprivate let host: ConnectionHost

    /// Runs a closure on the connection's thread.
    ///
    /// - Throws: what the closure throws; `PostgresError` if the session was lost since the lease began; `CancellationError`.
    package func perform<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        try await host.performLeased(body)
    }
}
