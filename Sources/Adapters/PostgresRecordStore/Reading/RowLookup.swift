import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Looks up many rows by their keys, with one statement for each table.
struct RowLookup {
    private struct Keys {
        var keys: [RowKey] = []
        /// Their indexes in the request.
        var indexes: [Int] = []
        var owners = BinaryArray(.text)
        var ids = BinaryArray(.text)

        mutating func append(_ key: RowKey, at index: Int) {
            keys.append(key)
            indexes.append(index)
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
    /// The size of the rows that each statement may return; `nil`: all rows.
    private let tableBytes: Int?
    /// The existing rows received so far, table by table.
    private var found: [OrderedRow] = []
    /// The indexes of the keys of rows that the statements left out.
    private var unread: [Int] = []

    /// Prepares the statements.
    init(
        _ keys: [RowKey], _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int,
        maximumBytes: Int
    ) throws {
        let columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
        var groups: [Int: Keys] = [:]
        // A table of a later version has no rows in this version.
        for (index, key) in keys.enumerated() where columnCounts.indices.contains(key.table) {
            groups[key.table, default: Keys()].append(key, at: index)
        }
        requested = groups.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let tableBytes = maximumBytes == .max ? nil : max(maximumBytes / max(groups.count, 1), 1)
        statements = try connection.prepare(
            requested.map { table, _ in
                tables.layouts[table].lookup(columns: columnCounts[table], isBounded: tableBytes != nil)
            })
        self.tableBytes = tableBytes
        self.tables = tables
        self.columnCounts = columnCounts
    }

    /// How many statements ``send(to:)`` sends.
    var count: Int { statements.count }

    func send(to pipeline: Pipeline) throws(PostgresError) {
        for (statement, entry) in zip(statements, requested) {
            var parameters = PostgresParameters([entry.keys.owners, entry.keys.ids])
            if let tableBytes { parameters.append(Int64(tableBytes)) }
            try pipeline.send(statement, parameters)
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
        guard let tableBytes, rows.count > 0 else { return }
        // The newest row names the size up to it, and reached the limit if others were left out.
        guard try rows.bigint(rows.count - 1, rows.columns.count - 1) >= tableBytes else { return }
        unread += keys.indexes[Int(try rows.bigint(rows.count - 1, 0))...]
    }

    /// What was received of these keys.
    func read(of keys: [RowKey]) -> RowsRead { RowsRead(rows: found, unread: unread.sorted().map { keys[$0] }) }

    /// The existing rows, table by table.
    ///
    /// - Parameter isInTransaction: whether the caller has begun a transaction, which stays open.
    static func rows(
        _ keys: [RowKey], _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int,
        maximumBytes: Int, isInTransaction: Bool = false
    ) throws -> RowsRead {
        var lookup = try RowLookup(
            keys, connection, tables, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        guard lookup.count > 0 else { return RowsRead(rows: []) }
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
        return lookup.read(of: keys)
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
    /// Reads rows, devices' progress, applied changes, owners' usage and the partition's position in one snapshot and one round
    /// trip.
    init(
        rows keys: [RowKey], progress requests: [ProgressRequest], applied changes: [AppliedChangeKey],
        usage owners: [SyncID], in partition: Int, _ connection: PostgresConnection,
        _ tables: PreparedTables<TableLayout>,
        schemaOrdinal: Int, maximumBytes: Int, _ statements: SystemStatements
    ) throws {
        var lookup = try RowLookup(
            keys, connection, tables, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        let snapshot = try SnapshotStatements(connection)
        let names = try connection.prepare(
            [statements.progress, statements.position, statements.usage]
                + (changes.isEmpty ? [] : [statements.appliedChanges]))
        let (progressStatement, positionStatement, usageStatement) = (names[0], names[1], names[2])
        // After the begin, the position, the progress and the usage.
        let firstRows = changes.isEmpty ? 4 : 5
        var usage: [OwnerUsage] = []
        var progress: [DeviceProgress] = []
        var applied: [AppliedChange?] = []
        var position: StoredPosition?
        try connection.pipeline { pipeline in
            try pipeline.send(snapshot.begin)
            try pipeline.send(positionStatement, PartitionsTable.parameters(partition))
            try pipeline.send(progressStatement, DevicesTable.parameters(requests))
            try pipeline.send(usageStatement, OwnersTable.parameters(owners))
            if !changes.isEmpty { try pipeline.send(names[3], AppliedChangesTable.parameters(changes)) }
            try lookup.send(to: pipeline)
            try pipeline.send(snapshot.commit)
        } receive: { number, rows in
            switch number {
            case 1: position = try PartitionsTable.position(in: rows, partition, connection)
            case 2: progress = try DevicesTable.progress(in: rows, of: requests)
            case 3: usage = try OwnersTable.usage(in: rows, of: owners)
            case 4 where !changes.isEmpty: applied = try AppliedChangesTable.changes(in: rows, of: changes)
            case firstRows..<(firstRows + lookup.count): try lookup.receive(number - firstRows, rows)
            default: break
            }
        }
        let read = lookup.read(of: keys)
        self.init(
            rows: read.rows, unread: read.unread, progress: progress, applied: applied, usage: usage,
            position: position)
    }
}
