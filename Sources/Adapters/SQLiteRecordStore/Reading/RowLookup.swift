import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// Looks up many rows by their keys, inside one read transaction.
struct RowLookup {
    private let connection: Connection
    private let tables: PreparedTables<TableLayout>
    /// How many columns of each table are read.
    private let columnCounts: [Int]
    private var reader = RowReader()
    /// The statement of each table, taken at its first key.
    private var lookups: [Int: TableLookup] = [:]

    init(_ connection: Connection, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int) throws(RecordStoreError) {
        self.connection = connection
        self.tables = tables
        columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
    }

    /// The existing rows, in the order of their keys, up to the one that brings them to the size.
    mutating func rows(_ keys: [RowKey], maximumBytes: Int) throws -> RowsRead {
        try RowsRead(keys, maximumBytes: maximumBytes) { key in
            // A table of a later version has no rows in this version.
            guard columnCounts.indices.contains(key.table) else { return nil }
            return try lookup(in: key.table).row(key, &reader)
        }
    }

    private mutating func lookup(in table: Int) throws -> TableLookup {
        if let known = lookups[table] { return known }
        let layout = tables.layouts[table]
        let count = columnCounts[table]
        let lookup = TableLookup(
            try connection.statement(caching: layout.lookup(columns: count)),
            columns: layout.table.columns.prefix(count))
        lookups[table] = lookup
        return lookup
    }
}

/// The statement that looks up rows of one table; a class, since a dictionary cannot hold a noncopyable value.
private final class TableLookup {
    private var statement: Statement
    private let columns: ArraySlice<Column>
    /// The bound owner.
    private var owner: SyncID?

    init(_ statement: consuming Statement, columns: ArraySlice<Column>) {
        self.statement = statement
        self.columns = columns
    }

    func row(_ key: RowKey, _ reader: inout RowReader) throws -> OrderedRow? {
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
