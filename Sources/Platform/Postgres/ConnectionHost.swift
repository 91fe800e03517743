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
