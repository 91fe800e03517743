import Postgres
import RecordStore
import SyncModel
import SyncWire

/// Reads a partition whole inside one transaction, of its own moment or of one that another session holds: each table through
/// a cursor in the order of owners and timeStamps, and all of them as one stream.
struct PartitionSnapshot {
    /// How many rows or outcomes a piece has at most: enough that the call for it does not count.
    private static let pieceCount = 1000
    /// How many bytes of values or outcomes a piece has before it ends.
    private static let pieceBytes = 1 << 20

    private let connection: PostgresConnection
    private let tables: PreparedTables
    private let own: SystemTables
    private let partition: Int
    private let columnCounts: [Int]
    private let moment: ExportedSnapshot?
    private let body: (SnapshotChunk) throws -> Void

    init(
        _ connection: PostgresConnection, _ tables: PreparedTables, schema: String, of partition: Int,
        schemaOrdinal: Int, at moment: ExportedSnapshot?, _ body: @escaping (SnapshotChunk) throws -> Void
    ) throws(RecordStoreError) {
        self.connection = connection
        self.tables = tables
        self.moment = moment
        own = SystemTables(schema: schema)
        self.partition = partition
        columnCounts = try tables.columnCounts(ordinal: schemaOrdinal)
        self.body = body
    }

    /// Hands all pieces to the body: the position, each owner's rows, the outcomes.
    func run() throws {
        if let moment {
            try moment.begin(on: connection)
        } else {
            try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        }
        let position = try PositionRecord.read(partition, connection, tables.statements)
        try body(.position(position ?? StoredPosition()))
        try readRows()
        try readOutcomes()
        try connection.execute("COMMIT")
    }

    // MARK: Rows

    private func readRows() throws {
        var scans: [TableScan] = []
        for (index, count) in columnCounts.enumerated() {
            let layout = tables.layouts[index]
            let cursor = try Cursor(
                connection, name: "weir_table_\(index)",
                layout.scan(columns: count, owners: own.owners, partition: partition))
            let scan = TableScan(cursor, table: index, columns: layout.table.columns.prefix(count))
            if try scan.fill() { scans.append(scan) }
        }
        var piece: [OrderedRow] = []
        var bytes = 0
        while let next = scans.indices.min(by: { scans[$0].isBefore(scans[$1]) }) {
            let row = scans[next].take()
            if try !scans[next].fill() { scans.remove(at: next) }
            // A piece holds rows of one owner.
            let ends = piece.last.map { $0.key.owner != row.key.owner } ?? false
            if ends || piece.count == Self.pieceCount || bytes >= Self.pieceBytes {
                try Task.checkCancellation()
                try body(.rows(piece))
                piece.removeAll(keepingCapacity: true)
                bytes = 0
            }
            bytes += row.values.bytes.count
            piece.append(row)
        }
        if !piece.isEmpty { try body(.rows(piece)) }
    }

    // MARK: Outcomes

    private func readOutcomes() throws {
        let cursor = try Cursor(
            connection, name: "weir_outcomes",
            """
            SELECT owner.sync_id, found.caller, found.knowledge_id, kept.outcome
            FROM \(own.owners.qualifiedName) AS owner
            JOIN \(own.devices.qualifiedName) AS found ON found.owner = owner.sync_id
            JOIN \(own.outcomes.qualifiedName) AS kept ON kept.device = found.device
            WHERE owner.partition = \(partition)
            ORDER BY owner.sync_id, found.caller, found.knowledge_id, kept.batch
            """)
        var isAtEnd = false
        while !isAtEnd {
            let rows = try cursor.next()
            isAtEnd = rows.count == 0
            var piece: [StoredOutcome] = []
            var bytes = 0
            for row in 0..<rows.count {
                let device = Device(
                    caller: try RowReader.id(rows, row, 1), knowledgeID: try RowReader.id(rows, row, 2))
                let encoded = rows.bytes(row, 3)
                bytes += encoded.count
                piece.append(
                    StoredOutcome(
                        key: DeviceKey(owner: try RowReader.id(rows, row, 0), device: device),
                        outcome: try Outcome(decoding: encoded)))
            }
            try Task.checkCancellation()
            if !piece.isEmpty { try body(.outcomes(piece)) }
            cursor.learn(count: piece.count, bytes: bytes)
        }
    }
}

/// A query that is read a page at a time, each of about a megabyte.
private final class Cursor {
    /// One number of rows for all pages of a size keeps the memory of both ends in bounds; few enough for the first page,
    /// when nothing is known of the rows.
    private var pageCount = 64
    private let connection: PostgresConnection
    private let name: String

    init(_ connection: PostgresConnection, name: String, _ query: String) throws {
        self.connection = connection
        self.name = name
        try connection.execute("DECLARE \(name) NO SCROLL CURSOR FOR \(query)")
    }

    /// The next page; without rows at the end.
    func next() throws(PostgresError) -> PostgresResult {
        try connection.queryOnce("FETCH FORWARD \(pageCount) FROM \(name)")
    }

    /// Chooses the size of the next page by what the rows of this one took.
    func learn(count: Int, bytes: Int) {
        guard count > 0 else { return }
        pageCount = min(max((1 << 20) / max(bytes / count, 1), 1), 1000)
    }
}

/// The rows of one table in their order.
private final class TableScan {
    private let cursor: Cursor
    private let table: Int
    private let columns: ArraySlice<Column>
    private var reader = RowReader()
    private var page: [OrderedRow] = []
    private var place = 0

    init(_ cursor: Cursor, table: Int, columns: ArraySlice<Column>) {
        self.cursor = cursor
        self.table = table
        self.columns = columns
    }

    /// Whether there is a next row, which this reads where need be.
    func fill() throws -> Bool {
        if place < page.count { return true }
        page.removeAll(keepingCapacity: true)
        place = 0
        let rows = try cursor.next()
        var bytes = 0
        for row in 0..<rows.count {
            let key = RowKey(
                table: table, owner: try RowReader.id(rows, row, 0), id: try RowReader.id(rows, row, 1))
            let made = try reader.row(rows, row, key: key, columns: columns, from: 2)
            bytes += made.values.bytes.count
            page.append(made)
        }
        cursor.learn(count: page.count, bytes: bytes)
        return !page.isEmpty
    }

    /// Whether the next row comes before another scan's.
    func isBefore(_ other: TableScan) -> Bool {
        let (mine, others) = (page[place], other.page[other.place])
        if mine.key.owner != others.key.owner { return mine.key.owner < others.key.owner }
        return mine.timeStamp < others.timeStamp
    }

    /// The next row, which there is.
    func take() -> OrderedRow {
        defer { place += 1 }
        return page[place]
    }
}
