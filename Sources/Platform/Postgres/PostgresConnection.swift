import CPostgres

/// One session with a Postgres server, used by one thread at a time; every call blocks.
///
/// Statements with parameters are prepared once in a session and cached by their text. After an error with
/// ``PostgresError/isConnectionLost`` the session cannot be used any more.
package final class PostgresConnection {
    /// The process id of its backend.
    package let backendID: Int32
    /// The connection parameters, without a password.
    package let database: String

    let handle: OpaquePointer
    private let interrupt: SessionInterrupt
    private var isOpen = true
    /// Whether the server announced the end of the session, which the socket may not show yet.
    private var hasEnded = false
    private var statements: StatementCache

    /// - Parameters:
    ///   - timeout: to connect and authenticate, without the DNS lookup.
    ///   - maximumStatements: the most prepared statements that are kept between two uses of the session; each takes some 80 kB of
    ///     the server's memory.
    ///   - interrupt: ends what the session waits for.
    /// - Throws: `PostgresError`, with the SQLSTATE if the server rejected the session.
    package init(
        _ parameters: ConnectionParameters, timeout: Duration, maximumStatements: Int = 200,
        interrupt: SessionInterrupt = SessionInterrupt()
    ) throws(PostgresError) {
        database = parameters.description
        self.interrupt = interrupt
        statements = StatementCache(maximumCount: maximumStatements)
        let started = parameters.withCStrings { PQconnectStartParams($0, $1, 0) }
        guard let handle = started else { throw PostgresError(message: "out of memory", isConnectionLost: true) }
        self.handle = handle
        do throws(PostgresError) {
            try ConnectionStart(handle, database: database).run(timeout: timeout, interrupt)
        } catch {
            PQfinish(handle)
            interrupt.forget()
            isOpen = false
            throw error
        }
        backendID = PQbackendPID(handle)
        // Without a receiver libpq prints notices to standard error.
        PQsetNoticeReceiver(handle, { _, _ in }, nil)
    }

    deinit { precondition(!isOpen, "a connection is closed on its thread before it is released") }

    /// May be repeated.
    package func close() {
        guard isOpen else { return }
        isOpen = false
        PQfinish(handle)
        interrupt.forget()
    }

    /// The server's version as one number: 150003 for 15.3.
    package var serverVersion: Int { Int(PQserverVersion(handle)) }

    /// Whether a transaction is open, including one that failed.
    package var inTransaction: Bool {
        switch PQtransactionStatus(handle) {
        case PQTRANS_INTRANS, PQTRANS_INERROR: true
        default: false
        }
    }

    /// Without a round trip to the server.
    package var isLost: Bool { !isOpen || hasEnded || PQstatus(handle) != CONNECTION_OK }

    /// Whether the server has not ended the session, as far as the socket shows; without a round trip to the server.
    package var seemsAlive: Bool {
        guard !isLost else { return false }
        // The server's last message precedes the end of the stream.
        while SocketWait.hasInput(PQsocket(handle)) {
            guard PQconsumeInput(handle) != 0, !isLost else { return false }
        }
        return true
    }

    // MARK: Statements

    /// Runs one or more statements without parameters and ignores their rows.
    package func execute(_ sql: String) throws(PostgresError) {
        guard PQsendQuery(handle, sql) == 1 else { throw failure() }
        _ = try lastResult()
    }

    /// Runs a statement, which is prepared and cached.
    package func query(
        _ sql: String, _ parameters: PostgresParameters = PostgresParameters()
    ) throws(PostgresError) -> PostgresResult {
        let name: String
        if let known = statements.name(of: sql) { name = known } else { name = try prepareNow(sql) }
        let isSent = parameters.withPointers { values, lengths, formats in
            PQsendQueryPrepared(handle, name, Int32(parameters.count), values, lengths, formats, 1)
        }
        guard isSent == 1 else { throw failure() }
        return try lastResult()
    }

    /// Runs a statement without caching it: for one-time SQL, and for SQL whose meaning changes.
    package func queryOnce(_ sql: String) throws(PostgresError) -> PostgresResult {
        guard PQsendQueryParams(handle, sql, 0, nil, nil, nil, nil, 1) == 1 else { throw failure() }
        return try lastResult()
    }

    private func prepareNow(_ sql: String) throws(PostgresError) -> String {
        let name = statements.newName()
        guard PQsendPrepare(handle, name, sql, 0, nil) == 1 else { throw failure() }
        _ = try lastResult()
        statements.insert(sql, as: name)
        return name
    }

    /// Prepares those of some statements that are not cached, in one round trip; a pipeline runs only prepared statements.
    ///
    /// - Returns: their names in the session, which may end after its use.
    @discardableResult
    package func prepare(_ texts: [String]) throws -> [String] {
        var names: [String] = []
        var missing: [(text: String, name: String)] = []
        for text in texts {
            let known = statements.name(of: text) ?? missing.first { $0.text == text }?.name
            names.append(known ?? statements.newName())
            if known == nil { missing.append((text, names[names.count - 1])) }
        }
        if missing.isEmpty { return names }
        do {
            try pipeline { pipeline in
                for (text, name) in missing { try pipeline.prepare(text, as: name) }
            } receive: { number, _ in
                statements.insert(missing[number].text, as: missing[number].name)
            }
        } catch var error as PostgresError {
            // It is none of the caller's pipeline.
            error.statement = nil
            throw error
        }
        return names
    }

    /// Deallocates prepared statements if there are too many; between two uses of the session.
    func trimStatements() throws(PostgresError) {
        let names = statements.beginUse()
        if !names.isEmpty { try execute(names.map { "DEALLOCATE \($0)" }.joined(separator: "; ")) }
    }

    /// Sends several statements without waiting for their results; after one that fails the server skips the rest.
    ///
    /// They are no transaction by themselves: send `BEGIN` and `COMMIT` with them. After an error in between, the caller rolls
    /// back.
    ///
    /// - Parameters:
    ///   - send: sends the statements; an error of it ends the pipeline after the statements that were sent.
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
            // The state of such a session is unknown.
            throw failure(isLost: true)
        }
        // The sender's error is the cause of the receiver's.
        if case .failure(let error) = sending, !isLost { throw error }
        try receiving.get()
        try sending.get()
    }

    /// Does nothing without a transaction.
    package func rollBack() throws(PostgresError) {
        if inTransaction { try execute("ROLLBACK") }
    }

    // MARK: Errors

    /// Waits for all results of the statements sent.
    ///
    /// - Returns: the last result.
    /// - Throws: the first error, which is the cause if the end of the session follows.
    func lastResult() throws(PostgresError) -> PostgresResult {
        var last: OpaquePointer?
        var failure: PostgresError?
        while let result = PQgetResult(handle) {
            PQclear(last)
            last = result
            if failure == nil { failure = error(in: result) }
            if isLost { break }
        }
        guard let last else { throw failure ?? self.failure() }
        let result = PostgresResult(owning: last)
        if let failure { throw failure }
        return result
    }

    private func error(in result: OpaquePointer) -> PostgresError? {
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: nil
        case PGRES_FATAL_ERROR: error(of: result)
        default:
            PostgresError(
                message: "Postgres returned the unexpected status "
                    + String(cString: PQresStatus(PQresultStatus(result))), isConnectionLost: true)
        }
    }

    /// The error in a result, which may end the session.
    func error(of result: OpaquePointer, statement: Int? = nil) -> PostgresError {
        let error = PostgresError(result, statement: statement)
        if error.isConnectionLost { hasEnded = true }
        return error
    }

    /// An error of libpq.
    func failure(isLost: Bool = false) -> PostgresError {
        PostgresError(
            message: PostgresError.line(PQerrorMessage(handle)), isConnectionLost: isLost || self.isLost)
    }
}
