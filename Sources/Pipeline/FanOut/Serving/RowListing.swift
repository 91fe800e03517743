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
    private var bytes = 0
    private var found: StreamRows

    init(_ query: StreamQuery, _ heads: OwnerHeads, _ reader: FileReader) {
        self.query = query
        self.heads = heads
        self.reader = reader
        limit = min(max(query.limit, 1), StreamQuery.maximumRows)
        found = StreamRows(head: heads.head)
    }

    consuming func read() throws -> StreamRows {
        if heads.number == 0 { return found }
        switch query.selection {
        case .ids(let table, let ids): try readIDs(ids, of: table)
        case .table(let table, let after): try readTable(table, after: after)
        case .changes(let above, let upTo, let table?): try readChanges(of: table, above: above, upTo: upTo)
        case .changes(let above, let upTo, nil): try readChanges(above: above, upTo: upTo)
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
                SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at \
                FROM stream INDEXED BY stream_by_id WHERE (owner_no, table_no, row_id) >= (?1, ?2, ?3) \
                ORDER BY owner_no, table_no, row_id LIMIT 1
                """)
            try bind(table, to: &statement)
            try statement.bind(id: id, at: 3)
            var isFound = false
            if try statement.step() {
                _ = try FileRecords.checkRow(statement)
                isFound = try isIn(table, statement) && statement.withBytes(at: 4) { id.hasBytes($0) }
            }
            guard isFound else {
                try checkBefore(table, id: id)
                continue
            }
            guard try take(statement) else {
                found.rest = .ids(table: table, Array(ids[index...]))
                return
            }
        }
    }

    private mutating func readTable(_ table: Int, after: RowID?) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at \
            FROM stream INDEXED BY stream_by_id WHERE (owner_no, table_no, row_id) > (?1, ?2, ?3) \
            ORDER BY owner_no, table_no, row_id
            """)
        try bind(table, to: &statement)
        try bind(after, to: &statement)
        try checkBefore(table, id: after)
        var last = after
        while try statement.step() {
            _ = try FileRecords.checkRow(statement)
            guard try isIn(table, statement) else { return }
            guard let id = RowID(utf8: try statement.bytes(at: 4)), last.map({ $0 < id }) ?? true else {
                throw disorder
            }
            guard try take(statement) else {
                found.rest = .table(table, after: last)
                return
            }
            last = id
        }
    }

    // MARK: By time

    private mutating func readChanges(of table: Int, above: TimeStamp, upTo: TimeStamp) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at \
            FROM stream INDEXED BY stream_by_table WHERE (owner_no, table_no, time_stamp) > (?1, ?2, ?3) \
            ORDER BY owner_no, table_no, time_stamp
            """)
        try bind(table, to: &statement)
        try statement.bind(integer: above.rawValue, at: 3)
        try checkBefore(table, timeStamp: above)
        var last = above
        while try statement.step() {
            _ = try FileRecords.checkRow(statement)
            guard try isIn(table, statement) else { return }
            guard let timeStamp = TimeStamp(rawValue: try statement.integer(at: 2)), timeStamp > last else {
                throw disorder
            }
            if timeStamp > upTo { return }
            guard try take(statement) else {
                found.rest = .changes(above: last, upTo: upTo, table: table)
                return
            }
            last = timeStamp
        }
    }

    private mutating func readChanges(above: TimeStamp, upTo: TimeStamp) throws {
        let plan = PullPlan(OwnerKnowledge(floor: above), heads: heads)
        if plan.isEmpty { return }
        defer { reader.cursors.reset() }
        var merge = try RowMerge(plan, reader.cursors)
        var last = above
        while let row = merge.current {
            if row.timeStamp > upTo { return }
            guard try row.cursor.withRow({ try take($0) }) else {
                found.rest = .changes(above: last, upTo: upTo, table: nil)
                return
            }
            last = row.timeStamp
            try merge.advance()
        }
        // Only named devices have rows that a scan passes over.
        guard merge.suspendedAt == nil else { throw disorder }
    }

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

    private func isIn(_ table: Int, _ row: borrowing Statement) throws -> Bool {
        try row.integer(at: 0) == heads.number && row.integer(at: 3) == Int64(table)
    }

    /// Adds a verified row; false where the answer is full.
    private mutating func take(_ row: borrowing Statement) throws -> Bool {
        let size = try row.withBytes(at: 5) { $0.byteCount }
        guard found.rows.isEmpty || found.rows.count < limit && bytes + size <= query.maximumBytes else { return false }
        guard let id = RowID(utf8: try row.bytes(at: 4)), let timeStamp = TimeStamp(rawValue: try row.integer(at: 2))
        else { throw StreamFailure.damaged("a row of owner \(heads.number) is damaged") }
        bytes += size
        found.rows.append(
            StreamRow(
                table: Int(try row.integer(at: 3)), id: id, timeStamp: timeStamp,
                createdAt: try row.integer(at: 8), isExact: try row.integer(at: 7) != 0,
                json: try row.bytes(at: 5)))
        return true
    }

    /// Verifies the row before a position in the index by id.
    private func checkBefore(_ table: Int, id: RowID?) throws {
        var statement = try reader.connection.statement(
            """
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at \
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
            SELECT owner_no, device_no, time_stamp, table_no, row_id, json, checksum, is_exact, created_at \
            FROM stream INDEXED BY stream_by_table WHERE (owner_no, table_no, time_stamp) <= (?1, ?2, ?3) \
            ORDER BY owner_no DESC, table_no DESC, time_stamp DESC LIMIT 1
            """)
        try bind(table, to: &statement)
        try statement.bind(integer: timeStamp.rawValue, at: 3)
        if try statement.step() { _ = try FileRecords.checkRow(statement) }
    }
}
