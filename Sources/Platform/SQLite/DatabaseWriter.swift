/// The one writing connection of a database, on a thread of its own.
///
/// Calls run one after the other in the order they arrive. At most `limit` of them are in it or wait; the next is
/// refused as overloaded, so that the caller can refuse its own work early. A caller who is cancelled while waiting
/// gets `CancellationError`; a closure that has begun runs to its end.
///
/// A commit that waits for the disk costs the same for one change as for thousands: whoever has many changes at once
/// gives them to one `write`.
package final class DatabaseWriter: Sendable {
    private let host: HostedConnection
    private let callLimiter: CallLimiter
    private let closing = ClosingOnce()

    /// Opens a file for writing, making it where there is none.
    ///
    /// - Parameter limit: the calls that may be in the writer or wait for it. Each holds one suspended task; 1024 short
    ///   transactions are done in well under a second.
    /// - Throws: `SQLiteError` with a message that says what to do; `ThreadStartError`.
    package static func open(
        path: String, write: WriteOptions = WriteOptions(), options: ConnectionOptions = ConnectionOptions(),
        limit: Int = 1024
    ) async throws -> DatabaseWriter {
        let callLimiter = CallLimiter(limit: limit)
        let host = try await HostedConnection.open(
            path: path, access: .readWriteCreate(write), options: options, threadName: "sqlite-writer")
        return DatabaseWriter(host: host, callLimiter: callLimiter)
    }

    private init(host: HostedConnection, callLimiter: CallLimiter) {
        self.host = host
        self.callLimiter = callLimiter
    }

    /// Runs a closure in one immediate transaction, and returns when it is committed.
    ///
    /// - Throws: what the closure throws, after rolling back; `SQLiteError`; `DatabaseUnavailable`; `CancellationError`.
    package func write<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) async throws -> Value {
        try await perform { connection in
            try connection.transaction(.immediate) { try body(connection) }
        }
    }

    /// Runs a closure without a transaction: for checkpoints, pragmas and closures that commit for themselves.
    ///
    /// A transaction that it leaves open is rolled back and reported as misuse.
    package func perform<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) async throws -> Value {
        try callLimiter.enter()
        defer { callLimiter.leave() }
        return try await host.perform(body)
    }

    /// Takes no more calls, waits for those it has, closes the connection and ends the thread; may be repeated.
    ///
    /// - Throws: `SQLiteError` of the closing.
    package func close() async throws {
        callLimiter.close()
        try await closing.run { [callLimiter, host] in
            await callLimiter.drain()
            try await host.close()
        }
    }
}
