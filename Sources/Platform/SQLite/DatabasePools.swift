import ThreadExecutor

/// The one writing connection of a database, on a thread of its own.
///
/// Calls run one at a time in the order of arrival. A caller that is cancelled while it waits gets `CancellationError`; a
/// closure that has begun runs to its end.
///
/// A commit that waits for the disk costs the same for one change as for thousands: put many changes into one `write`.
package final class DatabaseWriter: Sendable {
    private let connection: ResourcePool<ConnectionHost>

    private init(_ connection: ResourcePool<ConnectionHost>) { self.connection = connection }

    /// Opens a file for writing and creates it if it is missing.
    ///
    /// - Parameter limit: how many calls may run or wait; further ones fail as overloaded. Each is a suspended task; 1024 short
    ///   transactions finish in well under a second.
    /// - Throws: `SQLiteError` with a message that says what to do; `ThreadStartError`.
    package static func open(
        path: String, write: WriteOptions = WriteOptions(), options: ConnectionOptions = ConnectionOptions(),
        limit: Int = 1024
    ) async throws -> DatabaseWriter {
        let host = try await ConnectionHost.open(
            path: path, access: .readWriteCreate(write), options: options, threadName: "sqlite-writer")
        return DatabaseWriter(ResourcePool([host], waitingLimit: limit - 1))
    }

    /// Runs a closure in one immediate transaction, and returns when it is committed.
    ///
    /// - Throws: what the closure throws, after rolling back; `SQLiteError`; `PoolUnavailable`; `CancellationError`.
    package func write<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) async throws -> Value {
        try await perform { connection in
            try connection.transaction(.immediate) { try body(connection) }
        }
    }

    /// Runs a closure without a transaction: for checkpoints, pragmas and closures that commit by themselves.
    ///
    /// A transaction that it leaves open is rolled back and reported as misuse.
    package func perform<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) async throws -> Value {
        try await connection.lend { try await $0.perform(body) }
    }

    /// Rejects further calls, waits for the accepted ones, closes the connection and ends the thread; may be repeated.
    ///
    /// - Throws: `SQLiteError` of the closing.
    package func close() async throws {
        if let failure = await connection.close({ try await $0.close() }) { throw failure }
    }
}

/// Several reading connections to one database, each on a thread of its own.
///
/// Readers and the writer do not block each other (the journal is WAL). A caller that is cancelled while it waits for a
/// connection gets `CancellationError`; a closure that has begun runs to its end.
///
/// Close the readers before the writer: only a writing connection that closes last can remove the write-ahead log.
package final class DatabaseReaderPool: Sendable {
    private let connections: ResourcePool<ConnectionHost>

    private init(_ connections: ResourcePool<ConnectionHost>) { self.connections = connections }

    /// Opens an existing database for reading.
    ///
    /// - Parameters:
    ///   - count: the connections and threads.
    ///   - waitingLimit: the callers that may wait for one; further ones fail as overloaded. Each is a suspended task; with
    ///     reads of less than a millisecond, 1024 of them finish in well under a second.
    /// - Throws: `SQLiteError` with a message that says what to do; `ThreadStartError`.
    package static func open(
        path: String, count: Int = 4, options: ConnectionOptions = ConnectionOptions(), waitingLimit: Int = 1024
    ) async throws -> DatabaseReaderPool {
        precondition(count > 0, "a pool has at least one connection")
        var hosts: [ConnectionHost] = []
        do {
            for number in 1...count {
                hosts.append(
                    try await ConnectionHost.open(
                        path: path, access: .readOnly, options: options, threadName: "sqlite-read-\(number)"))
            }
        } catch {
            let cause = error
            for host in hosts { try await host.close() }
            throw cause
        }
        return DatabaseReaderPool(ResourcePool(hosts, waitingLimit: waitingLimit))
    }

    /// Runs a closure in one read transaction: all its reads see the same snapshot.
    ///
    /// - Throws: what the closure throws; `SQLiteError`; `PoolUnavailable`; `CancellationError`.
    package func read<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) async throws -> Value {
        try await connections.lend { host in
            try await host.perform { connection in
                try connection.transaction(.deferred) { try body(connection) }
            }
        }
    }

    /// Rejects further calls, waits for the accepted ones, closes the connections and ends the threads; may be repeated.
    ///
    /// - Throws: the first `SQLiteError` of a closing; all connections are closed nevertheless.
    package func close() async throws {
        if let failure = await connections.close({ try await $0.close() }) { throw failure }
    }
}
