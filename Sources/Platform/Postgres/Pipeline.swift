import CPostgres

/// Sends statements without waiting for results, inside ``PostgresConnection/pipeline(_:receive:)``.
package final class Pipeline {
    private let connection: PostgresConnection
    private let handle: OpaquePointer
    private var sent = 0

    init(_ connection: PostgresConnection, _ handle: OpaquePointer) {
        self.connection = connection
        self.handle = handle
    }

    /// Prepares a statement under a name of its own.
    func prepare(_ text: String, as name: String) throws(PostgresError) {
        guard PQsendPrepare(handle, name, text, 0, nil) == 1 else { throw connection.failure() }
        sent += 1
    }

    /// - Parameter name: from ``PostgresConnection/prepare(_:)``.
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

    /// Waits for the results of all statements.
    func finish(_ receive: (Int, borrowing PostgresResult) throws -> Void) throws {
        guard PQpipelineSync(handle) == 1 else { throw connection.failure(isLost: true) }
        var failure: (any Error)?
        for statement in 0..<sent {
            guard let result = PQgetResult(handle) else { throw connection.failure(isLost: true) }
            switch PQresultStatus(result) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
                let rows = PostgresResult(owning: result)
                do {
                    if failure == nil { try receive(statement, rows) }
                } catch {
                    failure = error
                }
            case PGRES_PIPELINE_ABORTED:
                PQclear(result)
            default:
                let error = connection.error(of: result, statement: statement)
                PQclear(result)
                // A session that has ended returns nothing more.
                if error.isConnectionLost { throw error }
                failure = failure ?? error
            }
            while let more = PQgetResult(handle) { PQclear(more) }
        }
        guard let result = PQgetResult(handle) else { throw connection.failure(isLost: true) }
        let status = PQresultStatus(result)
        if status != PGRES_PIPELINE_SYNC {
            let error = connection.error(of: result)
            PQclear(result)
            throw error.isConnectionLost ? error : connection.failure(isLost: true)
        }
        PQclear(result)
        if let failure { throw failure }
    }
}
