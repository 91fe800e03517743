import AsyncPrimitives
import Postgres
import RecordStore
import SyncModel

/// Runs the migrations of all databases, and commits them once the schema version is published.
///
/// The statements run first: a version is published only when the tables are locked and extended, so that no worker ever waits
/// for tables that somebody else uses. Locks are awaited for a moment only, since everybody queues behind an exclusive lock that
/// waits; between two attempts nothing is locked, and a notice tells long reads to give way.
struct MigrationRun: Sendable {
    let schemas: SchemaHistory
    let epoch: String
    /// How long tables that are in use are awaited.
    let wait: Duration
    /// Publishes the newest version; false where it was not published and the tables must stay as they are.
    let publish: @Sendable () async throws -> Bool

    private struct Database: Sendable {
        let shard: Shard
        let session: LeasedConnection
        let plan: MigrationPlan
    }

    private enum Attempt: Sendable {
        case done([MigrationPlan])
        case notPublished
        /// The tables of a database are in use.
        case busy(Shard)
    }

    /// For each lock, in milliseconds.
    private static let lockTimeout = 250
    private static let pause: Duration = .seconds(1)
    /// How long a transaction may wait for the statements of other databases, in milliseconds; ends those of processes that
    /// are gone.
    private static let statementTimeout = 600_000
    /// How long a transaction that holds locks may wait for the publication, in milliseconds.
    private static let publicationTimeout = 30_000

    /// - Returns: what was done, or `nil` if the version was not published.
    func run(_ shards: [Shard]) async throws(RecordStoreError) -> [MigrationPlan]? {
        do {
            let first = try await attempt(shards[...], [])
            guard case .busy = first else { return plans(first) }
            return try await announcing(shards[...]) { try await repeatedly(shards, after: first) }
        } catch {
            throw RecordStoreError(error, database: shards.count == 1 ? shards[0].database : "the tables")
        }
    }

    private func plans(_ attempt: Attempt) -> [MigrationPlan]? {
        if case .done(let plans) = attempt { plans } else { nil }
    }

    private func repeatedly(_ shards: [Shard], after first: Attempt) async throws -> [MigrationPlan]? {
        var last = first
        var backoff = Backoff(RetryPolicy(delays: Self.pause...Self.pause, limit: wait))
        while case .busy(let shard) = last {
            guard backoff.isWithinLimit else { throw try await failure(shard) }
            try await backoff.pause()
            last = try await attempt(shards[...], [])
        }
        return plans(last)
    }

    /// Asks readers of all databases to give way for the duration of a body.
    private func announcing<Value: Sendable>(
        _ shards: ArraySlice<Shard>, _ body: () async throws -> Value
    ) async throws -> Value {
        guard let shard = shards.first else { return try await body() }
        // A session of its own, since those of the pool may be few.
        let sessions = try await shard.sessions(1, name: "postgres-notice")
        let result = await Result<Value, any Error>.capturing {
            try await sessions.lease { session in
                try await session.perform { connection in
                    let timeout = Int((wait + .seconds(600)) / .milliseconds(1))
                    try connection.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = \(timeout)")
                    try MigrationNotice(shard.settings).announce(connection)
                }
                return try await announcing(shards.dropFirst(), body)
            }
        }
        await sessions.close()
        return try result.get()
    }

    /// Opens a transaction of each database in turn, and rolls all back that are not committed.
    private func attempt(_ shards: ArraySlice<Shard>, _ opened: [Database]) async throws -> Attempt {
        guard let shard = shards.first else { return try await finish(opened) }
        return try await shard.lease { session in
            let plan = try await session.perform { [schemas, epoch] connection in
                let plan = try Migration(connection, schemas, epoch: epoch, shard.settings).plan()
                try connection.execute("SET LOCAL idle_in_transaction_session_timeout = \(Self.statementTimeout)")
                return plan
            }
            return try await attempt(
                shards.dropFirst(), opened + [Database(shard: shard, session: session, plan: plan)])
        }
    }

    private func finish(_ databases: [Database]) async throws -> Attempt {
        let changed = databases.filter { !$0.plan.statements.isEmpty }
        for database in changed where try await !execute(database) { return .busy(database.shard) }
        // Also shows that no session was lost meanwhile.
        for database in changed {
            try await database.session.perform {
                try $0.execute("SET LOCAL idle_in_transaction_session_timeout = \(Self.publicationTimeout)")
            }
        }
        guard try await publish() else { return .notPublished }
        // In a task of its own: what is published is committed in all databases, also if the caller is cancelled by then.
        try await Task {
            for database in changed { try await database.session.perform { try $0.execute("COMMIT") } }
        }.value
        return .done(databases.map(\.plan))
    }

    /// Runs the statements; false where a table is in use.
    private func execute(_ database: Database) async throws -> Bool {
        try await database.session.perform { connection in
            do throws(PostgresError) {
                try connection.execute("SET LOCAL lock_timeout = \(Self.lockTimeout)")
                try connection.execute(database.plan.statements.joined(separator: ";\n"))
                return true
            } catch {
                guard error.sqlState == .lockNotAvailable else { throw error }
                return false
            }
        }
    }

    /// Says who uses the tables.
    private func failure(_ shard: Shard) async throws -> RecordStoreError {
        let schema = shard.settings.schema
        let users = try await shard.read { connection in
            var parameters = PostgresParameters()
            parameters.append(schema)
            let rows = try connection.query(
                """
                SELECT DISTINCT session.pid::text, session.application_name, session.xact_start::text
                FROM pg_catalog.pg_locks AS held
                JOIN pg_catalog.pg_class AS object ON object.oid = held.relation
                JOIN pg_catalog.pg_namespace AS place ON place.oid = object.relnamespace
                JOIN pg_catalog.pg_stat_activity AS session ON session.pid = held.pid
                WHERE place.nspname = $1::text AND held.granted AND held.pid <> pg_catalog.pg_backend_pid()
                    AND session.datname = current_database()
                ORDER BY 3 NULLS LAST LIMIT 3
                """, parameters)
            return try (0..<rows.count).map { row in
                let start = rows.isNull(row, 2) ? "" : " since \(try rows.text(row, 2))"
                return "\(try rows.text(row, 1)) (pid \(try rows.text(row, 0))\(start))"
            }
        }
        return RecordStoreError(
            .unavailable,
            message: "\(shard.database): the tables are in use"
                + (users.isEmpty ? "" : ", by " + users.joined(separator: ", "))
                + "; nothing was changed: try again when those transactions have ended", isRetriable: true)
    }
}
