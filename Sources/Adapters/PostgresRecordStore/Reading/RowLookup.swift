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

    private let tables: PreparedTables<TableLayout>
    /// How many columns of each table are read.
    private let columnCounts: [Int]
    private let requested: [(table: Int, keys: Keys)]
    /// One for each table, in order.
    private let statements: [String]
    /// The existing rows received so far, table by table.
    private(set) var found: [OrderedRow] = []

    /// Prepares the statements.
    init(
        _ keys: [RowKey], _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int
    ) throws {
        let columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
        var groups: [Int: Keys] = [:]
        // A table of a later version has no rows in this version.
        for key in keys where columnCounts.indices.contains(key.table) {
            groups[key.table, default: Keys()].append(key)
        }
        requested = groups.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        statements = try connection.prepare(
            requested.map { table, _ in tables.layouts[table].lookup(columns: columnCounts[table]) })
        self.tables = tables
        self.columnCounts = columnCounts
    }

    /// How many statements ``send(to:)`` sends.
    var count: Int { statements.count }

    func send(to pipeline: Pipeline) throws(PostgresError) {
        for (statement, entry) in zip(statements, requested) {
            try pipeline.send(statement, PostgresParameters([entry.keys.owners, entry.keys.ids]))
        }
    }

    /// Takes the result of one of the statements sent, numbered from 0.
    mutating func receive(_ statement: Int, _ rows: borrowing PostgresResult) throws {
        let (table, keys) = requested[statement]
        let columns = tables.layouts[table].table.columns.prefix(columnCounts[table])
        var reader = RowReader()
        for row in 0..<rows.count {
            let key = keys.keys[Int(try rows.bigint(row, 0)) - 1]
            found.append(try reader.row(rows, row, key: key, columns: columns, from: 1))
        }
    }

    /// The existing rows, table by table.
    ///
    /// - Parameter isInTransaction: whether the caller has begun a transaction, which stays open.
    static func rows(
        _ keys: [RowKey], _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int,
        isInTransaction: Bool = false
    ) throws -> [OrderedRow] {
        var lookup = try RowLookup(keys, connection, tables, schemaOrdinal: schemaOrdinal)
        guard lookup.count > 0 else { return [] }
        // Several statements see one snapshot only inside a transaction.
        let snapshot = lookup.count > 1 && !isInTransaction ? try SnapshotStatements(connection) : nil
        try connection.pipeline { pipeline in
            if let snapshot { try pipeline.send(snapshot.begin) }
            try lookup.send(to: pipeline)
            if let snapshot { try pipeline.send(snapshot.commit) }
        } receive: { number, rows in
            let statement = snapshot == nil ? number : number - 1
            if (0..<lookup.count).contains(statement) { try lookup.receive(statement, rows) }
        }
        return lookup.found
    }
}

/// The prepared statements around reads of one snapshot.
private struct SnapshotStatements {
    let begin: String
    let commit: String

    init(_ connection: PostgresConnection) throws {
        let names = try connection.prepare(["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "COMMIT"])
        (begin, commit) = (names[0], names[1])
    }
}

extension StepLookup {
    /// Reads rows, devices' progress and the partition's position in one snapshot and one round trip.
    init(
        rows keys: [RowKey], progress requests: [ProgressRequest], in partition: Int, _ connection: PostgresConnection,
        _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int, _ statements: SystemStatements
    ) throws {
        var lookup = try RowLookup(keys, connection, tables, schemaOrdinal: schemaOrdinal)
        let snapshot = try SnapshotStatements(connection)
        let names = try connection.prepare([statements.progress, statements.position])
        let (progressStatement, positionStatement) = (names[0], names[1])
        var progress: [DeviceProgress] = []
        var position: StoredPosition?
        try connection.pipeline { pipeline in
            try pipeline.send(snapshot.begin)
            try pipeline.send(positionStatement, PartitionsTable.parameters(partition))
            try pipeline.send(progressStatement, DevicesTable.parameters(requests))
            try lookup.send(to: pipeline)
            try pipeline.send(snapshot.commit)
        } receive: { number, rows in
            switch number {
            case 1: position = try PartitionsTable.position(in: rows, partition, connection)
            case 2: progress = try DevicesTable.progress(in: rows, of: requests)
            case 3..<(3 + lookup.count): try lookup.receive(number - 3, rows)
            default: break
            }
        }
        self.init(rows: lookup.found, progress: progress, position: position)
    }
}
