import CanonicalValues
import Postgres
import RecordStore
import SyncModel
import SyncWire

/// Finds what a database lacks for the versions of a history, refuses what does not fit, and adds it; inside one
/// transaction, under a lock that other migrations wait for.
struct Migration {
    private let connection: PostgresConnection
    private let schemas: SchemaHistory
    private let epoch: String
    private let settings: ShardSettings
    private let own: SystemTables

    init(_ connection: PostgresConnection, _ schemas: SchemaHistory, epoch: String, _ settings: ShardSettings) {
        self.connection = connection
        self.schemas = schemas
        self.epoch = epoch
        self.settings = settings
        own = SystemTables(schema: settings.schema)
    }

    /// What is to be done; nothing is changed.
    func plan() throws -> MigrationPlan {
        try inTransaction { MigrationPlan(database: connection.place, statements: try statements()) }
    }

    /// Does it, all or nothing.
    func run() throws -> MigrationPlan {
        let plan = try inTransaction {
            let statements = try statements()
            if !statements.isEmpty { try connection.execute((statements + ["COMMIT"]).joined(separator: ";\n")) }
            return MigrationPlan(database: connection.place, statements: statements)
        }
        return plan
    }

    private func inTransaction<Value>(_ body: () throws -> Value) throws -> Value {
        try connection.execute("BEGIN")
        // Tables are worth waiting for the disk.
        try connection.execute("SET LOCAL synchronous_commit = on")
        let outcome = Result {
            if !settings.isReadOnly { try waitForOthers() }
            return try body()
        }
        try connection.rollBack()
        return try outcome.get()
    }

    /// Takes the lock of migrations, for which others may need a while.
    ///
    /// Locks on tables are waited for no longer than ever: whoever waits for one of these holds up all others.
    private func waitForOthers() throws {
        let timeout = try connection.query("SELECT current_setting('lock_timeout')").text(0, 0)
        try connection.execute("SET LOCAL lock_timeout = '\(Self.patience)'")
        var key = PostgresParameters()
        key.append(settings.lockSpace)
        _ = try connection.query("SELECT pg_advisory_xact_lock($1::integer, -1)", key)
        try connection.execute("SET LOCAL lock_timeout = \(SQLText.literal(timeout))")
    }

    /// How long a migration waits for another one: beyond it somebody should look.
    private static let patience = "120s"

    // MARK: The statements

    private func statements() throws -> [String] {
        try checkDatabase()
        let check = TableCheck(
            connection, schema: settings.schema, place: connection.place, isForReading: settings.isReadOnly)
        var statements: [String] = []
        let recorded: RecordedSchemas
        if try check.exists(own.migrations.name) {
            try checkFormat()
            for table in own.all { try check.run(table) }
            try checkShard()
            recorded = try readSchemas()
        } else {
            statements += try ownTables(check)
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

    private func ownTables(_ check: TableCheck) throws -> [String] {
        var statements: [String] = []
        if try !check.schemaExists() { statements.append("CREATE SCHEMA \(SQLText.name(settings.schema))") }
        for table in own.all {
            try check.refuseForeign(table.name)
            statements += table.creation
        }
        statements += own.indexes
        statements.append("INSERT INTO \(own.migrations.qualifiedName) (format) VALUES (\(SystemTables.format))")
        statements.append(
            "INSERT INTO \(own.shard.qualifiedName) (shard, shards, epoch) VALUES (\(settings.number), \(settings.count), "
                + "\(SQLText.literal(epoch)))")
        return statements
    }

    private func statements(for table: Table, before: Table?, _ check: TableCheck) throws -> [String] {
        let layout = try settings.layout(table)
        guard let before else {
            try check.refuseForeign(table.name)
            let references = settings.indexesReferences ? referenceIndexes(table.columns[...], table) : []
            return layout.shape(columns: table.columns.count).creation + references
        }
        let shape = layout.shape(columns: before.columns.count)
        let added = table.columns.indices.dropFirst(before.columns.count)
        try check.run(shape, adding: added.map { table.columns[$0].name })
        let references = settings.indexesReferences ? referenceIndexes(table.columns[added], table) : []
        return added.flatMap { shape.addition(of: layout.shape(ofColumn: $0)) } + references
    }

    /// Indexes by hash, whose entries are small whatever the value: no row is too large for them.
    private func referenceIndexes(_ columns: ArraySlice<Column>, _ table: Table) -> [String] {
        columns.filter { $0.references != nil }.map { column in
            "CREATE INDEX ON \(SQLText.name(settings.schema)).\(SQLText.name(table.name)) USING hash "
                + "(\(SQLText.name(column.name)))"
        }
    }

    private func record(_ entry: SchemaHistory.Entry) -> String {
        "INSERT INTO \(own.schemas.qualifiedName) (ordinal, hash, tables) VALUES (\(entry.version.ordinal), "
            + "\(SQLText.literal(entry.version.hash)), \(SQLText.literal(entry.schema.encode())))"
    }

    private func grants(_ tables: [Table], _ check: TableCheck, areTablesNew: Bool) throws -> [String] {
        guard let reader = settings.readersRole, !settings.isReadOnly else { return [] }
        try check.refuseMissingRole(reader)
        let role = SQLText.name(reader)
        let schema = SQLText.name(settings.schema)
        let names = own.all.map(\.name) + tables.map(\.name)
        let missing = areTablesNew ? names : try names.filter { try !check.canRead($0, reader) }
        guard !missing.isEmpty else { return [] }
        return ["GRANT USAGE ON SCHEMA \(schema) TO \(role)"]
            + missing.map { "GRANT SELECT ON \(schema).\(SQLText.name($0)) TO \(role)" }
    }

    // MARK: What is there

    /// Texts are UTF-8, and every one must find room.
    private func checkDatabase() throws {
        let rows = try connection.query("SELECT current_setting('server_encoding')")
        let encoding = try rows.text(0, 0)
        guard encoding == "UTF8" else {
            throw refusal(
                "the database is encoded in \(encoding), which does not hold every text; make it with ENCODING 'UTF8'")
        }
        guard connection.serverVersion >= 140_000 else {
            throw refusal("the server is older than Postgres 14")
        }
    }

    private func checkFormat() throws {
        let rows = try connection.query("SELECT max(format) FROM \(own.migrations.qualifiedName)")
        let format = rows.isNull(0, 0) ? 0 : Int(try rows.integer(0, 0))
        guard format <= SystemTables.format else {
            throw refusal(
                "the tables are in format \(format) of a newer Weir, this one knows format \(SystemTables.format); run the "
                    + "newer version")
        }
        guard format == SystemTables.format else {
            throw refusal("weir_migrations says format \(format), which never was; restore the database from a copy")
        }
    }

    private func checkShard() throws {
        let rows = try connection.query("SELECT shard, shards, epoch FROM \(own.shard.qualifiedName)")
        guard rows.count == 1 else {
            throw refusal("weir_shard has \(rows.count) rows instead of one; restore the database from a copy")
        }
        let number = Int(try rows.integer(0, 0))
        let count = Int(try rows.integer(0, 1))
        guard number == settings.number, count == settings.count else {
            throw refusal(
                "this database is number \(number + 1) of \(count) and is listed as number \(settings.number + 1) of "
                    + "\(settings.count); list the databases as they were, since each holds certain partitions")
        }
        let recorded = try rows.text(0, 2)
        guard recorded.utf8.elementsEqual(epoch.utf8) else {
            throw refusal(
                "the tables are of history \(recorded), the log is of history \(epoch); name another database or schema, or "
                    + "restore the log they belong to")
        }
    }

    private func readSchemas() throws -> RecordedSchemas {
        let rows = try connection.query(
            "SELECT ordinal, hash, tables FROM \(own.schemas.qualifiedName) ORDER BY ordinal")
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
            entries, location: connection.place,
            remedy: "name another database or schema, or restore the log they belong to")
    }

    private func refusal(_ message: String) -> RecordStoreError {
        RecordStoreError(.incompatibleTables, message: "\(connection.place): \(message)")
    }
}
