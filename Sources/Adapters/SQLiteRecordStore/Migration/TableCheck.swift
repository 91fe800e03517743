import RecordStore
import RelationalTables
import SQLite

/// Compares a table of the file with the statement that creates it, and rejects triggers and indexes that could reject a row
/// (I4).
struct TableCheck {
    let connection: Connection
    let table: String

    /// Whether the file has a table or view of this name, ignoring case.
    func exists() throws -> Bool {
        var statement = try connection.statement(
            "SELECT 1 FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE")
        try statement.bind(text: table, at: 1)
        return try statement.step()
    }

    /// - Throws: `RecordStoreError` that says what is wrong and what to do.
    func run(creation: String) throws {
        var statement = try connection.statement("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1")
        try statement.bind(text: table, at: 1)
        guard try statement.step() else {
            throw refusal(
                "is missing; restore the file from a backup, or set another path, where the tables are rebuilt")
        }
        let found = try statement.text(at: 0)
        guard Self.significant(found).elementsEqual(Self.significant(creation)) else {
            throw refusal(
                "is not as Weir created it: columns, types, defaults, checks, collations and foreign keys must not be "
                    + "changed. It was created by\n\(creation)\nand is now\n\(found)")
        }
        try checkTriggers()
        try checkIndexes()
    }

    private func checkTriggers() throws {
        var statement = try connection.statement(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE")
        try statement.bind(text: table, at: 1)
        guard try statement.step() else { return }
        throw refusal("has the trigger \(try statement.text(at: 0)), which could reject or change a row; drop it")
    }

    /// Plain indexes are allowed; unique ones reject rows, and an expression may fail on one.
    private func checkIndexes() throws {
        var statement = try connection.statement(
            """
            SELECT list.name, list."unique", list.partial
                OR EXISTS (SELECT 1 FROM pragma_index_info(list.name) AS part WHERE part.cid = -2)
            FROM pragma_index_list(?1) AS list WHERE list.origin = 'c'
            """)
        try statement.bind(text: table, at: 1)
        while try statement.step() {
            let name = try statement.text(at: 0)
            if try statement.integer(at: 1) != 0 {
                throw refusal("has the unique index \(name), which could reject a row; drop it, or make it non-unique")
            }
            if try statement.integer(at: 2) != 0 {
                throw refusal(
                    "has the index \(name) with an expression or condition, which could reject a row; drop it")
            }
        }
    }

    /// Removes white space outside of quotes: SQLite keeps the text of a statement, and formats added columns itself.
    private static func significant(_ sql: String) -> [UInt8] {
        var quote: UInt8?
        return sql.utf8.filter { byte in
            if let open = quote {
                if byte == open { quote = nil }
                return true
            }
            if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") { quote = byte }
            return byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\n")
        }
    }

    private func refusal(_ message: String) -> RecordStoreError {
        .incompatible("table \(table) \(message)", database: connection.path)
    }
}
