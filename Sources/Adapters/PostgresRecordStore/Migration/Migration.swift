import CanonicalValues
import Postgres
import RecordStore
import RelationalTables
import SyncModel
import SyncWire

/// What a migration does to one database, in SQL.
package struct MigrationPlan: Sendable, Hashable {
    /// The database, without a password.
    package let database: String
    /// In order, without semicolons; none if nothing is missing.
    package let statements: [String]

    /// The statements as one script for an administrator to run.
    package var script: String {
        guard !statements.isEmpty else { return "-- \(database): nothing to do\n" }
        return "-- \(database)\n" + (["BEGIN"] + statements + ["COMMIT"]).map { $0 + ";\n" }.joined()
    }
}

/// What the tables of a database lack for schema versions; rejects a database that does not fit.
///
/// Works in one transaction of the connection, under a lock for which other migrations wait.
struct Migration {
    private let connection: PostgresConnection
    private let schemas: SchemaHistory
    private let epoch: String
    private let settings: ShardSettings
    private let system: SystemTables

    init(_ connection: PostgresConnection, _ schemas: SchemaHistory, epoch: String, _ settings: ShardSettings) {
        self.connection = connection
        self.schemas = schemas
        self.epoch = epoch
        self.settings = settings
        system = settings.system
    }

    /// Begins the transaction and changes nothing.
    func plan() throws -> MigrationPlan {
        try connection.execute("BEGIN")
        // Tables, unlike rows, cannot be rebuilt by ordering.
        try connection.execute("SET LOCAL synchronous_commit = on")
        if !settings.isReadOnly { try waitForOthers() }
        return MigrationPlan(database: connection.database, statements: try statements())
    }

    /// Takes the migration lock, which another migration may hold for some time.
    private func waitForOthers() throws {
        let timeout = try connection.query("SELECT current_setting('lock_timeout')").text(0, 0)
        try connection.execute("SET LOCAL lock_timeout = '\(Self.lockTimeout)'")
        var key = PostgresParameters()
        key.append(settings.lockSpace)
        _ = try connection.query("SELECT pg_advisory_xact_lock($1::integer, -1)", key)
        try connection.execute("SET LOCAL lock_timeout = \(SQLText.literal(timeout))")
    }

    /// How long a migration waits for another one before it fails and an operator must look.
    private static let lockTimeout = "120s"

    // MARK: The statements

    private func statements() throws -> [String] {
        try checkDatabase()
        let check = TableCheck(
            connection: connection, schema: settings.schema, database: connection.database,
            isForReading: settings.isReadOnly)
        var statements: [String] = []
        let recorded: RecordedSchemas
        if try check.exists(system.migrations.name) {
            try checkFormat()
            for table in system.all { try check.run(table) }
            try checkShard()
            recorded = try readSchemas()
        } else {
            statements += try createSystemTables(check)
            recorded = try recordedSchemas([])
        }
        try recorded.check(schemas)
        for (index, table) in recorded.wanted(schemas).enumerated() {
            let before = index < recorded.tables.count ? recorded.tables[index] : nil
            statements += try self.statements(for: table, before: before, check)
        }
        for entry in recorded.missing(schemas) { statements.append(record(entry)) }
        return statements + (try grants(recorded.wanted(schemas), check, areTablesNew: !statements.isEmpty))
    }

    private func createSystemTables(_ check: TableCheck) throws -> [String] {
        var statements: [String] = []
        if try !check.schemaExists() { statements.append("CREATE SCHEMA \(SQLText.name(settings.schema))") }
        for table in system.all {
            try check.rejectForeign(table.name)
            statements += table.creation
        }
        statements += system.indexes
        statements.append("INSERT INTO \(system.migrations.qualifiedName) (format) VALUES (\(SystemTables.format))")
        statements.append(
            "INSERT INTO \(system.shard.qualifiedName) (shard, shards, epoch) VALUES (\(settings.number), \(settings.count), "
                + "\(SQLText.literal(epoch)))")
        return statements
    }

    private func statements(for table: Table, before: Table?, _ check: TableCheck) throws -> [String] {
        let layout = try settings.layout(table)
        guard let before else {
            try check.rejectForeign(table.name)
            let references = settings.indexesReferences ? referenceIndexes(table.columns[...], table) : []
            return layout.definition(columns: table.columns.count).creation + references
        }
        let definition = layout.definition(columns: before.columns.count)
        let added = table.columns.indices.dropFirst(before.columns.count)
        try check.run(definition, adding: added.map { table.columns[$0].name })
        let references = settings.indexesReferences ? referenceIndexes(table.columns[added], table) : []
        return added.flatMap { definition.addition(of: layout.definition(ofColumn: $0)) } + references
    }

    /// Hash indexes, whose entries are small for any value, so that they reject no row.
    private func referenceIndexes(_ columns: ArraySlice<Column>, _ table: Table) -> [String] {
        columns.filter { $0.references != nil }.map { column in
            "CREATE INDEX ON \(SQLText.name(settings.schema)).\(SQLText.name(table.name)) USING hash "
                + "(\(SQLText.name(column.name)))"
        }
    }

    private func record(_ entry: SchemaHistory.Entry) -> String {
        "INSERT INTO \(system.schemas.qualifiedName) (ordinal, hash, tables) VALUES (\(entry.version.ordinal), "
            + "\(SQLText.literal(entry.version.hash)), \(SQLText.bytea(entry.schema.encode())))"
    }

    private func grants(_ tables: [Table], _ check: TableCheck, areTablesNew: Bool) throws -> [String] {
        guard let reader = settings.readersRole, !settings.isReadOnly else { return [] }
        try check.rejectMissingRole(reader)
        let role = SQLText.name(reader)
        let schema = SQLText.name(settings.schema)
        let names = system.all.map(\.name) + tables.map(\.name)
        let missing = areTablesNew ? names : try names.filter { try !check.canRead($0, reader) }
        guard !missing.isEmpty else { return [] }
        return ["GRANT USAGE ON SCHEMA \(schema) TO \(role)"]
            + missing.map { "GRANT SELECT ON \(schema).\(SQLText.name($0)) TO \(role)" }
    }

    // MARK: Checks of the database

    private func checkDatabase() throws {
        let rows = try connection.query("SELECT current_setting('server_encoding')")
        let encoding = try rows.text(0, 0)
        guard encoding == "UTF8" else {
            throw refusal(
                "the database has the encoding \(encoding), which cannot store every text; create it with ENCODING 'UTF8'"
            )
        }
        guard connection.serverVersion >= 140_000 else {
            throw refusal("the server is older than Postgres 14; upgrade it")
        }
    }

    private func checkFormat() throws {
        let rows = try connection.query("SELECT max(format) FROM \(system.migrations.qualifiedName)")
        let format = rows.isNull(0, 0) ? 0 : Int(try rows.integer(0, 0))
        guard format <= SystemTables.format else {
            throw refusal(
                "the tables have format \(format) of a newer Weir, this one knows format \(SystemTables.format); run the "
                    + "newer version")
        }
        guard format == SystemTables.format else {
            throw refusal(
                "the tables have format \(format) of an earlier Weir, which did not count what owners have; set another database "
                    + "or schema, where weir replay rebuilds the tables from the log")
        }
    }

    private func checkShard() throws {
        let rows = try connection.query("SELECT shard, shards, epoch FROM \(system.shard.qualifiedName)")
        guard rows.count == 1 else {
            throw refusal("weir_shard has \(rows.count) rows instead of one; restore the database from a backup")
        }
        let number = Int(try rows.integer(0, 0))
        let count = Int(try rows.integer(0, 1))
        guard number == settings.number, count == settings.count else {
            throw refusal(
                "this database is number \(number + 1) of \(count), but number \(settings.number + 1) of \(settings.count) in "
                    + "postgres.shards; restore that list, since each database holds certain partitions")
        }
        try recordedSchemas([]).checkEpoch(try rows.text(0, 2), is: epoch)
    }

    private func readSchemas() throws -> RecordedSchemas {
        let rows = try connection.query(
            "SELECT ordinal, hash, tables FROM \(system.schemas.qualifiedName) ORDER BY ordinal")
        var entries: [SchemaHistory.Entry] = []
        for row in 0..<rows.count {
            let version = SchemaVersion(ordinal: Int(try rows.integer(row, 0)), hash: try rows.text(row, 1))
            let schema = try Schema(decoding: rows.bytes(row, 2))
            entries.append(SchemaHistory.Entry(version: version, schema: schema))
        }
        return try recordedSchemas(entries)
    }

    private func recordedSchemas(_ entries: [SchemaHistory.Entry]) throws(RecordStoreError) -> RecordedSchemas {
        try RecordedSchemas(
            entries, database: connection.database,
            remedy: "set another database or schema, or restore the log they belong to")
    }

    private func refusal(_ message: String) -> RecordStoreError {
        .incompatible(message, database: connection.database)
    }
}
