import Postgres
import RecordStore
import RelationalTables
import SyncModel
import SyncWire

/// Reads a whole partition inside one transaction, with a snapshot of its own or an exported one: each table through a cursor
/// ordered by owner and timeStamp, merged into one stream.
struct PartitionSnapshot {
    private let connection: PostgresConnection
    private let tables: PreparedTables<TableLayout>
    private let settings: ShardSettings
    private let partition: Int
    private let columnCounts: [Int]
    private let exported: ExportedSnapshot?
    private let body: (SnapshotChunk) throws -> Void
    private let notice: MigrationNotice

    init(
        _ connection: PostgresConnection, _ tables: PreparedTables<TableLayout>, _ settings: ShardSettings,
        of partition: Int, schemaOrdinal: Int, in exported: ExportedSnapshot?,
        _ body: @escaping (SnapshotChunk) throws -> Void
    ) throws(RecordStoreError) {
        self.connection = connection
        self.tables = tables
        self.settings = settings
        self.exported = exported
        self.partition = partition
        columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
        self.body = body
        notice = MigrationNotice(settings)
    }

    /// Passes all chunks to the body: the position, each owner's rows, the outcomes, what owners have.
    func run() throws {
        if let exported {
            try exported.begin(on: connection)
        } else {
            try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        }
        try notice.check(connection)
        let position = try PartitionsTable.read(partition, connection, settings.statements)
        try body(.position(position ?? StoredPosition()))
        var chunks = SnapshotChunks(body)
        try readRows(into: &chunks)
        try chunks.flush()
        try readOutcomes(into: &chunks)
        try chunks.flush()
        try readUsage(into: &chunks)
        try chunks.flush()
        try connection.execute("COMMIT")
    }

    private func readRows(into chunks: inout SnapshotChunks) throws {
        var scans: [TableScan] = []
        for (index, count) in columnCounts.enumerated() {
            let layout = tables.layouts[index]
            let cursor = try Cursor(
                connection, notice, name: "weir_table_\(index)",
                layout.scan(columns: count, owners: settings.system.owners, partition: partition))
            let scan = TableScan(cursor, table: index, columns: layout.table.columns.prefix(count))
            if try scan.fill() { scans.append(scan) }
        }
        while let next = scans.indices.min(by: { scans[$0].isBefore(scans[$1]) }) {
            let row = scans[next].take()
            if try !scans[next].fill() { scans.remove(at: next) }
            try chunks.append(row)
        }
    }

    private func readOutcomes(into chunks: inout SnapshotChunks) throws {
        let system = settings.system
        let cursor = try Cursor(
            connection, notice, name: "weir_outcomes",
            """
            SELECT owner.sync_id, found.caller, found.knowledge_id, kept.outcome
            FROM \(system.owners.qualifiedName) AS owner
            JOIN \(system.devices.qualifiedName) AS found ON found.owner = owner.sync_id
            JOIN \(system.outcomes.qualifiedName) AS kept ON kept.device = found.device
            WHERE owner.partition = \(partition)
            ORDER BY owner.sync_id, found.caller, found.knowledge_id, kept.batch
            """)
        var isAtEnd = false
        while !isAtEnd {
            let rows = try cursor.next()
            isAtEnd = rows.count == 0
            var bytes = 0
            for row in 0..<rows.count {
                let device = Device(
                    caller: try RowReader.id(rows, row, 1), knowledgeID: try RowReader.id(rows, row, 2))
                let encoded = rows.bytes(row, 3)
                bytes += encoded.count
                try chunks.append(
                    StoredOutcome(
                        key: DeviceKey(owner: try RowReader.id(rows, row, 0), device: device),
                        outcome: try Outcome(decoding: encoded)), encodedBytes: encoded.count)
            }
            cursor.adaptPageSize(rows: rows.count, bytes: bytes)
        }
    }
}

extension PartitionSnapshot {
    private func readUsage(into chunks: inout SnapshotChunks) throws {
        let cursor = try Cursor(
            connection, notice, name: "weir_usage",
            """
            SELECT sync_id, rows, bytes, deleted_rows, deleted_bytes FROM \(settings.system.owners.qualifiedName)
            WHERE partition = \(partition) AND (rows <> 0 OR bytes <> 0 OR deleted_rows <> 0 OR deleted_bytes <> 0)
            ORDER BY sync_id
            """)
        var isAtEnd = false
        while !isAtEnd {
            let rows = try cursor.next()
            isAtEnd = rows.count == 0
            for row in 0..<rows.count {
                let usage = try OwnersTable.usage(rows, row)
                try chunks.append(StoredUsage(owner: try RowReader.id(rows, row, 0), usage: usage))
            }
            cursor.adaptPageSize(rows: rows.count, bytes: rows.count * 64)
        }
    }
}

/// The rows of one table, ordered by owner and timeStamp.
private final class TableScan {
    private let cursor: Cursor
    private let table: Int
    private let columns: ArraySlice<Column>
    private var reader = RowReader()
    private var page: [OrderedRow] = []
    private var index = 0

    init(_ cursor: Cursor, table: Int, columns: ArraySlice<Column>) {
        self.cursor = cursor
        self.table = table
        self.columns = columns
    }

    /// Reads the next page if the current one is used up; false at the end.
    func fill() throws -> Bool {
        if index < page.count { return true }
        page.removeAll(keepingCapacity: true)
        index = 0
        let rows = try cursor.next()
        var bytes = 0
        for number in 0..<rows.count {
            let key = RowKey(
                table: table, owner: try RowReader.id(rows, number, 0), id: try RowReader.id(rows, number, 1))
            let row = try reader.row(rows, number, key: key, columns: columns, from: 2)
            bytes += row.values.bytes.count
            page.append(row)
        }
        cursor.adaptPageSize(rows: page.count, bytes: bytes)
        return !page.isEmpty
    }

    func isBefore(_ other: TableScan) -> Bool {
        let (mine, others) = (page[index], other.page[other.index])
        if mine.key.owner != others.key.owner { return mine.key.owner < others.key.owner }
        return mine.timeStamp < others.timeStamp
    }

    /// The next row; after `fill()`.
    func take() -> OrderedRow {
        defer { index += 1 }
        return page[index]
    }
}
