import CanonicalValues
import RecordStore
import SQLite
import SyncModel
import SyncWire

/// Makes and extends the tables for the versions of a history, and refuses what does not fit; inside one transaction.
struct Preparation {
    private let connection: Connection
    private let schemas: SchemaHistory
    private let epoch: String
    /// The versions that the file was prepared for, by rising ordinal.
    private let recorded: RecordedSchemas

    init(_ connection: Connection, _ schemas: SchemaHistory, epoch: String) throws {
        self.connection = connection
        self.schemas = schemas
        self.epoch = epoch
        recorded = try Self.recorded(connection)
    }

    func run() throws {
        for (name, sql) in SystemTables.all { try TableCheck(connection, table: name).run(creation: sql) }
        let isRecorded = try checkEpoch()
        try recorded.check(schemas)
        for (index, table) in recorded.wanted(schemas).enumerated() {
            try prepare(table, before: index < recorded.tables.count ? recorded.tables[index] : nil)
        }
        for entry in recorded.missing(schemas) { try record(entry) }
        if !isRecorded { try recordEpoch() }
    }

    // MARK: History

    /// Refuses tables of another history; `false` where none is recorded, as in new tables and those of format 1.
    private func checkEpoch() throws -> Bool {
        var statement = try connection.statement("SELECT epoch FROM weir_history")
        guard try statement.step() else { return false }
        let recorded = try statement.text(at: 0)
        guard recorded.utf8.elementsEqual(epoch.utf8) else {
            throw refusal(
                "the tables are of history \(recorded), the log is of history \(epoch): restore the log they belong to, or "
                    + "move the tables away and let them be made again from this one")
        }
        return true
    }

    private func recordEpoch() throws {
        var statement = try connection.statement("INSERT INTO weir_history (epoch) VALUES (?1)")
        try statement.bind(text: epoch, at: 1)
        try statement.run()
    }

    // MARK: Versions

    private static func recorded(_ connection: Connection) throws -> RecordedSchemas {
        var statement = try connection.statement("SELECT ordinal, hash, tables FROM weir_schemas ORDER BY ordinal")
        var entries: [SchemaHistory.Entry] = []
        while try statement.step() {
            let version = SchemaVersion(ordinal: Int(try statement.integer(at: 0)), hash: try statement.text(at: 1))
            let schema = try Schema(decoding: try statement.bytes(at: 2))
            entries.append(SchemaHistory.Entry(version: version, schema: schema))
        }
        return try RecordedSchemas(
            entries, location: connection.path, remedy: "name another path, or restore the log they belong to")
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
        let check = TableCheck(connection, table: table.name)
        if let before {
            try check.run(creation: try layout.creation(columns: before.columns.count))
            for column in table.columns.dropFirst(before.columns.count) {
                try connection.execute(try layout.addition(of: column))
            }
            return
        }
        if try check.exists() {
            throw refusal(
                "the file has a table \(table.name) that Weir did not make; drop or rename it, or name another path")
        }
        try connection.execute(try layout.creation(columns: table.columns.count))
    }

    /// A default that SQLite reads must be the declared one to the last bit; its reading of decimal fractions is not
    /// always exact.
    private func checkDefault(of column: Column, _ table: Table) throws {
        let literal: String?
        do throws(CanonicalValueError) {
            literal = try DefaultLiteral.sql(of: column)
        } catch {
            throw refusal("the default of \(table.name).\(column.name) is no \(error.type) in canonical form")
        }
        guard column.type == .real, let literal else { return }
        var statement = try connection.prepare("SELECT \(literal)")
        guard try statement.step(), try statement.double(at: 0) == Double(literal) else {
            throw refusal(
                "SQLite does not read \(literal), the default of \(table.name).\(column.name), exactly; declare one with "
                    + "fewer digits")
        }
    }

    private func refusal(_ message: String) -> RecordStoreError {
        RecordStoreError(.incompatibleTables, message: "\(connection.path): \(message)")
    }
}
