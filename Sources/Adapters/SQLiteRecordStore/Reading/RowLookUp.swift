import RecordStore
import SQLite
import SyncModel

/// Looks many rows up by their keys, inside one read transaction.
struct RowLookUp {
    private let connection: Connection
    private let tables: PreparedTables
    /// How many columns of each table are asked for.
    private let columnCounts: [Int]
    private var reader = RowReader()
    private var statements: [Int: Box] = [:]

    /// Holds a statement in a dictionary, which takes no values that cannot be copied.
    private final class Box {
        var table: TableLookUp

        init(_ table: consuming TableLookUp) {
            self.table = table
        }
    }

    init(_ connection: Connection, _ tables: PreparedTables, schemaOrdinal: Int) throws(RecordStoreError) {
        self.connection = connection
        self.tables = tables
        columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
    }

    /// The rows that exist, in the order of their keys.
    mutating func rows(_ keys: [RowKey]) throws -> [OrderedRow] {
        var rows: [OrderedRow] = []
        for key in keys {
            if let row = try row(key) { rows.append(row) }
        }
        return rows
    }

    private mutating func row(_ key: RowKey) throws -> OrderedRow? {
        // A table of a later version has no rows in the version asked for.
        guard columnCounts.indices.contains(key.table) else { return nil }
        return try box(for: key.table).table.row(key, &reader)
    }

    private mutating func box(for table: Int) throws -> Box {
        if let known = statements[table] { return known }
        let layout = tables.layouts[table]
        let count = columnCounts[table]
        let statement = try connection.prepare(layout.lookUp(columns: count))
        let made = Box(TableLookUp(statement, columns: layout.table.columns.prefix(count)))
        statements[table] = made
        return made
    }
}

/// The statement that looks rows of one table up.
private struct TableLookUp: ~Copyable {
    private var statement: Statement
    private let columns: ArraySlice<Column>
    /// The owner that is bound already.
    private var owner: SyncID?

    init(_ statement: consuming Statement, columns: ArraySlice<Column>) {
        self.statement = statement
        self.columns = columns
    }

    mutating func row(_ key: RowKey, _ reader: inout RowReader) throws -> OrderedRow? {
        if owner != key.owner {
            owner = nil
            try statement.bind(text: key.owner.text, at: 1)
            owner = key.owner
        }
        try statement.bind(text: key.id.text, at: 2)
        guard try statement.step() else { return nil }
        defer { statement.reset() }
        return try reader.row(statement, key: key, columns: columns)
    }
}
