import Observability
import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Writes the waiting calls of `commit` in one transaction; each succeeds or fails separately.
struct GroupCommit {
    let connection: PostgresConnection
    let tables: PreparedTables<TableLayout>
    let settings: ShardSettings
    let history: CommitHistory
    let logger: Logger

    /// Writes and resolves calls.
    ///
    /// - Returns: the unresolved calls if the session was lost, with its error.
    func run(_ commits: [PendingCommit]) -> (commits: [PendingCommit], error: PostgresError)? {
        if commits.count > 1 {
            switch attempt(commits.flatMap(\.steps), isGroup: true) {
            case .success:
                for commit in commits { commit.resolve(.success(())) }
                return nil
            case .failure(.lost(let error)):
                return (commits, error)
            case .failure:
                // Any of the calls may have caused it: each is written alone.
                break
            }
        }
        for (index, commit) in commits.enumerated() where !commit.isAbandoned {
            switch write(commit.steps) {
            case .success: commit.resolve(.success(()))
            case .failure(.lost(let error)): return (Array(commits[index...]), error)
            case .failure(.call(let error)): commit.resolve(.failure(error))
            case .failure(.blocked(let error)):
                commit.resolve(.failure(RecordStoreError(error, database: connection.database)))
            }
        }
        return nil
    }

    private enum Failure: Error {
        /// The session was lost: the steps may have been written or not.
        case lost(PostgresError)
        /// Another session holds the lock of a partition.
        case blocked(PostgresError)
        /// This call failed.
        case call(RecordStoreError)
    }

    /// Writes the steps of one call, and terminates the sessions that block their partitions.
    private func write(_ steps: [StoreStep]) -> Result<Void, Failure> {
        let first = attempt(steps)
        guard case .failure(.blocked) = first else { return first }
        do {
            var partitions = BinaryArray(.bigint)
            for partition in Set(steps.map(\.partition)) { partitions.append(Int64(partition)) }
            var parameters = PostgresParameters()
            parameters.append(settings.lockSpace)
            parameters.append(partitions)
            let ended = try connection.query(settings.statements.endHolders, parameters).bigint(0, 0)
            if ended > 0 {
                logger.warning(
                    "Terminated the sessions of a stalled worker that held locks of partitions",
                    [.partition: .integer(steps[0].partition), .count: .integer(Int(ended))])
            }
        } catch {
            return .failure(Self.failure(error, connection.database))
        }
        return attempt(steps)
    }

    /// - Parameters:
    ///   - isGroup: whether the steps belong to several calls, so that an error is not attributed to one.
    ///   - isInserting: whether a row's first version is inserted without a conflict check. If the row exists, because another
    ///     application created it, the second attempt overwrites it.
    private func attempt(
        _ steps: [StoreStep], isGroup: Bool = false, isInserting: Bool = true
    ) -> Result<Void, Failure> {
        history.recordBegin(steps)
        let writer = StepWriter(connection, tables, settings, history, steps: steps, isInserting: isInserting)
        do {
            try writer.write()
            history.recordWritten(steps)
            return .success(())
        } catch let error as PostgresError {
            guard !error.isConnectionLost else {
                // Without a statement nothing was written.
                if !writer.purposes.isEmpty { history.recordLost(steps) }
                return .failure(.lost(error))
            }
            do {
                try connection.rollBack()
                if isInserting, error.sqlState == .uniqueViolation {
                    return attempt(steps, isGroup: isGroup, isInserting: false)
                }
                if isGroup { return .failure(.call(RecordStoreError(error, database: connection.database))) }
                return try explain(error, writer, steps)
            } catch {
                return .failure(Self.failure(error, connection.database))
            }
        } catch {
            do {
                try connection.rollBack()
            } catch {
                return .failure(Self.failure(error, connection.database))
            }
            return .failure(Self.failure(error, connection.database))
        }
    }

    private static func failure(_ error: any Error, _ database: String) -> Failure {
        if let error = error as? PostgresError, error.isConnectionLost { return .lost(error) }
        return .call(RecordStoreError(error, database: database))
    }

    // MARK: Errors

    private func explain(
        _ error: PostgresError, _ writer: StepWriter, _ steps: [StoreStep]
    ) throws -> Result<Void, Failure> {
        let purpose = error.statement.flatMap { writer.purposes.indices.contains($0) ? writer.purposes[$0] : nil }
        switch (purpose, error.sqlState) {
        case (.lock, .lockNotAvailable?):
            return .failure(.blocked(error))
        case (.position, .divisionByZero?):
            return try fenced(steps)
        case (.owners, .divisionByZero?):
            return .failure(
                .call(
                    .incompatible(
                        "an owner of partition \(steps.map { "\($0.partition)" }.joined(separator: ", ")) is recorded in "
                            + "another partition; the number of partitions must not change: set another database, or "
                            + "restore the log these tables belong to", database: connection.database)))
        case (.rows(let locators), let state?) where Self.mayBeARow(state):
            guard let (key, cause) = try writer.rejectedRow(among: locators) else { break }
            let table = tables.layouts[key.table].table.name
            let reason = cause.sqlState?.category == "23" ? cause.description : cause.withoutMessage
            return .failure(.call(.refusedRow(key, table: table, reason: reason)))
        default: break
        }
        return .failure(.call(RecordStoreError(error, database: connection.database)))
    }

    /// Whether the values of a row may cause the error: bad data, a constraint, a trigger, a size limit, a row policy.
    private static func mayBeARow(_ state: SQLState) -> Bool {
        ["21", "22", "23", "44", "54", "P0", "42", "0A"].contains(state.category)
    }

    /// Distinguishes a replaced worker from one whose own commit succeeded before its response was lost.
    private func fenced(_ steps: [StoreStep]) throws -> Result<Void, Failure> {
        var areWritten = history.wereLost(steps)
        var failure: RecordStoreError?
        for step in steps {
            let found = try PartitionsTable.read(step.partition, connection, settings.statements)
            if found != step.position { areWritten = false }
            if found != step.expected {
                failure = failure ?? .fenced(step, found: found, database: connection.database)
            }
        }
        if areWritten {
            history.recordWritten(steps)
            return .success(())
        }
        history.recordFenced(steps)
        // Every position is as expected only if it was changed back in between.
        return .failure(.call(failure ?? .fenced(steps[0], found: steps[0].expected, database: connection.database)))
    }
}
