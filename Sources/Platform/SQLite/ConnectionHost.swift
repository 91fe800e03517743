import CWeirSQLite
import ThreadExecutor

/// A connection on a thread of its own, on which it is opened, used and closed.
actor ConnectionHost {
    private nonisolated let thread: DedicatedThread
    private var connection: Connection?

    private init(thread: DedicatedThread) { self.thread = thread }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Starts the thread and opens the connection on it.
    static func open(
        path: String, access: Access, options: ConnectionOptions, threadName: String
    ) async throws -> ConnectionHost {
        let thread = try DedicatedThread(name: threadName)
        let host = ConnectionHost(thread: thread)
        do {
            try await host.open(path: path, access: access, options: options)
        } catch {
            await thread.close()
            throw error
        }
        return host
    }

    private func open(path: String, access: Access, options: ConnectionOptions) throws(SQLiteError) {
        connection = try Connection(path: path, access: access, options: options)
    }

    /// Runs a closure on the thread.
    ///
    /// - Throws: what the closure throws; `CancellationError` if the caller was cancelled before it began; misuse if the
    ///   closure leaves a transaction open, which is rolled back.
    func perform<Value: Sendable>(_ body: @Sendable (Connection) throws -> Value) throws -> Value {
        try Task.checkCancellation()
        guard let connection else { throw PoolUnavailable.closed }
        let value = Result { try body(connection) }
        guard connection.inTransaction else { return try value.get() }
        let misuse = connection.failure(
            SQLITE_MISUSE, .transaction, message: "the closure left a transaction open, which was rolled back")
        try connection.rollBack(after: misuse)
        _ = try value.get()
        throw misuse
    }

    /// Closes the connection on its thread, then ends the thread; no call may run at the same time or afterwards.
    nonisolated func close() async throws {
        let outcome = await closeConnection()
        await thread.close()
        try outcome.get()
    }

    private func closeConnection() -> Result<Void, SQLiteError> {
        Result { () throws(SQLiteError) in
            try connection?.close()
            connection = nil
        }
    }
}
