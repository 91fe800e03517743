import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Looks up many rows by their keys, with one statement for each table.
struct RowLookup {
    private struct Keys {
        var keys: [RowKey] = []
        var owners = BinaryArray(.text)
        var ids = BinaryArray(.text)

        mutating func append(_ key: RowKey) {
            keys.append(key)
            owners.append(key.owner.text)
            ids.append(key.id.text)
        }
    }

    private let connection: PostgresConnection
    private let tables: PreparedTables<TableLayout>
    /// How many columns of each table are read.
    private let columnCounts: [Int]
    private let isInTransaction: Bool

    /// - Parameter isInTransaction: whether the caller has begun a transaction, which stays open.
    init(
        _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int,
        isInTransaction: Bool = false
    ) throws(RecordStoreError) {
        self.connection = connection
        self.tables = tables
        self.isInTransaction = isInTransaction
        columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
    }

    /// The existing rows, table by table.
    func rows(_ keys: [RowKey]) throws -> [OrderedRow] {
        let requested = grouped(keys).sorted { $0.key < $1.key }
        guard !requested.isEmpty else { return [] }
        var statements: [String] = []
        for (table, _) in requested {
            let sql = tables.layouts[table].lookup(columns: columnCounts[table])
            statements.append(try connection.prepare(sql))
        }
        // Several statements see one snapshot only inside a transaction.
        let isTransaction = requested.count > 1 && !isInTransaction
        let begin = try connection.prepare("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let commit = try connection.prepare("COMMIT")
        var found: [OrderedRow] = []
        try connection.pipeline { pipeline in
            if isTransaction { try pipeline.send(begin) }
            for (statement, entry) in zip(statements, requested) {
                try pipeline.send(statement, PostgresParameters([entry.value.owners, entry.value.ids]))
            }
            if isTransaction { try pipeline.send(commit) }
        } receive: { statement, rows in
            let index = isTransaction ? statement - 1 : statement
            guard requested.indices.contains(index) else { return }
            let (table, entry) = requested[index]
            let columns = tables.layouts[table].table.columns.prefix(columnCounts[table])
            var reader = RowReader()
            for row in 0..<rows.count {
                let key = entry.keys[Int(try rows.bigint(row, 0)) - 1]
                found.append(try reader.row(rows, row, key: key, columns: columns, from: 1))
            }
        }
        return found
    }

    private func grouped(_ keys: [RowKey]) -> [Int: Keys] {
        var groups: [Int: Keys] = [:]
        // A table of a later version has no rows in this version.
        for key in keys where columnCounts.indices.contains(key.table) {
            groups[key.table, default: Keys()].append(key)
        }
        return groups
    }
}
