import CPostgres

/// One session with a Postgres server, used by one thread at a time; every call blocks it.
///
/// Statements with parameters are prepared once in a session and kept by their text. After an error with
/// ``PostgresError/isConnectionLost`` the session is of no use any more.
package final class PostgresConnection {
    /// What tells the session from others at its server: the number of its process there.
    package let backendID: Int32
    /// How it was reached, without a password.
    package let place: String

    let handle: OpaquePointer
    private var isOpen = true
    /// Whether the server said that it ends the session, though this end has not seen it do so.
    private var hasEnded = false
    /// The names of prepared statements by their text.
    private var statements: [String: String] = [:]
    private var nextStatement = 1

    /// How many statements a session may keep prepared from one use to the next: each takes memory at the server, and a store has a handful for
    /// each table.
    private static let maximumStatements = 200

    /// Connects.
    ///
    /// - Parameter timeout: how long it may take to reach the server and log in, without the look-up of its name.
    /// - Throws: `PostgresError`, with Postgres's code where the server refused the session.
    package init(_ parameters: ConnectionParameters, timeout: Duration) throws(PostgresError) {
        place = parameters.description
        let started = parameters.withCStrings { PQconnectStartParams($0, $1, 0) }
        guard let handle = started else { throw PostgresError(message: "out of memory", isConnectionLost: true) }
        self.handle = handle
        do throws(PostgresError) {
            try ConnectionStart(handle, place: place).run(timeout: timeout)
        } catch {
            PQfinish(handle)
            isOpen = false
            throw error
        }
        backendID = PQbackendPID(handle)
        // Without a receiver libpq prints notices to standard error.
        PQsetNoticeReceiver(handle, { _, _ in }, nil)
    }

    deinit { precondition(!isOpen, "a connection is closed on its thread before it is let go") }

    /// Ends the session; harmless when it has ended.
    package func close() {
        guard isOpen else { return }
        isOpen = false
        PQfinish(handle)
    }

    /// The server's version as one number: 150003 for 15.3.
    package var serverVersion: Int { Int(PQserverVersion(handle)) }

    /// Whether the session has a transaction open, also one that failed.
    package var inTransaction: Bool {
        switch PQtransactionStatus(handle) {
        case PQTRANS_INTRANS, PQTRANS_INERROR: true
        default: false
        }
    }

    /// Whether the session is lost, as far as this end knows.
    package var isLost: Bool { !isOpen || hasEnded || PQstatus(handle) != CONNECTION_OK }

    /// Whether nothing can be heard of the server having ended the session; asks the system, not the server.
    package var seemsAlive: Bool {
        guard !isLost else { return false }
        // The server's last words come before the end.
        while SocketWait.hasInput(PQsocket(handle)) {
            guard PQconsumeInput(handle) != 0, !isLost else { return false }
        }
        return true
    }

    // MARK: Statements

    /// Runs one or more statements without parameters, whose rows nobody wants.
    package func execute(_ sql: String) throws(PostgresError) {
        guard PQsendQuery(handle, sql) == 1 else { throw failure() }
        _ = try answer()
    }

    /// Runs a statement and waits for its rows.
    package func query(
        _ sql: String, _ parameters: PostgresParameters = PostgresParameters()
    ) throws(PostgresError) -> PostgresResult {
        let name = try prepare(sql)
        let isSent = parameters.withPointers { values, lengths, formats in
            PQsendQueryPrepared(handle, name, Int32(parameters.count), values, lengths, formats, 1)
        }
        guard isSent == 1 else { throw failure() }
        return try answer()
    }

    /// Runs a statement that nobody will run again, or that means something else each time, and waits for its rows.
    package func queryOnce(_ sql: String) throws(PostgresError) -> PostgresResult {
        guard PQsendQueryParams(handle, sql, 0, nil, nil, nil, nil, 1) == 1 else { throw failure() }
        return try answer()
    }

    /// Makes the server compile a statement, where it has not yet; a pipeline takes only such statements.
    ///
    /// - Returns: its name in the session.
    @discardableResult
    package func prepare(_ sql: String) throws(PostgresError) -> String {
        if let name = statements[sql] { return name }
        let name = "weir_\(nextStatement)"
        guard PQsendPrepare(handle, name, sql, 0, nil) == 1 else { throw failure() }
        _ = try answer()
        nextStatement += 1
        statements[sql] = name
        return name
    }

    /// Makes the server forget what it compiled, where that has become much; between two uses of the session.
    func trimStatements() throws(PostgresError) {
        guard statements.count > Self.maximumStatements else { return }
        try execute("DEALLOCATE ALL")
        statements = [:]
    }

    /// Sends several statements without waiting for each other's answers; one that fails keeps those behind it from being
    /// run.
    ///
    /// They are no transaction by themselves: send `BEGIN` and `COMMIT` with them. An error in between leaves the
    /// transaction open, for the caller to roll back.
    ///
    /// - Parameters:
    ///   - send: sends the statements; what it throws ends the pipeline behind what was sent.
    ///   - receive: gets each statement's number, from 0, and its rows.
    /// - Throws: the `PostgresError` of the first statement that failed; what the closures throw.
    package func pipeline(
        _ send: (Pipeline) throws -> Void,
        receive: (_ statement: Int, _ rows: borrowing PostgresResult) throws -> Void = { _, _ in }
    ) throws {
        guard PQenterPipelineMode(handle) == 1 else { throw failure() }
        let pipeline = Pipeline(self, handle)
        let sending = Result { try send(pipeline) }
        let receiving = Result { try pipeline.finish(receive) }
        if !isLost, PQexitPipelineMode(handle) != 1 {
            // Nothing can be told from such a session any more.
            throw failure(isLost: true)
        }
        // What the sender says is the cause of what the receiver saw.
        if case .failure(let error) = sending, !isLost { throw error }
        try receiving.get()
        try sending.get()
    }

    /// Rolls an open transaction back; harmless where there is none.
    package func rollBack() throws(PostgresError) {
        if inTransaction { try execute("ROLLBACK") }
    }

    // MARK: Errors

    /// Waits for all results of what was sent: the last one, or else the first error, which names the cause where the end
    /// of the session follows it.
    func answer() throws(PostgresError) -> PostgresResult {
        var last: OpaquePointer?
        var failure: PostgresError?
        while let result = PQgetResult(handle) {
            PQclear(last)
            last = result
            if failure == nil { failure = error(in: result) }
            if isLost { break }
        }
        guard let last else { throw failure ?? self.failure() }
        let answer = PostgresResult(owning: last)
        if let failure { throw failure }
        return answer
    }

    private func error(in result: OpaquePointer) -> PostgresError? {
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: nil
        case PGRES_FATAL_ERROR: error(of: result)
        default:
            PostgresError(
                message: "Postgres answered with \(String(cString: PQresStatus(PQresultStatus(result)))), which no "
                    + "statement of Weir asks for", isConnectionLost: true)
        }
    }

    /// The error in a result; the session is lost where the client library says so, or Postgres ended it.
    func error(of result: OpaquePointer, statement: Int? = nil) -> PostgresError {
        let error = PostgresError(result, statement: statement)
        if error.isConnectionLost { hasEnded = true }
        return error
    }

    /// The client library's own failure.
    func failure(isLost: Bool = false) -> PostgresError {
        PostgresError(
            message: PostgresError.line(PQerrorMessage(handle)), isConnectionLost: isLost || self.isLost)
    }
}
