import Observability
import Postgres
import RecordStore
import SyncModel

/// Writes the calls of `commit` that wait in one transaction; each stands or falls for itself.
struct GroupCommit {
    private let connection: PostgresConnection
    private let tables: PreparedTables
    private let settings: ShardSettings
    private let memory: ShardMemory
    private let logger: Logger

    init(
        _ connection: PostgresConnection, _ tables: PreparedTables, _ settings: ShardSettings, _ memory: ShardMemory,
        _ logger: Logger
    ) {
        self.connection = connection
        self.tables = tables
        self.settings = settings
        self.memory = memory
        self.logger = logger
    }

    /// Writes and answers tickets.
    ///
    /// - Returns: the tickets that were not answered since the session was lost, with how.
    func run(_ tickets: [CommitTicket]) -> (tickets: [CommitTicket], error: PostgresError)? {
        if tickets.count > 1 {
            switch attempt(tickets.flatMap(\.steps), isGroup: true) {
            case .success:
                for ticket in tickets { ticket.completion.resume(returning: .success(())) }
                return nil
            case .failure(.lost(let error)):
                return (tickets, error)
            case .failure:
                // Whoever it was: each by itself.
                break
            }
        }
        for (index, ticket) in tickets.enumerated() {
            switch commit(ticket.steps) {
            case .success: ticket.completion.resume(returning: .success(()))
            case .failure(.lost(let error)): return (Array(tickets[index...]), error)
            case .failure(.call(let error)): ticket.completion.resume(returning: .failure(error))
            case .failure(.stalled(let error)):
                ticket.completion.resume(returning: .failure(RecordStoreError(error, place: connection.place)))
            }
        }
        return nil
    }

    /// Why steps were not written.
    private enum Failure: Error {
        /// The session was lost: they may have been written all the same.
        case lost(PostgresError)
        /// Another session holds a partition.
        case stalled(PostgresError)
        /// The call's own failure.
        case call(RecordStoreError)
    }

    /// Writes the steps of one call, ending whoever holds up their partitions.
    private func commit(_ steps: [StoreStep]) -> Result<Void, Failure> {
        let first = attempt(steps)
        guard case .failure(.stalled) = first else { return first }
        do {
            var partitions = BinaryArray(.bigint)
            for partition in Set(steps.map(\.partition)) { partitions.append(Int64(partition)) }
            var parameters = PostgresParameters()
            parameters.append(settings.lockSpace)
            parameters.append(partitions)
            let ended = try connection.query(tables.statements.endHolders, parameters).bigint(0, 0)
            if ended > 0 {
                logger.warning(
                    "Ended sessions of a stalled worker that held partitions",
                    [.partition: .integer(steps[0].partition), .count: .integer(Int(ended))])
            }
        } catch {
            return .failure(Self.failure(error, connection.place))
        }
        return attempt(steps)
    }

    /// - Parameters:
    ///   - isGroup: whether the steps are of several calls, so that an error is nobody's yet.
    ///   - isInserting: whether a row's first version is written as a row that does not exist. One that does all the same, since
    ///     somebody else made it, is overwritten at the second try.
    private func attempt(
        _ steps: [StoreStep], isGroup: Bool = false, isInserting: Bool = true
    ) -> Result<Void, Failure> {
        let writer = StepWriter(connection, tables, settings, memory, steps: steps, isInserting: isInserting)
        do {
            try writer.write()
            memory.finish(steps)
            return .success(())
        } catch let error as PostgresError {
            guard !error.isConnectionLost else {
                // Before the first statement nothing can have been written.
                if !writer.purposes.isEmpty { memory.lose(steps) }
                return .failure(.lost(error))
            }
            do {
                try connection.rollBack()
                if isInserting, error.sqlState == .uniqueViolation {
                    return attempt(steps, isGroup: isGroup, isInserting: false)
                }
                if isGroup { return .failure(.call(RecordStoreError(error, place: connection.place))) }
                return try explain(error, writer, steps)
            } catch {
                return .failure(Self.failure(error, connection.place))
            }
        } catch {
            do {
                try connection.rollBack()
            } catch {
                return .failure(Self.failure(error, connection.place))
            }
            return .failure(Self.failure(error, connection.place))
        }
    }

    private static func failure(_ error: any Error, _ place: String) -> Failure {
        if let error = error as? PostgresError, error.isConnectionLost { return .lost(error) }
        return .call(RecordStoreError(error, place: place))
    }

    // MARK: What an error means

    private func explain(
        _ error: PostgresError, _ writer: StepWriter, _ steps: [StoreStep]
    ) throws -> Result<Void, Failure> {
        let purpose = error.statement.flatMap { writer.purposes.indices.contains($0) ? writer.purposes[$0] : nil }
        switch (purpose, error.sqlState) {
        case (.lock, .lockNotAvailable?):
            return .failure(.stalled(error))
        case (.position, .divisionByZero?):
            return try fenced(steps)
        case (.owners, .divisionByZero?):
            return .failure(
                .call(
                    RecordStoreError(
                        .incompatibleTables,
                        message: "\(connection.place): an owner of partition "
                            + "\(steps.map { "\($0.partition)" }.joined(separator: ", ")) was in another one before; a "
                            + "history keeps its number of partitions: name another database, or restore the log these "
                            + "tables belong to")))
        case (.rows(let places), let state?) where Self.mayBeARow(state):
            guard let (key, cause) = try writer.refusedRow(among: places) else { break }
            let table = tables.layouts[key.table].table.name
            let reason = cause.sqlState?.category == "23" ? cause.description : cause.withoutMessage
            return .failure(.call(RowArrays.refusal(of: key, table, reason)))
        default: break
        }
        return .failure(.call(RecordStoreError(error, place: connection.place)))
    }

    /// Whether an error is about what a row holds: bad data, a constraint, a trigger's refusal, a size, a rule for rows.
    private static func mayBeARow(_ state: SQLState) -> Bool {
        ["21", "22", "23", "44", "54", "P0", "42", "0A"].contains(state.category)
    }

    /// Tells a worker that was replaced from one whose own commit was done and whose answer was lost.
    private func fenced(_ steps: [StoreStep]) throws -> Result<Void, Failure> {
        var isDone = memory.hasLost(steps)
        var message = ""
        for step in steps {
            let found = try PositionRecord.read(step.partition, connection, tables.statements)
            if found != step.position { isDone = false }
            if found != step.expected, message.isEmpty {
                message =
                    "partition \(step.partition) stands at \(PositionRecord.describe(found)) and was expected at "
                    + "\(PositionRecord.describe(step.expected)): another worker has moved it on"
            }
        }
        if isDone {
            memory.finish(steps)
            return .success(())
        }
        memory.fence(steps)
        return .failure(.call(RecordStoreError(.fenced, message: "\(connection.place): \(message)")))
    }
}
