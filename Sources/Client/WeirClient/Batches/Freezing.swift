/// Freezes pending edits as the next batch.
///
/// The operation and the values of each row are derived at this moment. The batch is kept in the file as the bytes to be
/// sent, and its edits move to a table of their own: what the app changes from then on is an edit that follows the batch.
package struct Freezing {
    let database: Database
    /// Parents first.
    let tables: [CapturedTable]
    let schema: ServerSchema
    let limits: BatchLimits
    private let owners: RowOwners

    var result: FrozenBatch
    var body: BatchBody
    private var isFull = false
    /// Whether the app waits for an outcome.
    private let hasTracked: Bool
    /// The statement that reads an edit, by the number of its table.
    private let queries: [Int: String]

    /// How many changes a batch gets, unless keys that belong together need more: it is frozen in one transaction, and its outcome applied in one,
    /// and the app's writes wait for these.
    static let mostChanges = 500

    private init(_ file: ClientFile, _ session: BatchSession) throws {
        database = file.database
        tables = TableOrder.parentsFirst(file.tables)
        queries = Dictionary(
            tables.map { ($0.number, PendingRow.query($0)) }, uniquingKeysWith: { first, _ in first })
        schema = session.schema
        limits = session.limits
        owners = try RowOwners(database: file.database)
        let number = (try database.integer("SELECT value FROM weir_meta WHERE key = 'last_batch'") ?? 0) + 1
        body = BatchBody(knowledgeID: session.knowledgeID, schema: session.schema, number: number)
        result = FrozenBatch()
        hasTracked = try TrackedOutcomes(database: database).areOpen
    }

    /// Returns the batch that has no outcome yet, or freezes the next one, as part of the open transaction.
    static func freeze(_ file: ClientFile, _ session: BatchSession) throws -> FrozenBatch {
        if let pending = try pending(in: file.database) { return FrozenBatch(repeating: pending) }
        try file.fold()
        var freezing = try Freezing(file, session)
        try freezing.freeze()
        return freezing.result
    }

    /// The batch that has no outcome yet.
    static func pending(in database: Database) throws -> Batch? {
        try database.map("SELECT number, changes, body FROM weir_batch") { row in
            Batch(number: row.integer(at: 0), changes: Int(row.integer(at: 1)), body: row.bytes(at: 2))
        }.first
    }

    private mutating func freeze() throws {
        repeat {
            // What could not be sent is counted with the last time.
            result = FrozenBatch()
            try holdRowsWithoutKey()
            try addRows(.written)
            // Other devices park a row whose parent has not come, but a parent that is gone takes its children with it. So rows
            // under new keys follow the rows that name them, and deletions come last.
        } while try body.changes == 0 && addGroups()
        if try body.changes == 0 || !body.isAtomic && !KeyChanges.exist(in: database) { try addRows(.deleted) }
        try nameUnknownColumns()
        guard body.changes > 0 else { return }
        let batch = body.finish()
        try database.run(
            "INSERT INTO weir_batch (number, changes, body) VALUES (?1, ?2, ?3)",
            [.integer(batch.number), .integer(Int64(batch.changes)), .blob(batch.body)])
        try database.run("UPDATE weir_meta SET value = ?1 WHERE key = 'last_batch'", [.integer(batch.number)])
        result.batch = batch
    }

    // MARK: Rows

    private mutating func addRows(_ kind: PendingKeys.Kind) throws {
        for table in kind == .written ? tables : tables.reversed() where !isFull {
            guard let server = schema.table(for: table.name) else {
                if try database.value("SELECT 1 FROM \(table.edit) LIMIT 1") != nil {
                    result.unknownTables.insert(table.name)
                }
                continue
            }
            _ = try PendingKeys(table: table, kind: kind).forEach(in: database) { key in
                switch try encode(key, of: table, as: server) {
                case .held: break
                case .nothing(let unknown):
                    try end(key, of: table, holding: unknown)
                    try RowOwners.forget(key, ofTable: table.number, in: database)
                case .change(let row):
                    if body.bytes(of: [row.json]) > limits.bytes {
                        hold(key, of: table, "its change has \(row.json.count) bytes, more than a batch may have")
                    } else if body.changes > 0, body.bytes(adding: row.json) > limits.divisibleBytes {
                        isFull = true
                    } else {
                        // Before rows of this table that name it: they have its owner.
                        try move(row, to: body.changes)
                        body.append(row.json)
                        isFull = body.changes >= min(limits.changes, Self.mostChanges)
                    }
                }
                return !isFull
            }
        }
    }

    /// Moves an edit into the batch.
    mutating func move(_ row: EncodedRow, to position: Int) throws {
        let table = row.table
        try database.run(
            """
            INSERT INTO \(table.sent) (position, deleted, id, \(table.folded))
            SELECT ?2, ?3, id, \(table.folded) FROM \(table.edit) WHERE id = ?1
            """, [row.key, .integer(Int64(position)), .integer(row.isDeletion ? 1 : 0)])
        if hasTracked { try TrackedOutcomes(database: database).send(table.number, row.key) }
        try end(row.key, of: table, holding: row.unknown)
        if row.isReused { try database.run("DELETE FROM \(table.state) WHERE id = ?1", [row.key]) }
        if let owner = row.newOwner { try owners.record(owner, of: row.key, table) }
        if row.isDeletion { try HeldColumns(database: database, table: table).remove(row.key) }
    }

    /// Removes an edit of which everything is sent, or nothing is to be, but for columns that the server does not have.
    private func end(_ key: SQLValue, of table: CapturedTable, holding unknown: [CapturedTable.Column]) throws {
        try HeldColumns(database: database, table: table).hold(unknown, of: key)
        try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key])
    }

    /// The change of a row.
    struct EncodedRow {
        let table: CapturedTable
        let key: SQLValue
        let json: [UInt8]
        let isDeletion: Bool
        /// Columns that were changed and that the server does not have.
        let unknown: [CapturedTable.Column]
        /// The owner that a creation has by its parents, or with the deleted row under its key.
        let newOwner: String?
        /// Whether its key was that of another owner's row, which is deleted.
        let isReused: Bool
    }

    /// What is to be sent of an edit.
    enum Encoded {
        case change(EncodedRow)
        /// The row is as the server has it, but for columns that the server does not have; or it was never there.
        case nothing(unknown: [CapturedTable.Column])
        case held
    }

    /// - Parameter isInGroup: whether the row belongs to one whose key was changed: then no condition is to take all of them back.
    mutating func encode(
        _ key: SQLValue, of table: CapturedTable, as server: ServerSchema.Table, isInGroup: Bool = false
    ) throws -> Encoded {
        guard let query = queries[table.number],
            var row = try PendingRow(key, of: table, as: server, query: query, in: database)
        else { return .nothing(unknown: []) }
        guard var change = row.change else { return .nothing(unknown: row.unknown) }
        if isInGroup, case .create(let base, isConditional: true) = change { change = .create(base: base) }
        let isReused = try owners.isReused(row, of: table, among: tables)
        if isReused { (change, row.owner) = (.create(base: 0), try owners.said(key, table)) }
        var newOwner: String?
        if case .create(base: 0, _) = change, row.owner == nil {
            newOwner = try owners.inherited(key, of: table, among: tables)
            row.owner = newOwner
        } else if row.isOverTombstone, !isReused, table.definition.keyKind == .integer {
            // New rows that name it are of that owner, too, and a deleted integer says nothing of it.
            newOwner = row.owner
        }
        do {
            let json = try row.json(change, of: table, as: server)
            return .change(
                EncodedRow(
                    table: table, key: key, json: json, isDeletion: change.isDeletion, unknown: row.unknown,
                    newOwner: newOwner, isReused: isReused))
        } catch let error as WireValue.Unsendable {
            hold(key, of: table, error.reason)
            return .held
        }
    }

    // MARK: Held edits

    mutating func hold(_ key: SQLValue, of table: CapturedTable, _ reason: String) {
        result.heldCount += 1
        guard result.held.count < FrozenBatch.mostHeld else { return }
        result.held.append(HeldEdit(table: table.name, key: "\(key)", reason: reason))
    }

    /// Also those that were found before.
    private mutating func nameUnknownColumns() throws {
        if try HeldColumns.areEmpty(in: database) { return }
        for table in tables {
            guard let server = schema.table(for: table.name) else { continue }
            let names = try HeldColumns(database: database, table: table).names(unknownTo: server)
            if !names.isEmpty { result.unknownColumns[table.name] = names }
        }
    }

    /// SQLite permits NULL in primary keys that are not declared NOT NULL, in any number of rows.
    private mutating func holdRowsWithoutKey() throws {
        for table in tables {
            let count = try database.integer(
                "SELECT count(*) FROM \(table.quotedName) WHERE \(table.quotedKey) IS NULL")
            for _ in 0..<(count ?? 0) { hold(.null, of: table, "its key is NULL; give the row a key") }
        }
    }
}
