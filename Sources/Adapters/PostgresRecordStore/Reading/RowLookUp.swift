import Postgres
import RecordStore
import SyncModel

/// Looks many rows up by their keys: one statement a table.
struct RowLookUp {
    private struct Asked {
        var keys: [RowKey] = []
        var owners = BinaryArray(.text)
        var ids = BinaryArray(.text)
    }

    private let connection: PostgresConnection
    private let tables: PreparedTables
    /// How many columns of each table are asked for.
    private let columnCounts: [Int]
    private let isInTransaction: Bool

    /// - Parameter isInTransaction: whether the caller has begun one, which stays open.
    init(
        _ connection: PostgresConnection, _ tables: PreparedTables, schemaOrdinal: Int, isInTransaction: Bool = false
    ) throws(RecordStoreError) {
        self.connection = connection
        self.tables = tables
        self.isInTransaction = isInTransaction
        columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
    }

    /// The rows that exist, table by table.
    func rows(_ keys: [RowKey]) throws -> [OrderedRow] {
        let asked = sort(keys).sorted { $0.key < $1.key }
        guard !asked.isEmpty else { return [] }
        var statements: [String] = []
        for (table, _) in asked {
            let sql = tables.layouts[table].lookUp(columns: columnCounts[table])
            statements.append(try connection.prepare(sql))
        }
        // Several statements see one moment only inside a transaction.
        let isTransaction = asked.count > 1 && !isInTransaction
        let begin = try connection.prepare("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let commit = try connection.prepare("COMMIT")
        var found: [OrderedRow] = []
        try connection.pipeline { pipeline in
            if isTransaction { try pipeline.send(begin) }
            for (index, entry) in asked.enumerated() {
                var parameters = PostgresParameters()
                parameters.append(entry.value.owners)
                parameters.append(entry.value.ids)
                try pipeline.send(statements[index], parameters)
            }
            if isTransaction { try pipeline.send(commit) }
        } receive: { statement, rows in
            let index = isTransaction ? statement - 1 : statement
            guard asked.indices.contains(index) else { return }
            let (table, asked) = asked[index]
            let columns = tables.layouts[table].table.columns.prefix(columnCounts[table])
            var reader = RowReader()
            for row in 0..<rows.count {
                let key = asked.keys[Int(try rows.bigint(row, 0)) - 1]
                found.append(try reader.row(rows, row, key: key, columns: columns, from: 1))
            }
        }
        return found
    }

    private func sort(_ keys: [RowKey]) -> [Int: Asked] {
        var asked: [Int: Asked] = [:]
        // A table of a later version has no rows in the version asked for.
        for key in keys where columnCounts.indices.contains(key.table) {
            asked[key.table, default: Asked()].keys.append(key)
            asked[key.table, default: Asked()].owners.append(key.owner.text)
            asked[key.table, default: Asked()].ids.append(key.id.text)
        }
        return asked
    }
}
