import CanonicalValues
import Postgres
import RecordStore
import SyncModel

/// What a database of the store must know of its place among the others.
struct ShardSettings: Sendable {
    /// Its number, from 0.
    let number: Int
    /// How many databases there are.
    let count: Int
    let schema: String
    let readersRole: String?
    let indexesReferences: Bool
    let isReadOnly: Bool

    init(_ configuration: PostgresRecordStoreConfiguration, number: Int) {
        self.number = number
        count = configuration.shards.count
        schema = configuration.schema
        readersRole = configuration.readersRole
        indexesReferences = configuration.indexesReferences
        isReadOnly = configuration.isReadOnly
    }

    /// What tells this store's locks from those of others in the same database: all workers must find the same number.
    var lockSpace: Int32 {
        var name = "weir partitions in \(schema)"
        return name.withUTF8 { Int32(bitPattern: murmur2($0.span.bytes)) }
    }

    /// The SQL of a table of rows.
    func layout(_ table: Table) throws(RecordStoreError) -> TableLayout {
        do throws(CanonicalValueError) {
            return try TableLayout(table, schema: schema)
        } catch {
            throw RecordStoreError(
                .incompatibleTables,
                message: "a default of table \(table.name) is no \(error.type) in canonical form")
        }
    }
}

/// What every session of the store is set to.
struct SessionSettings: Sendable {
    private let statement: String

    /// - Parameter readsSnapshots: whether the session reads whole partitions, whose plans differ, and whose readers may take
    ///   their time.
    init(_ configuration: PostgresRecordStoreConfiguration, readsSnapshots: Bool) {
        func milliseconds(_ duration: Duration) -> Int { Int(duration / .milliseconds(1)) }
        // Names are spelled in full, and nobody's own functions or operators are found.
        var settings = [
            "search_path": "''", "client_encoding": "UTF8", "standard_conforming_strings": "on", "timezone": "UTC",
            // A session that an operator's rules for rows filter says so rather than missing rows.
            "row_security": "off",
            // Only the log is synced: tables may lose their last moments together with their position.
            "synchronous_commit": "off", "statement_timeout": "0", "default_transaction_isolation": "'read committed'",
            "lock_timeout": "\(milliseconds(configuration.stalledAfter))", "jit": "off",
        ]
        // Whatever is asked for.
        if configuration.isReadOnly { settings["default_transaction_read_only"] = "on" }
        if readsSnapshots {
            // A reader that writes a file between two pieces is slow, one of ten minutes is gone; it locks no rows.
            settings["idle_in_transaction_session_timeout"] = "600000"
            settings["cursor_tuple_fraction"] = "1"
        } else {
            settings["idle_in_transaction_session_timeout"] = "\(milliseconds(configuration.idleTransactionTimeout))"
            // Plans are made once, for a few rows, and never by statistics that are older than the tables: through the
            // primary keys.
            settings["plan_cache_mode"] = "force_generic_plan"
            settings["enable_seqscan"] = "off"
            settings["enable_bitmapscan"] = "off"
            settings["enable_hashjoin"] = "off"
            settings["enable_mergejoin"] = "off"
        }
        // Not among the parameters of the start, which PgBouncer does not pass on.
        let sets = settings.sorted { $0.key < $1.key }.map { "SET \($0.key) = \($0.value)" }
        statement = (sets + [Self.compression]).joined(separator: "; ")
    }

    /// Outcomes of large batches are compressed, which takes Postgres's own method several times as long as LZ4; not every
    /// server has that.
    private static let compression = """
        SELECT set_config(name, 'lz4', false) FROM pg_settings
        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
        """

    func apply(to connection: PostgresConnection) throws {
        try connection.execute(statement)
    }

    /// Adds what the way to a database should have where nobody says otherwise.
    ///
    /// - Parameter writes: whether it must be a database that takes writes.
    static func completed(_ parameters: ConnectionParameters, writes: Bool) -> ConnectionParameters {
        var completed = parameters.verifyingServers()
        let defaults = [
            "application_name": "weir", "client_encoding": "UTF8",
            // A standby takes no writes; with several hosts, the one that does is found.
            "target_session_attrs": writes ? "read-write" : "any",
            // A server that vanished without a word is given up after half a minute.
            "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "4", "tcp_user_timeout": "30000",
        ]
        for (keyword, value) in defaults where parameters[keyword] == nil { completed[keyword] = value }
        return completed
    }
}
