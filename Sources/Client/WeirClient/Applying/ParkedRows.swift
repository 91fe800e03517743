import JSONText

/// The rows that came and could not be written, such as for a unique value that another row has, or for a parent that is missing.
///
/// With each answer they are tried again, in transactions of some milliseconds. Rows of tables that the app does not have are not looked
/// at, nor those without a version, which another history had (``OwnerRows``).
struct ParkedRows {
    /// How many of a table are tried with one answer while none can be written, so that many that stay impossible delay none; the next
    /// answer continues after them.
    static let mostTried = 1000

    /// Where a table's rows are continued.
    struct Position {
        let id: String
        let owner: String
    }

    private let applying: Applying
    /// The server's tables that are left; `nil` before the first transaction.
    private var tables: [String]?
    /// How many rows of the current table were tried since the last exchange.
    private var tried = 0
    private var isAtEnd = false
    /// Whether one was written meanwhile, which may have freed what another one waits for.
    private var isWritten = false

    init(applying: Applying) { self.applying = applying }

    private var file: ClientFile { applying.file }
    private var database: Database { applying.database }

    /// Whether any may be tried.
    var exist: Bool { get throws { try !waitingTables().isEmpty } }

    /// Whether any row waits, of whichever table.
    static func wait(in database: Database) throws -> Bool {
        try database.value("SELECT 1 FROM weir_parked LIMIT 1") != nil
    }

    /// Most files have none, at any time.
    private func waitingTables() throws -> [String] {
        // Parents are tried before their children: the last one is the next.
        try TableOrder.parentsFirst(file.tables).reversed().compactMap { applying.schema.table(for: $0.name)?.name }
            .filter { name in
                let query = "SELECT 1 FROM weir_parked WHERE name = ?1 AND time_stamp > 0 LIMIT 1"
                return try database.value(query, [.text(name)]) != nil
            }
    }

    /// Keeps a row that cannot be written, unless a later version waits already, as part of the open transaction.
    ///
    /// - Parameters:
    ///   - table: the app's; `nil` if it has none.
    ///   - isOrphan: whether it waits for its parent. It is made of what the table has, which may be less than the same version as it came.
    static func park(
        _ row: ServerRow, _ reason: String, of table: CapturedTable?, isOrphan: Bool = false, in database: Database
    ) throws {
        try database.run(
            """
            INSERT INTO weir_parked (name, id, sync_id, time_stamp, reason, row, orphan, tbl, key)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            ON CONFLICT (name, id, sync_id) DO UPDATE SET time_stamp = excluded.time_stamp, reason = excluded.reason,
            row = excluded.row, orphan = excluded.orphan, tbl = excluded.tbl, key = excluded.key
            WHERE excluded.time_stamp > time_stamp OR excluded.time_stamp = time_stamp AND NOT excluded.orphan
            """,
            [
                .text(row.table), .text(row.id), .text(row.syncID), .integer(row.timeStamp), .text(reason),
                .blob(Array(row.json)), .integer(isOrphan ? 1 : 0), table.map { .integer(Int64($0.number)) } ?? .null,
                table?.definition.keyKind.key(ofID: row.id) ?? .null,
            ])
    }

    /// The version of an owner's row that waits.
    static func row(_ key: SQLValue, of table: CapturedTable, _ owner: String, in database: Database) throws
        -> ServerRow?
    {
        try database.map(
            "SELECT row FROM weir_parked WHERE tbl = ?1 AND key = ?2 AND sync_id = ?3",
            [.integer(Int64(table.number)), key, .text(owner)]
        ) { $0.bytes(at: 0) }.first.map { json in
            var reader = JSONReader(json)
            return try ServerRow(&reader)
        }
    }

    /// Forgets a row that was written, or need not be, unless a later version waits.
    static func remove(_ row: ServerRow, in database: Database) throws {
        try database.run(
            "DELETE FROM weir_parked WHERE name = ?1 AND id = ?2 AND sync_id = ?3 AND time_stamp <= ?4",
            [.text(row.table), .text(row.id), .text(row.syncID), .integer(row.timeStamp)])
    }

    /// Makes an earlier version that waits the one that a change of this device was stored as, as part of the open transaction.
    ///
    /// The device has received the version that waits, so the server sends only what is not a change of that one: its other columns are
    /// nowhere else.
    static func advance(
        _ change: ChangeContent, to timeStamp: Int64, by device: String, of account: String, in database: Database
    ) throws {
        // A deletion makes it one that is not needed any more.
        if change.isDeletion { return }
        let names: [SQLValue] = [.text(change.table), .text(change.id), .text(change.owner ?? account)]
        let isThis = "name = ?1 AND id = ?2 AND sync_id = ?3"
        let json = try database.map(
            "SELECT row FROM weir_parked WHERE \(isThis) AND time_stamp < ?4", names + [.integer(timeStamp)]
        ) { $0.bytes(at: 0) }.first
        guard let json else { return }
        var reader = JSONReader(json)
        let row = try ServerRow(&reader)
        if row.isDeleted { return }
        let new = try row.json(with: change, at: timeStamp, by: device, of: account)
        try database.run(
            "UPDATE weir_parked SET time_stamp = ?4, row = ?5 WHERE \(isThis)",
            names + [.integer(timeStamp), .blob(new)])
    }

    /// Tries the next ones, in one transaction.
    ///
    /// - Returns: whether others follow.
    mutating func next() throws -> Bool {
        var left = try tables ?? waitingTables()
        defer { tables = left }
        guard let name = left.last, let writer = applying.writers[name] else { return false }
        try file.foldLogs()
        if !isAtEnd, tried < Self.mostTried {
            try tryNext(of: name, writer)
            return true
        }
        if try UniqueExchange(applying: applying, writer: writer, table: name).run() { isWritten = true }
        if !isWritten { left.removeLast() }
        (tried, isAtEnd, isWritten) = (0, false, false)
        return !left.isEmpty
    }

    private mutating func tryNext(of table: String, _ writer: RowWriter) throws {
        let last = file.lastTried[table]
        let parked = try database.map(
            """
            SELECT id, sync_id, row, orphan FROM weir_parked WHERE name = ?1 AND (id, sync_id) > (?2, ?3) AND time_stamp > 0
            ORDER BY id, sync_id LIMIT \(applying.slice)
            """, [.text(table), .text(last?.id ?? ""), .text(last?.owner ?? "")]
        ) {
            (
                position: Position(id: $0.string(at: 0), owner: $0.string(at: 1)), row: $0.bytes(at: 2),
                isOrphan: $0.integer(at: 3) == 1
            )
        }
        try file.applying { _ in
            try file.fold()
            let state = try Applying.WriteState(file)
            for (_, json, isOrphan) in parked {
                var reader = JSONReader(json)
                let row = try ServerRow(&reader)
                if isOrphan, try !writer.hasParents(row) { continue }
                if try applying.write(row, state) { isWritten = true }
            }
        }
        tried += parked.count
        // At the end it begins again with the next round.
        isAtEnd = parked.count < applying.slice
        file.lastTried[table] = isAtEnd ? nil : parked.last?.position
    }
}

extension ServerRow {
    /// The row with the values of a change of it, as it is at the server after it.
    fileprivate func json(
        with change: ChangeContent, at timeStamp: Int64, by device: String, of account: String
    ) throws -> [UInt8] {
        var json = JSONWriter()
        try json.object { json in
            json.member("table", table)
            json.member("id", id)
            json.member("syncId", syncID)
            json.member("timeStamp", timeStamp)
            json.member("deleted", false)
            json.name("writer")
            json.object { json in
                json.member("syncId", account)
                json.member("knowledgeId", device)
            }
            json.name("values")
            try json.object { json in
                try json.members(of: values, except: change.columns)
                try json.members(of: change.values[...])
            }
        }
        return json.take()
    }
}

extension JSONWriter {
    fileprivate mutating func members(of object: ArraySlice<UInt8>, except left: Set<String> = []) throws {
        var reader = JSONReader(object)
        try reader.object { reader, name in
            let value = try reader.text()
            if left.contains(name) { return }
            self.name(name)
            raw(Array(value))
        }
    }
}
