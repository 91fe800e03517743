import CanonicalValues
import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// One of the store's databases.
struct ShardSettings: Sendable {
    /// From 0.
    let number: Int
    /// How many databases the store has.
    let count: Int
    let schema: String
    let readersRole: String?
    let indexesReferences: Bool
    let isReadOnly: Bool
    let system: SystemTables
    let statements: SystemStatements

    init(_ configuration: PostgresRecordStoreConfiguration, number: Int) {
        self.number = number
        count = configuration.shards.count
        schema = configuration.schema
        readersRole = configuration.readersRole
        indexesReferences = configuration.indexesReferences
        isReadOnly = configuration.isReadOnly
        system = SystemTables(schema: schema)
        statements = SystemStatements(system)
    }

    /// Separates this store's advisory locks from others in the same database; all workers must compute the same number.
    var lockSpace: Int32 {
        var name = "weir partitions in \(schema)"
        return name.withUTF8 { Int32(bitPattern: murmur2($0.span.bytes)) }
    }

    func layout(_ table: Table) throws(RecordStoreError) -> TableLayout {
        do throws(CanonicalValueError) {
            return try TableLayout(table, schema: schema)
        } catch {
            throw RecordStoreError(
                .incompatibleTables, message: "a default of table \(table.name) is no canonical \(error.type)")
        }
    }
}

/// The run-time parameters of a session.
struct SessionSettings: Sendable {
    private let statement: String

    /// - Parameter readsSnapshots: whether the session reads whole partitions, which needs other plans and longer timeouts.
    init(_ configuration: PostgresRecordStoreConfiguration, readsSnapshots: Bool) {
        func milliseconds(_ duration: Duration) -> Int { Int(duration / .milliseconds(1)) }
        // All names are qualified; user-defined functions and operators must not be found.
        var settings = [
            "search_path": "''", "client_encoding": "UTF8", "standard_conforming_strings": "on", "timezone": "UTC",
            // Row security policies raise an error instead of hiding rows.
            "row_security": "off",
            // Only the log is synced: the tables may lose the newest commits together with the position.
            "synchronous_commit": "off", "statement_timeout": "0", "default_transaction_isolation": "'read committed'",
            "lock_timeout": "\(milliseconds(configuration.stalledAfter))", "jit": "off",
        ]
        if configuration.isReadOnly { settings["default_transaction_read_only"] = "on" }
        if readsSnapshots {
            // A reader may write a file between two chunks, and locks no rows; after ten minutes it is considered dead.
            settings["idle_in_transaction_session_timeout"] = "600000"
            settings["cursor_tuple_fraction"] = "1"
        } else {
            settings["idle_in_transaction_session_timeout"] = "\(milliseconds(configuration.idleTransactionTimeout))"
            // Generic plans for few rows by the primary keys, independent of outdated statistics.
            settings["plan_cache_mode"] = "force_generic_plan"
            settings["enable_seqscan"] = "off"
            settings["enable_bitmapscan"] = "off"
            settings["enable_hashjoin"] = "off"
            settings["enable_mergejoin"] = "off"
        }
        // Not as startup parameters, which PgBouncer does not pass on.
        let sets = settings.sorted { $0.key < $1.key }.map { "SET \($0.key) = \($0.value)" }
        statement = (sets + [Self.compression]).joined(separator: "; ")
    }

    /// Outcomes of large batches are compressed: LZ4, which not every server has, is several times as fast as pglz.
    private static let compression = """
        SELECT set_config(name, 'lz4', false) FROM pg_settings
        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
        """

    func apply(to connection: PostgresConnection) throws {
        try connection.execute(statement)
    }

    /// Adds defaults to connection parameters.
    ///
    /// - Parameter writes: whether the session needs a primary.
    static func completed(_ parameters: ConnectionParameters, writes: Bool) -> ConnectionParameters {
        var completed = parameters.verifyingServers()
        let defaults = [
            "application_name": "weir", "client_encoding": "UTF8",
            // With several hosts, libpq finds the primary.
            "target_session_attrs": writes ? "read-write" : "any",
            // An unreachable server is detected after half a minute.
            "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "4", "tcp_user_timeout": "30000",
        ]
        for (keyword, value) in defaults where parameters[keyword] == nil { completed[keyword] = value }
        return completed
    }
}
