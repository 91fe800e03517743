import CPostgres

/// Statements on their way to the server, of which none waits for the one before it; of use only inside
/// ``PostgresConnection/pipeline(_:receive:)``.
package final class Pipeline {
    private let connection: PostgresConnection
    private let handle: OpaquePointer
    private var sent = 0

    init(_ connection: PostgresConnection, _ handle: OpaquePointer) {
        self.connection = connection
        self.handle = handle
    }

    /// Sends a prepared statement.
    ///
    /// - Parameter name: what ``PostgresConnection/prepare(_:)`` returned.
    /// - Returns: the statement's number in the pipeline, from 0.
    @discardableResult
    package func send(
        _ name: String, _ parameters: PostgresParameters = PostgresParameters()
    ) throws(PostgresError) -> Int {
        let isSent = parameters.withPointers { values, lengths, formats in
            PQsendQueryPrepared(handle, name, Int32(parameters.count), values, lengths, formats, 1)
        }
        guard isSent == 1 else { throw connection.failure() }
        defer { sent += 1 }
        return sent
    }

    /// Waits for the answers to all that was sent.
    func finish(_ receive: (Int, borrowing PostgresResult) throws -> Void) throws {
        guard PQpipelineSync(handle) == 1 else { throw connection.failure(isLost: true) }
        var failure: (any Error)?
        for statement in 0..<sent {
            guard let answer = PQgetResult(handle) else { throw connection.failure(isLost: true) }
            switch PQresultStatus(answer) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
                let rows = PostgresResult(owning: answer)
                do {
                    if failure == nil { try receive(statement, rows) }
                } catch {
                    failure = error
                }
            case PGRES_PIPELINE_ABORTED:
                PQclear(answer)
            default:
                let error = connection.error(of: answer, statement: statement)
                PQclear(answer)
                // Nothing more comes from a session that has ended.
                if error.isConnectionLost { throw error }
                failure = failure ?? error
            }
            while let more = PQgetResult(handle) { PQclear(more) }
        }
        guard let answer = PQgetResult(handle) else { throw connection.failure(isLost: true) }
        let status = PQresultStatus(answer)
        if status != PGRES_PIPELINE_SYNC {
            let error = connection.error(of: answer)
            PQclear(answer)
            throw error.isConnectionLost ? error : connection.failure(isLost: true)
        }
        PQclear(answer)
        if let failure { throw failure }
    }
}
