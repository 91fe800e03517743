import ThreadExecutor

/// A connection on a thread of its own, on which it is opened, used and closed.
///
/// It is opened at the first call, and reopened after it was lost.
actor ConnectionHost {
    private nonisolated let thread: DedicatedThread
    private let connect: @Sendable () throws -> PostgresConnection
    private var connection: PostgresConnection?

    init(thread: DedicatedThread, connect: @escaping @Sendable () throws -> PostgresConnection) {
        self.thread = thread
        self.connect = connect
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Runs a closure on the thread; a transaction that it leaves open is rolled back.
    ///
    /// - Throws: what the closure throws; `PostgresError` if the connection cannot be opened; `CancellationError` if the caller
    ///   was cancelled before it began.
    func perform<Value: Sendable>(_ body: @Sendable (PostgresConnection) throws -> Value) throws -> Value {
        try Task.checkCancellation()
        let connection = try open()
        defer { rollBack() }
        return try run(on: connection) { connection in
            try connection.trimStatements()
            return try body(connection)
        }
    }

    /// Runs a closure, and drops the connection if it is lost then.
    private func run<Value>(
        on connection: PostgresConnection, _ body: (PostgresConnection) throws -> Value
    ) throws -> Value {
        let outcome = Result { try body(connection) }
        if connection.isLost || outcome.isConnectionLost { drop() }
        return try outcome.get()
    }

    /// Begins a lease: opens the connection where there is none.
    func beginLease() throws {
        try Task.checkCancellation()
        try open().trimStatements()
    }

    /// Runs a closure in the session of the lease; it may leave a transaction open for the next closure.
    ///
    /// - Throws: what the closure throws; `PostgresError` if the session was lost since the lease began, which is not replaced.
    func performLeased<Value: Sendable>(_ body: @Sendable (PostgresConnection) throws -> Value) throws -> Value {
        guard let connection, connection.seemsAlive else {
            drop()
            throw PostgresError(message: "the session was lost in the midst of its work", isConnectionLost: true)
        }
        return try run(on: connection, body)
    }

    /// Rolls back the transaction that a closure has left open.
    func rollBack() {
        do {
            try connection?.rollBack()
        } catch {
            drop()
        }
    }

    private func open() throws -> PostgresConnection {
        if let connection {
            if connection.seemsAlive { return connection }
            drop()
        }
        let opened = try connect()
        connection = opened
        return opened
    }

    private func drop() {
        connection?.close()
        connection = nil
    }

    /// Closes the connection on its thread, then ends the thread; no call may run at the same time or afterwards.
    nonisolated func close() async {
        await closeConnection()
        await thread.close()
    }

    private func closeConnection() { drop() }
}

extension Result {
    fileprivate var isConnectionLost: Bool {
        guard case .failure(let failure) = self, let error = failure as? PostgresError else { return false }
        return error.isConnectionLost
    }
}
