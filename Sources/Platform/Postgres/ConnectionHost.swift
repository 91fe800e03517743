import ThreadExecutor

/// A connection on a thread of its own, on which it is opened, used and closed.
///
/// It is opened at the first call, and reopened after it was lost. A call that is cancelled ends, and its session with it: the server
/// rolls back what was not committed.
actor ConnectionHost {
    private nonisolated let thread: DedicatedThread
    private nonisolated let interrupt = SessionInterrupt()
    /// How long a call may go on after it was cancelled.
    private nonisolated let grace: Duration
    private let connect: @Sendable (SessionInterrupt) throws -> PostgresConnection
    private var connection: PostgresConnection?

    init(
        thread: DedicatedThread, grace: Duration,
        connect: @escaping @Sendable (SessionInterrupt) throws -> PostgresConnection
    ) {
        self.thread = thread
        self.grace = grace
        self.connect = connect
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Runs a closure on the thread; a transaction that it leaves open is rolled back.
    ///
    /// - Throws: what the closure throws; `PostgresError` if the connection cannot be opened; `CancellationError` if the caller
    ///   was cancelled before the end.
    nonisolated func perform<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        try await cancellably { host in
            try Task.checkCancellation()
            let connection = try host.open()
            defer { host.rollBackNow() }
            return try host.run(on: connection) { connection in
                try connection.trimStatements()
                return try body(connection)
            }
        }.get()
    }

    /// Begins a lease: opens the connection where there is none.
    nonisolated func beginLease() async throws {
        try await cancellably { host in
            try Task.checkCancellation()
            try host.open().trimStatements()
        }.get()
    }

    /// Runs a closure in the session of the lease; it may leave a transaction open for the next closure.
    ///
    /// - Throws: what the closure throws; `PostgresError` if the session was lost since the lease began, which is not replaced;
    ///   `CancellationError` if the caller was cancelled before the end.
    nonisolated func performLeased<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
        try await cancellably { host in
            guard let connection = host.connection, connection.seemsAlive else {
                host.drop()
                throw PostgresError(message: "the session was lost in the midst of its work", isConnectionLost: true)
            }
            return try host.run(on: connection, body)
        }.get()
    }

    /// Rolls back the transaction that a closure has left open.
    nonisolated func rollBack() async { _ = await cancellably { $0.rollBackNow() } }

    /// Runs a call on the thread, until the caller is cancelled.
    private nonisolated func cancellably<Value: Sendable>(
        _ call: @Sendable (isolated ConnectionHost) throws -> Value
    ) async -> Result<Value, any Error> {
        let number = interrupt.begin()
        return await withTaskCancellationHandler {
            await runToEnd(call)
        } onCancel: {
            if grace == .zero { return interrupt.request(number) }
            Task {
                try await Task.sleep(for: grace)
                interrupt.request(number)
            }
        }
    }

    private func runToEnd<Value: Sendable>(
        _ call: @Sendable (isolated ConnectionHost) throws -> Value
    ) -> Result<Value, any Error> {
        let outcome = Result { try call(self) }
        guard interrupt.end() else { return outcome }
        drop()
        return outcome.isConnectionLost ? .failure(CancellationError()) : outcome
    }

    /// Runs a closure, and drops the connection if it is lost then.
    private func run<Value>(
        on connection: PostgresConnection, _ body: (PostgresConnection) throws -> Value
    ) throws -> Value {
        let outcome = Result { try body(connection) }
        if connection.isLost || outcome.isConnectionLost { drop() }
        return try outcome.get()
    }

    private func rollBackNow() {
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
        let opened = try connect(interrupt)
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
