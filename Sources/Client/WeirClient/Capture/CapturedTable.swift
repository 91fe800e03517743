/// A synced table: its definition, and the numbers under which the side tables know it and its columns.
///
/// Numbers are never reused, so that what was captured of a column means that column permanently.
package struct CapturedTable {
    package struct Column {
        package let number: Int
        package let definition: TableDefinition.Column

        package var name: String { definition.name }
        /// The word of the mask that has this column's bit.
        var word: Int { CapturedTable.word(ofColumn: number) }
        var bit: Int64 { CapturedTable.bit(ofColumn: number) }
        /// The column of the side tables that holds this column's values.
        var side: String { "c\(number)" }
    }

    /// SQLite's integers without the sign, so that -1 can mean every column.
    static let bitsOfWord = 63

    package let number: Int
    package let definition: TableDefinition
    package let columns: [Column]
    /// The greatest number that a column of this table has had.
    let columnNumbers: Int

    init(number: Int, definition: TableDefinition, columns: [Column], columnNumbers: Int) {
        self.number = number
        self.definition = definition
        self.columns = columns
        self.columnNumbers = columnNumbers
    }

    static func word(ofColumn number: Int) -> Int { (number - 1) / bitsOfWord }
    static func bit(ofColumn number: Int) -> Int64 { 1 << Int64((number - 1) % bitsOfWord) }

    /// The words of the masks.
    var words: Int { Self.words(forColumns: columnNumbers) }

    /// The words of a mask with so many bits; a table without columns has one, too.
    static func words(forColumns count: Int) -> Int { max(1, (count + bitsOfWord - 1) / bitsOfWord) }

    package var name: String { definition.name }
    /// The table and its key in SQL.
    var quotedName: String { quoted(name) }
    var quotedKey: String { quoted(definition.key.name) }

    /// What triggers write: one row for each statement and row, in order.
    package var log: String { Self.log(number) }
    /// The log folded: one row for each row of the table that has changed.
    package var edit: String { Self.edit(number) }
    /// The edits in the batch that is being sent.
    package var sent: String { Self.sent(number) }
    /// The columns of edits besides the key: time, base, whether it was in a batch whose outcome is not known,
    /// the values that the app has seen where others were pulled since (JSON), whether the row was there before it,
    /// masks and values before, also of columns that are gone.
    var folded: String { Self.folded(columns: columnNumbers) }

    static func folded(columns count: Int) -> String {
        let words = 0..<words(forColumns: count)
        let masks = words.map { "m\($0)" } + words.map { "v\($0)" }
        let values = count == 0 ? [] : (1...count).map { "c\($0)" }
        return (["at", "base", "was_sent", "seen", "was_there"] + masks + values).joined(separator: ", ")
    }

    /// Whether the app's table has a row.
    func has(_ key: SQLValue, in database: Database) throws -> Bool {
        try database.value("SELECT 1 FROM \(quotedName) WHERE \(RowWriter.isKey(self))", [key]) != nil
    }

    /// Whether a row has an edit that is pending or being sent.
    func hasEdit(_ key: SQLValue, in database: Database) throws -> Bool {
        try database.value(
            "SELECT 1 FROM \(edit) WHERE id = ?1 UNION ALL SELECT 1 FROM \(sent) WHERE id = ?1", [key]) != nil
    }

    /// The rows that the server has, and their newest timeStamps.
    package var state: String { Self.state(number) }

    /// Those of a table that may not be listed any more.
    static func log(_ number: Int) -> String { "weir_log_\(number)" }
    static func edit(_ number: Int) -> String { "weir_edit_\(number)" }
    static func sent(_ number: Int) -> String { "weir_sent_\(number)" }
    static func state(_ number: Int) -> String { "weir_row_\(number)" }
}

/// What a row of the log records.
enum LogKind: Int {
    /// The row was inserted. No values.
    case insert = 0
    /// Columns of the row were changed: their mask, and their values before.
    case update = 1
    /// The row is about to be deleted: its values.
    case delete = 2
    /// The row may be replaced by another one: its values.
    case replace = 3
}
