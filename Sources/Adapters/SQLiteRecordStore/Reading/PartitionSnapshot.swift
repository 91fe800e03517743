import RecordStore
import RelationalTables
import SQLite
import SyncModel
import SyncWire

/// Reads a whole partition inside one read transaction, owner by owner.
///
/// Memory holds one chunk; SQLite sorts each owner's rows of a table, in a temporary file if there are many.
struct PartitionSnapshot {
    private let connection: Connection
    private let partition: Int
    private let body: (SnapshotChunk) throws -> Void
    private var chunks: SnapshotChunks
    private var scans: [OwnerScan] = []
    private var reader = RowReader()

    init(
        _ connection: Connection, _ tables: PreparedTables<TableLayout>, of partition: Int, schemaOrdinal: Int,
        _ body: @escaping (SnapshotChunk) throws -> Void
    ) throws {
        self.connection = connection
        self.partition = partition
        self.body = body
        chunks = SnapshotChunks(body)
        for (index, count) in try tables.columnCounts(ordinal: schemaOrdinal).enumerated() {
            let layout = tables.layouts[index]
            let statement = try connection.prepare(layout.scan(columns: count))
            scans.append(OwnerScan(statement, table: index, columns: layout.table.columns.prefix(count)))
        }
    }

    /// Passes all chunks to the body: the position, each owner's rows, the outcomes, what owners have.
    mutating func run() throws {
        try body(.position(try PartitionsTable.read(partition, connection) ?? StoredPosition()))
        try forEachOwner { snapshot, owner in try snapshot.readRows(of: owner) }
        try chunks.flush()
        try forEachOwner { snapshot, owner in try snapshot.readOutcomes(of: owner) }
        try chunks.flush()
        try readUsage()
        try chunks.flush()
    }

    private mutating func forEachOwner(_ read: (inout Self, SyncID) throws -> Void) throws {
        var statement = try connection.statement(
            "SELECT sync_id FROM weir_owners WHERE partition = ?1 ORDER BY sync_id")
        try statement.bind(integer: Int64(partition), at: 1)
        while try statement.step() {
            try Task.checkCancellation()
            try read(&self, try RowReader.id(statement, at: 0))
        }
    }

    private mutating func readUsage() throws {
        var statement = try connection.statement(
            """
            SELECT rows, bytes, deleted_rows, deleted_bytes, sync_id FROM weir_owners WHERE partition = ?1
            ORDER BY sync_id
            """)
        try statement.bind(integer: Int64(partition), at: 1)
        while try statement.step() {
            let usage = try PartitionsTable.usage(in: statement)
            guard usage != OwnerUsage() else { continue }
            try chunks.append(StoredUsage(owner: try RowReader.id(statement, at: 4), usage: usage))
        }
    }

    /// Merges the tables' rows, each ordered by timeStamp; most owners use few tables.
    private mutating func readRows(of owner: SyncID) throws {
        var open: [OwnerScan] = []
        for scan in scans where try scan.start(owner) { open.append(scan) }
        while let next = open.indices.min(by: { open[$0].timeStamp < open[$1].timeStamp }) {
            try chunks.append(try open[next].row(of: owner, &reader))
            if try !open[next].advance() { open.remove(at: next) }
        }
    }

    private mutating func readOutcomes(of owner: SyncID) throws {
        var statement = try connection.statement(
            """
            SELECT caller, knowledge_id, outcome FROM weir_devices
            JOIN weir_outcomes ON place BETWEEN device * 16 AND device * 16 + 15
            WHERE owner = ?1 ORDER BY caller, knowledge_id, batch
            """)
        try statement.bind(text: owner.text, at: 1)
        while try statement.step() {
            let device = Device(
                caller: try RowReader.id(statement, at: 0), knowledgeID: try RowReader.id(statement, at: 1))
            let encoded = try statement.bytes(at: 2)
            try chunks.append(
                StoredOutcome(key: DeviceKey(owner: owner, device: device), outcome: try Outcome(decoding: encoded)),
                encodedBytes: encoded.count)
        }
    }
}

/// Reads one table's rows of one owner at a time, ordered by timeStamp.
private final class OwnerScan {
    private var statement: Statement
    private let table: Int
    private let columns: ArraySlice<Column>
    /// Of the current row.
    private(set) var timeStamp = TimeStamp.zero

    init(_ statement: consuming Statement, table: Int, columns: ArraySlice<Column>) {
        self.statement = statement
        self.table = table
        self.columns = columns
    }

    /// Moves to the owner's first row; `false` if it has none.
    func start(_ owner: SyncID) throws -> Bool {
        statement.reset()
        try statement.bind(text: owner.text, at: 1)
        return try advance()
    }

    /// Moves to the next row; `false` at the end.
    func advance() throws -> Bool {
        guard try statement.step() else { return false }
        timeStamp = try RowReader.timeStamp(statement, at: 1)
        return true
    }

    func row(of owner: SyncID, _ reader: inout RowReader) throws -> OrderedRow {
        let id: RowID = try RowReader.id(statement, at: RowColumns.readCount + columns.count)
        return try reader.row(statement, key: RowKey(table: table, owner: owner, id: id), columns: columns)
    }
}
