import FanOutLink
import SQLite
import SyncModel

/// Reads the rows of one ``StreamQuery`` in one turn of a reader thread.
///
/// Every row is verified by its checksum, and every search by the rows on both sides of where it ended, as in
/// ``CursorSet/checkSearch(owner:device:above:at:)``.
struct RowListing {
    private let query: StreamQuery
    private let heads: OwnerHeads
    private let reader: FileReader
    private let limit: Int
    private var found: StreamRows

    init(_ query: StreamQuery, _ heads: OwnerHeads, _ reader: FileReader) {
        self.query = query
        self.heads = heads
        self.reader = reader
        limit = min(max(query.limit, 1), StreamQuery.maximumRows)
        found = StreamRows(head: heads.head)
        // Most rows have less than half a kilobyte. What is not used takes no memory.
        found.reserve(rows: limit, bytes: min(query.maximumBytes, 512 * limit))
    }

    consuming func read() throws -> StreamRows {
        if heads.number == 0 { return found }
        switch query.selection {
        case .ids(let table, let ids): try readIDs(ids, of: table)
        case .table(let table, let after): try readTable(table, after: after)
        case .changes(let above, let upTo, let table): try readChanges(of: table, above: above, upTo: upTo)
        }
        return found
    }

    // MARK: By id

    private mutating func readIDs(_ ids: [RowID], of table: Int) throws {
        for (index, id) in ids.enumerated() {
            // Ids without rows cost a search, too.
            guard index < limit else {
                found.rest = .ids(table: table, Array(ids[index...]))
                return
            }
            var statement = try reader.connection.statement(
                """
                SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns \
                FROM stream INDEXED BY stream_by_id WHERE (owner_no, table_no, row_id) >= (?1, ?2, ?3) \
                ORDER BY owner_no, table_no, row_id LIMIT 1
                """)
            try bind(table, to: &statement)
            try statement.bind(id: id, at: 3)
            let row = try statement.step() ? try FileRecords.verifiedRow(statement) : nil
            guard let row, isIn(table, row), try statement.withBytes(at: 4, { id.hasBytes($0) }) else {
                try checkBefore(table, id: id)
                continue
            }
            guard try take(row, statement) else {
                found.rest = .ids(table: table, Array(ids[index...]))
                return
            }
        }
    }

    private mutating func readTable(_ table: Int, after: RowID?) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns \
            FROM stream INDEXED BY stream_by_id WHERE (owner_no, table_no, row_id) > (?1, ?2, ?3) \
            ORDER BY owner_no, table_no, row_id
            """)
        try bind(table, to: &statement)
        try bind(after, to: &statement)
        try checkBefore(table, id: after)
        // The ids of the row before, and of this one.
        var (last, next) = (Array((after?.text ?? "").utf8), [UInt8]())
        while try statement.step() {
            let row = try FileRecords.verifiedRow(statement) { id in
                next.removeAll(keepingCapacity: true)
                id.withUnsafeBytes { next.append(contentsOf: $0) }
            }
            guard isIn(table, row) else { return }
            guard last.lexicographicallyPrecedes(next) else { throw disorder }
            guard try take(row, statement) else {
                found.rest = .table(table, after: last.isEmpty ? nil : RowID(utf8: last))
                return
            }
            swap(&last, &next)
        }
    }

    // MARK: By time

    private mutating func readChanges(of table: Int?, above: TimeStamp, upTo: TimeStamp) throws {
        let passed = try scanChanges(of: table, above: above, upTo: upTo)
        if let table, let passed { try searchChanges(of: table, above: passed, upTo: upTo) }
    }

    /// Reads the rows of a table by its index.
    private mutating func searchChanges(of table: Int, above: TimeStamp, upTo: TimeStamp) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns \
            FROM stream INDEXED BY stream_by_table WHERE (owner_no, table_no, time_stamp) > (?1, ?2, ?3) \
            ORDER BY owner_no, table_no, time_stamp
            """)
        try bind(table, to: &statement)
        try statement.bind(integer: above.rawValue, at: 3)
        try checkBefore(table, timeStamp: above)
        var last = above
        while try statement.step() {
            let row = try FileRecords.verifiedRow(statement)
            guard isIn(table, row) else { return }
            guard let timeStamp = TimeStamp(rawValue: row.timeStamp), timeStamp > last else {
                throw disorder
            }
            if timeStamp > upTo { return }
            guard try take(row, statement) else {
                found.rest = .changes(above: last, upTo: upTo, table: table)
                return
            }
            last = timeStamp
        }
    }

    /// Reads the rows in the order in which they are stored, of one table or of all.
    ///
    /// A search in an index costs several times the next row here. Where most rows are of other tables, it is cheaper all the same.
    ///
    /// - Returns: where to continue by the table's index; `nil` where the answer is full or at its end.
    private mutating func scanChanges(of table: Int?, above: TimeStamp, upTo: TimeStamp) throws -> TimeStamp? {
        let plan = PullPlan(OwnerKnowledge(floor: above), heads: heads)
        if plan.isEmpty { return nil }
        defer { reader.cursors.reset() }
        var merge = try RowMerge(plan, reader.cursors)
        var last = above
        var othersLeft = Self.maximumOthers
        while let row = merge.current {
            if row.timeStamp > upTo { return nil }
            let isTaken = try row.cursor.withRow { row, statement in
                if let table, row.table != Int64(table) {
                    othersLeft -= 1
                    return true
                }
                othersLeft += 1
                return try take(row, statement)
            }
            guard isTaken else {
                found.rest = .changes(above: last, upTo: upTo, table: table)
                return nil
            }
            last = row.timeStamp
            if othersLeft == 0 { return last }
            try merge.advance()
        }
        // Only named devices have rows that a scan passes over, and the head is always a row.
        guard merge.suspendedAt == nil, last == heads.head else { throw disorder }
        return nil
    }

    /// How many rows of other tables are passed, more than the table's own.
    private static let maximumOthers = 32

    // MARK: Records

    private var disorder: StreamFailure { .damaged("the rows of owner \(heads.number) are out of order") }

    private func bind(_ table: Int, to statement: inout Statement) throws {
        try statement.bind(integer: heads.number, at: 1)
        try statement.bind(integer: Int64(table), at: 2)
    }

    /// No id is as an empty one, which is before all others.
    private func bind(_ id: RowID?, to statement: inout Statement) throws {
        let bytes = Array((id?.text ?? "").utf8)
        try statement.bind(blob: bytes.span.bytes, at: 3)
    }

    private func isIn(_ table: Int, _ row: FileRecords.Row) -> Bool {
        row.owner == heads.number && row.table == Int64(table)
    }

    /// Adds a verified row; false where the answer is full.
    private mutating func take(_ row: FileRecords.Row, _ statement: borrowing Statement) throws -> Bool {
        guard let timeStamp = TimeStamp(rawValue: row.timeStamp) else {
            throw StreamFailure.damaged("a row of owner \(heads.number) is damaged")
        }
        return try statement.withBytes(at: 5) { json in
            let hasSpace = found.rows.count < limit && found.json.count + json.byteCount <= query.maximumBytes
            guard found.rows.isEmpty || hasSpace else { return false }
            found.append(
                table: Int(row.table), timeStamp: timeStamp, createdAt: row.createdAt, isExact: row.isExact != 0,
                columns: Int(row.columns), json: json)
            return true
        }
    }

    /// Verifies the row before a position in the index by id.
    private func checkBefore(_ table: Int, id: RowID?) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns \
            FROM stream INDEXED BY stream_by_id WHERE (owner_no, table_no, row_id) <= (?1, ?2, ?3) \
            ORDER BY owner_no DESC, table_no DESC, row_id DESC LIMIT 1
            """)
        try bind(table, to: &statement)
        try bind(id, to: &statement)
        if try statement.step() { _ = try FileRecords.checkRow(statement) }
    }

    /// Verifies the row before a position in the index by table.
    private func checkBefore(_ table: Int, timeStamp: TimeStamp) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at, columns \
            FROM stream INDEXED BY stream_by_table WHERE (owner_no, table_no, time_stamp) <= (?1, ?2, ?3) \
            ORDER BY owner_no DESC, table_no DESC, time_stamp DESC LIMIT 1
            """)
        try bind(table, to: &statement)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        if try statement.step() { _ = try FileRecords.checkRow(statement) }
    }
}
