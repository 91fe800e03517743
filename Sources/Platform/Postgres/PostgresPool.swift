import ThreadExecutor

/// Some connections to one database, each on a thread of its own, made when they are needed and again when they are lost.
///
/// A call takes a free connection or waits in line for one. A caller who is cancelled while it waits leaves the line with
/// `CancellationError`; a closure that has begun runs to its end.
package final class PostgresPool: Sendable {
    private let hosts: ResourcePool<ConnectionHost>

    /// Starts the threads; connects to nothing yet.
    ///
    /// - Parameters:
    ///   - count: the connections, at least 1.
    ///   - connectTimeout: how long it may take to reach the server and log in.
    ///   - waitingLimit: how many callers may wait for a connection.
    ///   - name: names the threads, for debuggers.
    ///   - setUp: runs first in every new session.
    /// - Throws: `ThreadStartError`.
    package static func start(
        _ parameters: ConnectionParameters, count: Int, connectTimeout: Duration = .seconds(10),
        waitingLimit: Int = 4096, name: String = "postgres",
        setUp: @escaping @Sendable (PostgresConnection) throws -> Void = { _ in }
    ) async throws -> PostgresPool {
        precondition(count > 0, "a pool has at least one connection")
        var hosts: [ConnectionHost] = []
        do {
            for number in 1...count {
                let thread = try DedicatedThread(name: "\(name)-\(number)")
                hosts.append(
                    ConnectionHost(thread: thread) {
                        let connection = try PostgresConnection(parameters, timeout: connectTimeout)
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
        // The first is used first.
        return PostgresPool(ResourcePool(hosts.reversed(), waitingLimit: waitingLimit))
    }

    private init(_ hosts: ResourcePool<ConnectionHost>) {
        self.hosts = hosts
    }

    /// Runs a closure with a connection on that connection's thread.
    ///
    /// A transaction that the closure leaves open is rolled back.
    ///
    /// - Throws: what the closure throws; `PostgresError` where no session is to be had; `PoolUnavailable`;
    ///   `CancellationError`.
    package func perform<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        try await hosts.lend { try await $0.perform(body) }
    }

    /// Takes no more calls, waits for those it has, closes the connections and ends the threads; may be repeated.
    package func close() async {
        await hosts.close { await $0.close() }
    }
}
