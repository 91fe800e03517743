import CanonicalValues
import RecordStore
import RelationalTables
import SQLite
import SyncModel
import SyncWire

/// Creates and extends the tables for schema versions, and rejects a file that does not fit; inside one transaction.
struct Migration {
    private let connection: Connection
    private let schemas: SchemaHistory
    private let epoch: String
    /// The versions that the file is prepared for.
    private let recorded: RecordedSchemas

    init(_ connection: Connection, _ schemas: SchemaHistory, epoch: String) throws {
        self.connection = connection
        self.schemas = schemas
        self.epoch = epoch
        recorded = try Self.recorded(connection)
    }

    func run() throws {
        for (name, sql) in SystemTables.all { try TableCheck(connection: connection, table: name).run(creation: sql) }
        let recordedEpoch = try recordedEpoch()
        if let recordedEpoch { try recorded.checkEpoch(recordedEpoch, is: epoch) }
        try recorded.check(schemas)
        for (index, table) in recorded.wanted(schemas).enumerated() {
            try prepare(table, before: index < recorded.tables.count ? recorded.tables[index] : nil)
        }
        for entry in recorded.missing(schemas) { try record(entry) }
        if recordedEpoch == nil { try recordEpoch() }
    }

    /// `nil` in new tables and in those of format 1.
    private func recordedEpoch() throws -> String? {
        var statement = try connection.statement("SELECT epoch FROM weir_history")
        return try statement.step() ? try statement.text(at: 0) : nil
    }

    private func recordEpoch() throws {
        var statement = try connection.statement("INSERT INTO weir_history (epoch) VALUES (?1)")
        try statement.bind(text: epoch, at: 1)
        try statement.run()
    }

    private static func recorded(_ connection: Connection) throws -> RecordedSchemas {
        var statement = try connection.statement("SELECT ordinal, hash, tables FROM weir_schemas ORDER BY ordinal")
        var entries: [SchemaHistory.Entry] = []
        while try statement.step() {
            let version = SchemaVersion(ordinal: Int(try statement.integer(at: 0)), hash: try statement.text(at: 1))
            let schema = try Schema(decoding: try statement.bytes(at: 2))
            entries.append(SchemaHistory.Entry(version: version, schema: schema))
        }
        return try RecordedSchemas(
            entries, database: connection.path,
            remedy: "restore the log they belong to, or move the tables away, which are then rebuilt from this log")
    }

    private func record(_ entry: SchemaHistory.Entry) throws {
        var statement = try connection.statement("INSERT INTO weir_schemas (ordinal, hash, tables) VALUES (?1, ?2, ?3)")
        try statement.bind(integer: Int64(entry.version.ordinal), at: 1)
        try statement.bind(text: entry.version.hash, at: 2)
        try statement.bind(blob: entry.schema.encode(), at: 3)
        try statement.run()
    }

    // MARK: Tables

    private func prepare(_ table: Table, before: Table?) throws {
        let layout = TableLayout(table)
        for column in table.columns { try checkDefault(of: column, table) }
        let check = TableCheck(connection: connection, table: table.name)
        if let before {
            try check.run(creation: try layout.creation(columns: before.columns.count))
            for column in table.columns.dropFirst(before.columns.count) {
                try connection.execute(try layout.addition(of: column))
            }
            return
        }
        if try check.exists() {
            throw refusal(
                "the file has a table \(table.name) that Weir did not create; drop or rename it, or set another path")
        }
        try connection.execute(try layout.creation(columns: table.columns.count))
    }

    /// SQLite must parse a default to exactly the declared value; it does not parse all decimal fractions exactly.
    private func checkDefault(of column: Column, _ table: Table) throws {
        let literal: String?
        do throws(CanonicalValueError) {
            literal = try TableLayout.defaultLiteral(of: column)
        } catch {
            throw refusal("the default of \(table.name).\(column.name) is no canonical \(error.type)")
        }
        guard column.type == .real, let literal else { return }
        var statement = try connection.prepare("SELECT \(literal)")
        guard try statement.step(), try statement.double(at: 0) == Double(literal) else {
            throw refusal(
                "SQLite does not parse \(literal), the default of \(table.name).\(column.name), exactly; declare fewer digits"
            )
        }
    }

    private func refusal(_ message: String) -> RecordStoreError {
        .incompatible(message, database: connection.path)
    }
}
