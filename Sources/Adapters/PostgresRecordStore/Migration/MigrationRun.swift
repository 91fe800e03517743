import AsyncPrimitives
import Postgres
import RecordStore
import SyncModel

/// Runs the migrations of all databases, and commits them once the schema version is published.
///
/// The statements run first: a version is published only when the tables are locked and extended, so that no worker ever waits
/// for tables that somebody else uses. Locks are awaited for a moment only, since everybody queues behind an exclusive lock that
/// waits; between two attempts nothing is locked, and long reads, which a notice tells to give way, end.
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

    /// In milliseconds; all sessions that use a table may have to wait as long.
    private static let lockTimeout = 250
    private static let pause: Duration = .seconds(1)
    /// How long a transaction that holds locks may wait for the publication, in milliseconds.
    private static let publicationTimeout = 30_000

    /// - Returns: what was done, or `nil` if the version was not published.
    func run(_ shards: [Shard]) async throws(RecordStoreError) -> [MigrationPlan]? {
        do {
            return try await open(shards[...], [])
        } catch {
            throw RecordStoreError(error, database: shards.count == 1 ? shards[0].database : "the tables")
        }
    }

    /// Opens a transaction of each database in turn.
    private func open(_ shards: ArraySlice<Shard>, _ opened: [Database]) async throws -> [MigrationPlan]? {
        guard let shard = shards.first else { return try await finish(opened) }
        return try await shard.lease { session in
            let plan = try await session.perform { [schemas, epoch] connection in
                let plan = try Migration(connection, schemas, epoch: epoch, shard.settings).plan()
                if !plan.statements.isEmpty {
                    try connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                    try MigrationNotice(shard.settings).announce(connection)
                }
                return plan
            }
            return try await open(shards.dropFirst(), opened + [Database(shard: shard, session: session, plan: plan)])
        }
    }

    private func finish(_ databases: [Database]) async throws -> [MigrationPlan]? {
        let changed = databases.filter { !$0.plan.statements.isEmpty }
        var backoff = Backoff(RetryPolicy(delays: Self.pause...Self.pause, limit: wait))
        while let busy = try await firstBusy(changed) {
            for database in changed { try await database.session.perform { try $0.execute("ROLLBACK TO unchanged") } }
            guard backoff.isWithinLimit else { throw try await failure(busy) }
            try await backoff.pause()
        }
        guard try await publish() else { return nil }
        for database in changed { try await database.session.perform { try $0.execute("COMMIT") } }
        return databases.map(\.plan)
    }

    /// Runs the statements, until the tables of a database are in use.
    private func firstBusy(_ databases: [Database]) async throws -> Database? {
        for database in databases {
            let isBusy = try await database.session.perform { connection in
                try connection.execute("SAVEPOINT unchanged; SET LOCAL lock_timeout = \(Self.lockTimeout)")
                do throws(PostgresError) {
                    try connection.execute(database.plan.statements.joined(separator: ";\n"))
                } catch {
                    guard error.sqlState == .lockNotAvailable else { throw error }
                    return true
                }
                try connection.execute(
                    "SET LOCAL idle_in_transaction_session_timeout = \(Self.publicationTimeout)")
                return false
            }
            if isBusy { return database }
        }
        return nil
    }

    /// Says who uses the tables.
    private func failure(_ database: Database) async throws -> RecordStoreError {
        let schema = database.shard.settings.schema
        let users = try await database.session.perform { connection in
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
            message: "\(database.shard.database): the tables are in use"
                + (users.isEmpty ? "" : ", by " + users.joined(separator: ", "))
                + "; nothing was changed: try again when those transactions have ended", isRetriable: true)
    }
}
