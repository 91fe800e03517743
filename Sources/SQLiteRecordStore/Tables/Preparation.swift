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
    private let recorded: [SchemaHistory.Entry]

    init(_ connection: Connection, _ schemas: SchemaHistory, epoch: String) throws {
        self.connection = connection
        self.schemas = schemas
        self.epoch = epoch
        recorded = try Self.recorded(connection)
    }

    func run() throws {
        for (name, sql) in OwnTables.all { try TableCheck(connection, table: name).run(creation: sql) }
        let isRecorded = try checkEpoch()
        try checkHistory()
        try checkThatVersionsOnlyAdd()
        // Another process may have prepared the tables for versions that this one has not read yet.
        let newest = recorded.count > schemas.entries.count ? recorded.last : schemas.newest
        let before = recorded.last?.schema.tables ?? []
        for (index, table) in (newest?.schema.tables ?? []).enumerated() {
            try prepare(table, before: index < before.count ? before[index] : nil)
        }
        for entry in schemas.entries.dropFirst(recorded.count) { try record(entry) }
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

    private static func recorded(_ connection: Connection) throws -> [SchemaHistory.Entry] {
        var statement = try connection.statement("SELECT ordinal, hash, tables FROM weir_schemas ORDER BY ordinal")
        var entries: [SchemaHistory.Entry] = []
        while try statement.step() {
            let version = SchemaVersion(ordinal: Int(try statement.integer(at: 0)), hash: try statement.text(at: 1))
            let schema = try Schema(decoding: try statement.bytes(at: 2))
            guard version.ordinal == entries.count + 1 else {
                throw RecordStoreError(.corrupt, message: "\(connection.path): weir_schemas has a gap")
            }
            entries.append(SchemaHistory.Entry(version: version, schema: schema))
        }
        return entries
    }

    private func record(_ entry: SchemaHistory.Entry) throws {
        var statement = try connection.statement("INSERT INTO weir_schemas (ordinal, hash, tables) VALUES (?1, ?2, ?3)")
        try statement.bind(integer: Int64(entry.version.ordinal), at: 1)
        try statement.bind(text: entry.version.hash, at: 2)
        try statement.bind(blob: entry.schema.encode(), at: 3)
        try statement.run()
    }

    private func checkHistory() throws {
        for (old, new) in zip(recorded, schemas.entries)
        where !old.version.hash.utf8.elementsEqual(new.version.hash.utf8) || old.schema != new.schema {
            throw refusal(
                "the tables were prepared for another history, whose schema version \(old.version.ordinal) is "
                    + "\(old.version.hash), not \(new.version.hash); name another path, or restore the log they belong "
                    + "to")
        }
    }

    private func checkThatVersionsOnlyAdd() throws {
        for (old, new) in zip(schemas.entries, schemas.entries.dropFirst()) {
            if let problem = Self.problem(from: old.schema, to: new.schema) {
                throw refusal(
                    "schema version \(new.version.ordinal) does more than add to version \(old.version.ordinal): "
                        + "\(problem); rows of older versions must stay readable, so declare what was there before")
            }
        }
    }

    /// What a version changes of an older one besides adding to it; policies, lengths and references are no matter of
    /// the tables.
    private static func problem(from old: Schema, to new: Schema) -> String? {
        for (index, table) in old.tables.enumerated() {
            guard index < new.tables.count, new.tables[index].name.utf8.elementsEqual(table.name.utf8) else {
                return "table \(table.name) is missing or moved"
            }
            let columns = new.tables[index].columns
            for (place, column) in table.columns.enumerated() {
                guard place < columns.count, columns[place].name.utf8.elementsEqual(column.name.utf8) else {
                    return "column \(table.name).\(column.name) is missing or moved"
                }
                if columns[place].type != column.type {
                    return "column \(table.name).\(column.name) was \(column.type.name) and is "
                        + columns[place].type.name
                }
                if columns[place].isNullable != column.isNullable || columns[place].defaultValue != column.defaultValue
                {
                    return "column \(table.name).\(column.name) has another default, or takes NULL where it did not"
                }
            }
            if let column = columns.dropFirst(table.columns.count).first(where: \.isRequired) {
                return "column \(table.name).\(column.name) is new and required, and older rows have no value of it"
            }
        }
        return nil
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
