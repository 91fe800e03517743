import ThreadExecutor

/// Several reading connections to one database, each on a thread of its own.
///
/// Readers and the writer do not wait for each other (the database's journal is WAL). A call takes a free connection
/// or waits in line for one; `waitingLimit` callers may wait, the next is refused as overloaded. A caller who is
/// cancelled while waiting leaves the line with `CancellationError`; a closure that has begun runs to its end.
///
/// Close the readers before the writer: only a writing connection that closes last can tidy the write-ahead log away.
package final class DatabaseReaderPool: Sendable {
    private let connections: ResourcePool<HostedConnection>
    /// How many calls may be in the database or wait for it.
    private let limit: Int
    private let closing = ClosingOnce()

    /// Opens an existing database for reading.
    ///
    /// - Parameters:
    ///   - count: the connections and threads.
    ///   - waitingLimit: the callers that may wait for one. Each holds one suspended task; with reads of less than a
    ///     millisecond, 1024 of them are served in well under a second.
    /// - Throws: `SQLiteError` with a message that says what to do; `ThreadStartError`.
    package static func open(
        path: String, count: Int = 4, options: ConnectionOptions = ConnectionOptions(), waitingLimit: Int = 1024
    ) async throws -> DatabaseReaderPool {
        precondition(count > 0 && waitingLimit >= 0, "a pool has at least one connection and a line of 0 or more")
        var connections: [HostedConnection] = []
        do {
            for number in 1...count {
                connections.append(
                    try await HostedConnection.open(
                        path: path, access: .readOnly, options: options, threadName: "sqlite-read-\(number)"))
            }
        } catch {
            let cause = error
            for connection in connections { try await connection.close() }
            throw cause
        }
        return DatabaseReaderPool(
            ResourcePool(connections, waitingLimit: waitingLimit), limit: count + waitingLimit)
    }

    private init(_ connections: ResourcePool<HostedConnection>, limit: Int) {
        self.connections = connections
        self.limit = limit
    }

    /// Runs a closure in one read transaction: all it reads is as it was at its first read.
    ///
    /// - Throws: what the closure throws; `SQLiteError`; `DatabaseUnavailable`; `CancellationError`.
    package func read<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) async throws -> Value {
        do {
            return try await connections.lend { connection in
                try await connection.perform { connection in
                    try connection.transaction(.deferred) { try body(connection) }
                }
            }
        } catch let refusal as PoolUnavailable {
            switch refusal {
            case .overloaded: throw DatabaseUnavailable.overloaded(limit: limit)
            case .closed: throw DatabaseUnavailable.closed
            }
        }
    }

    /// Takes no more calls, waits for those it has, closes the connections and ends the threads; may be repeated.
    ///
    /// - Throws: the first `SQLiteError` of a closing, after closing the others too.
    package func close() async throws {
        connections.stop()
        try await closing.run { [connections] in
            var failure: (any Error)?
            for connection in await connections.close() {
                do {
                    try await connection.close()
                } catch {
                    failure = failure ?? error
                }
            }
            if let failure { throw failure }
        }
    }
}
