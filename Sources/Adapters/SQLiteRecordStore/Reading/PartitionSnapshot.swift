import RecordStore
import SQLite
import SyncModel
import SyncWire

/// Reads a partition whole inside one read transaction, owner by owner.
///
/// Memory holds one piece, and SQLite sorts each owner's rows of a table, in a file of its own where they are many.
struct PartitionSnapshot {
    /// How many rows or outcomes a piece has at most: enough that the call for it does not count.
    private static let pieceCount = 1000
    /// How many bytes of values or outcomes a piece has before it ends.
    private static let pieceBytes = 1 << 20

    private let connection: Connection
    private let partition: Int
    private let body: (SnapshotChunk) throws -> Void
    private var scans: [OwnerScan] = []
    private var reader = RowReader()
    private var outcomes: [StoredOutcome] = []
    private var outcomeBytes = 0

    init(
        _ connection: Connection, _ tables: PreparedTables, of partition: Int, schemaOrdinal: Int,
        _ body: @escaping (SnapshotChunk) throws -> Void
    ) throws {
        self.connection = connection
        self.partition = partition
        self.body = body
        for (index, count) in try tables.columnCounts(ordinal: schemaOrdinal).enumerated() {
            let layout = tables.layouts[index]
            let statement = try connection.prepare(layout.scan(columns: count))
            scans.append(OwnerScan(statement, table: index, columns: layout.table.columns.prefix(count)))
        }
    }

    /// Hands all pieces to the body: the position, each owner's rows, the outcomes.
    mutating func run() throws {
        try body(.position(try PositionRecord.read(partition, connection) ?? StoredPosition()))
        try forEachOwner { snapshot, owner in try snapshot.readRows(of: owner) }
        try forEachOwner { snapshot, owner in try snapshot.readOutcomes(of: owner) }
        try endOutcomes()
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

    // MARK: Rows

    private mutating func readRows(of owner: SyncID) throws {
        var open: [OwnerScan] = []
        for scan in scans where try scan.start(owner) { open.append(scan) }
        var piece: [OrderedRow] = []
        var bytes = 0
        // The tables' rows come by timeStamp each, and go on as one stream; most owners have few tables in use.
        while let next = open.indices.min(by: { open[$0].timeStamp < open[$1].timeStamp }) {
            let row = try open[next].row(of: owner, &reader)
            bytes += row.values.bytes.count
            piece.append(row)
            if try !open[next].advance() { open.remove(at: next) }
            if piece.count == Self.pieceCount || bytes >= Self.pieceBytes {
                try Task.checkCancellation()
                try body(.rows(piece))
                piece.removeAll(keepingCapacity: true)
                bytes = 0
            }
        }
        if !piece.isEmpty { try body(.rows(piece)) }
    }

    // MARK: Outcomes

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
            outcomes.append(
                StoredOutcome(key: DeviceKey(owner: owner, device: device), outcome: try Outcome(decoding: encoded)))
            outcomeBytes += encoded.count
            if outcomes.count == Self.pieceCount || outcomeBytes >= Self.pieceBytes { try endOutcomes() }
        }
    }

    private mutating func endOutcomes() throws {
        guard !outcomes.isEmpty else { return }
        try body(.outcomes(outcomes))
        outcomes.removeAll(keepingCapacity: true)
        outcomeBytes = 0
    }
}

/// One table's rows of one owner after the other, each owner's by timeStamp.
private final class OwnerScan {
    private var statement: Statement
    private let table: Int
    private let columns: ArraySlice<Column>
    /// That of the current row.
    private(set) var timeStamp = TimeStamp.zero

    init(_ statement: consuming Statement, table: Int, columns: ArraySlice<Column>) {
        self.statement = statement
        self.table = table
        self.columns = columns
    }

    /// Goes to the owner's first row; `false` where it has none.
    func start(_ owner: SyncID) throws -> Bool {
        statement.reset()
        try statement.bind(text: owner.text, at: 1)
        return try advance()
    }

    /// Goes to the next row; `false` at the end.
    func advance() throws -> Bool {
        guard try statement.step() else { return false }
        timeStamp = try RowReader.timeStamp(statement, at: 1)
        return true
    }

    func row(of owner: SyncID, _ reader: inout RowReader) throws -> OrderedRow {
        let id: RowID = try RowReader.id(statement, at: RowReader.valuesStart + columns.count)
        return try reader.row(statement, key: RowKey(table: table, owner: owner, id: id), columns: columns)
    }
}
