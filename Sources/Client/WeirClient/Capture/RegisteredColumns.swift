/// The names and columns that the tables of a file had when it was opened.
///
/// Another process may open the file after a migration, while this one has it open. What this one knows would lose the columns that are new:
/// a batch would end an edit without its value of one, and rows would count as received without theirs. A table that was renamed is not found
/// any more, and one that the other process does not name is not captured any more.
final class RegisteredColumns {
    private let tables: String
    /// By the triggers that record insertions, which a table keeps when it is renamed.
    private let names: [(trigger: String, table: String)]
    /// One text for each column.
    private let known: [String]
    /// SQLite's count of changes of the schema when the columns were last compared.
    private var version: Int64?

    /// Reads them in the transaction that registers the tables.
    init(of tables: [CapturedTable], in database: Database) throws {
        self.tables = tables.map { "\($0.number)" }.joined(separator: ", ")
        names = tables.map { ("\(CaptureTriggers.prefix(ofTable: $0.number))insert", $0.name) }
        known = try Self.columns(of: self.tables, in: database)
        version = try Self.version(of: database)
    }

    /// Whether they are the same in the file.
    func areCurrent(in database: Database) throws -> Bool {
        let version = try Self.version(of: database)
        if version == self.version { return true }
        guard try Self.columns(of: tables, in: database) == known, try areListed(in: database),
            try !areRenamed(in: database)
        else { return false }
        self.version = version
        return true
    }

    /// Whether all are captured: another process that opens the file for fewer tables ends the capture of the others.
    private func areListed(in database: Database) throws -> Bool {
        try database.integer("SELECT count(*) FROM weir_table WHERE listed AND number IN (\(tables))")
            == Int64(names.count)
    }

    private func areRenamed(in database: Database) throws -> Bool {
        try names.contains { trigger, table in
            let name = try database.value(
                "SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name = ?1", [.text(trigger)])
            return name?.string.map { foldedName($0) != foldedName(table) } ?? false
        }
    }

    private static func version(of database: Database) throws -> Int64? {
        try database.integer("PRAGMA schema_version")
    }

    private static func columns(of tables: String, in database: Database) throws -> [String] {
        try database.map(
            "SELECT tbl || ' ' || number || ' ' || name FROM weir_column WHERE tbl IN (\(tables)) AND NOT dropped ORDER BY tbl, number"
        ) { $0.string(at: 0) }
    }
}
