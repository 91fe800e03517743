import SyncModel

/// The SQL that reads and writes the system tables.
///
/// Plans are generic and cached (see ``SessionSettings``): `LATERAL` with `OFFSET 0` keeps the planner from scanning a table
/// that it assumes to be small, so that each row is found by the primary key.
struct SystemStatements: Sendable {
    /// Locks partitions for this transaction, by the store's lock space and the partitions in rising order.
    ///
    /// Before the rows, so that the session that blocks a partition is found by its lock, even for a new partition.
    let lock = """
        SELECT pg_advisory_xact_lock($1::integer, wanted.partition) FROM unnest($2::integer[]) AS wanted (partition)
        """

    /// Terminates the sessions that hold locks of partitions, and returns their number.
    let endHolders = """
        SELECT count(*) FROM (
            SELECT pg_terminate_backend(held.pid, 5000) AS ended
            FROM pg_locks AS held JOIN pg_stat_activity AS session ON session.pid = held.pid
            WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 2
                AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND held.classid::bigint = ($1::integer::bigint & 4294967295)
                AND held.objid::bigint = ANY ($2::bigint[])
                AND session.usename = current_user AND held.pid <> pg_backend_pid()
        ) AS holders WHERE ended
        """

    /// Selects the position of one partition.
    let position: String
    /// Updates positions by compare-and-set: arrays of new values, of expected values, and their number.
    let updatePositions: String
    /// Inserts the first positions of partitions.
    let insertPositions: String
    /// Records the partitions of owners.
    let insertOwners: String
    /// Selects what owners have.
    let usage: String
    /// Sets what owners have, whose partitions are recorded.
    let writeUsage: String
    /// Raises devices' highest batch numbers and adds to their numbers of outcomes.
    let updateDevices: String
    /// Writes outcomes, each over its device's oldest.
    let writeOutcomes: String
    /// Selects devices' progress, each with one outcome.
    let progress: String
    /// Selects applied changes by device and id.
    let appliedChanges: String
    /// Writes applied changes of devices that have a row.
    let writeAppliedChanges: String

    private static let places = Outcome.keptPerDevice

    init(_ tables: SystemTables) {
        let partitions = tables.partitions.qualifiedName
        let owners = tables.owners.qualifiedName
        let devices = tables.devices.qualifiedName
        let outcomes = tables.outcomes.qualifiedName
        let applied = tables.appliedChanges.qualifiedName
        position = """
            SELECT ordered_offset, next_offset, time_stamp, schema_ordinal, uploads FROM \(partitions)
            WHERE partition = $1::integer
            """
        // An unexpected count divides by zero, which aborts the pipeline and with it the transaction.
        updatePositions = """
            WITH moved AS (
                UPDATE \(partitions) AS found SET ordered_offset = new.ordered_offset, next_offset = new.next_offset,
                    time_stamp = new.time_stamp, schema_ordinal = new.schema_ordinal, uploads = new.uploads
                FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], $6::bytea[],
                        $7::bigint[], $8::bigint[], $9::bigint[], $10::integer[], $11::bytea[])
                    AS new (partition, ordered_offset, next_offset, time_stamp, schema_ordinal, uploads,
                        old_ordered_offset, old_next_offset, old_time_stamp, old_schema_ordinal, old_uploads)
                WHERE found.partition = new.partition AND found.ordered_offset = new.old_ordered_offset
                    AND found.next_offset = new.old_next_offset AND found.time_stamp = new.old_time_stamp
                    AND found.schema_ordinal = new.old_schema_ordinal AND found.uploads = new.old_uploads
                RETURNING 1)
            SELECT 1 / (count(*) = $12::bigint)::integer FROM moved
            """
        insertPositions = """
            WITH begun AS (
                INSERT INTO \(partitions)
                    (partition, ordered_offset, next_offset, time_stamp, schema_ordinal, uploads)
                SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[],
                    $6::bytea[])
                ON CONFLICT (partition) DO NOTHING RETURNING 1)
            SELECT 1 / (count(*) = $7::bigint)::integer FROM begun
            """
        insertOwners = """
            WITH settled AS (
                INSERT INTO \(owners) (sync_id, partition)
                SELECT * FROM unnest($1::text[], $2::integer[])
                ON CONFLICT (sync_id) DO NOTHING)
            SELECT 1 / (count(*) = 0)::integer
            FROM unnest($1::text[], $2::integer[]) AS new (sync_id, partition)
            CROSS JOIN LATERAL (SELECT * FROM \(owners) AS stored
                WHERE stored.sync_id = new.sync_id OFFSET 0) AS found
            WHERE found.partition <> new.partition
            """
        usage = """
            SELECT requested.number, found.rows, found.bytes, found.deleted_rows, found.deleted_bytes
            FROM unnest($1::text[]) WITH ORDINALITY AS requested (sync_id, number)
            CROSS JOIN LATERAL (SELECT * FROM \(owners) AS stored
                WHERE stored.sync_id = requested.sync_id OFFSET 0) AS found
            """
        // An upsert finds the rows by the primary key, whatever size the planner assumes.
        writeUsage = """
            INSERT INTO \(owners) (sync_id, partition, rows, bytes, deleted_rows, deleted_bytes)
            SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
            ON CONFLICT (sync_id) DO UPDATE SET rows = excluded.rows, bytes = excluded.bytes,
                deleted_rows = excluded.deleted_rows, deleted_bytes = excluded.deleted_bytes
            """
        updateDevices = """
            INSERT INTO \(devices) AS found (owner, caller, knowledge_id, highest_batch, outcomes)
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
            ON CONFLICT (owner, caller, knowledge_id) DO UPDATE SET
                highest_batch = greatest(found.highest_batch, excluded.highest_batch),
                outcomes = found.outcomes + excluded.outcomes
            """
        writeOutcomes = """
            INSERT INTO \(outcomes) (device, place, batch, outcome)
            SELECT found.device, (found.outcomes - new.behind) % \(Self.places), new.batch, new.outcome
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[])
                AS new (owner, caller, knowledge_id, behind, batch, outcome)
            CROSS JOIN LATERAL (SELECT * FROM \(devices) AS stored WHERE stored.owner = new.owner
                AND stored.caller = new.caller AND stored.knowledge_id = new.knowledge_id OFFSET 0) AS found
            ON CONFLICT (device, place) DO UPDATE SET batch = excluded.batch, outcome = excluded.outcome
            """
        // Usually the batch is new and has no outcome: then the key is NULL, which needs no index lookup.
        progress = """
            SELECT requested.number, found.highest_batch, kept.outcome
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
                WITH ORDINALITY AS requested (owner, caller, knowledge_id, batch, number)
            CROSS JOIN LATERAL (SELECT * FROM \(devices) AS stored WHERE stored.owner = requested.owner
                AND stored.caller = requested.caller AND stored.knowledge_id = requested.knowledge_id OFFSET 0) AS found
            LEFT JOIN LATERAL (SELECT * FROM \(outcomes) AS stored
                WHERE stored.device = CASE WHEN requested.batch <= found.highest_batch THEN found.device END
                AND stored.batch = requested.batch OFFSET 0) AS kept ON true
            """
        appliedChanges = """
            SELECT requested.number, kept.change_id, kept.content, kept.time_stamp, kept.version, kept.deleted,
                kept.knowledge_id
            FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[])
                WITH ORDINALITY AS requested (owner, caller, knowledge_id, change_id, number)
            CROSS JOIN LATERAL (SELECT * FROM \(devices) AS stored WHERE stored.owner = requested.owner
                AND stored.caller = requested.caller AND stored.knowledge_id = requested.knowledge_id OFFSET 0) AS found
            CROSS JOIN LATERAL (SELECT * FROM \(applied) AS stored WHERE stored.device = found.device
                AND stored.change_id = requested.change_id OFFSET 0) AS kept
            """
        writeAppliedChanges = """
            INSERT INTO \(applied) (device, change_id, content, time_stamp, version, deleted, knowledge_id)
            SELECT found.device, new.change_id, new.content, new.time_stamp, new.version, new.deleted, new.creator
            FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[], $7::bigint[],
                $8::boolean[], $9::text[])
                AS new (owner, caller, knowledge_id, change_id, content, time_stamp, version, deleted, creator)
            CROSS JOIN LATERAL (SELECT * FROM \(devices) AS stored WHERE stored.owner = new.owner
                AND stored.caller = new.caller AND stored.knowledge_id = new.knowledge_id OFFSET 0) AS found
            ON CONFLICT (device, change_id) DO UPDATE SET content = excluded.content,
                time_stamp = excluded.time_stamp, version = excluded.version, deleted = excluded.deleted,
                knowledge_id = excluded.knowledge_id
            """
    }
}
