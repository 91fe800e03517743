import ThreadExecutor

/// A place for one connection, on a thread of its own that makes, uses and closes it.
///
/// The connection is made at the first call and anew after it was lost.
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
    /// - Throws: what the closure throws; `PostgresError` where there is no connection; `CancellationError` when the
    ///   caller was cancelled before it began.
    func perform<Value: Sendable>(_ body: @Sendable (PostgresConnection) throws -> Value) throws -> Value {
        try Task.checkCancellation()
        let connection = try open()
        let outcome = Result {
            try connection.trimStatements()
            return try body(connection)
        }
        do {
            try connection.rollBack()
        } catch {
            drop()
        }
        if connection.isLost || outcome.isConnectionLost { drop() }
        return try outcome.get()
    }

    private func open() throws -> PostgresConnection {
        if let connection {
            if connection.seemsAlive { return connection }
            drop()
        }
        let made = try connect()
        connection = made
        return made
    }

    private func drop() {
        connection?.close()
        connection = nil
    }

    /// Ends the session on its thread, then the thread; nothing may be called at the same time or afterwards.
    nonisolated func close() async {
        await closeConnection()
        await thread.close()
    }

    private func closeConnection() { drop() }
}

extension Result {
    /// Whether this failed because the session ended.
    fileprivate var isConnectionLost: Bool {
        guard case .failure(let failure) = self, let error = failure as? PostgresError else { return false }
        return error.isConnectionLost
    }
}
