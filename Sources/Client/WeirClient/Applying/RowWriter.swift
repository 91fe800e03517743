/// Writes rows of the server into one table of the app, beneath the edits that are pending.
///
/// A column without a pending edit takes the server's value. Where an edit is pending, the app's value stays, and the edit's value before
/// becomes the server's: it is what the row had without the edit. All of it is part of a transaction whose changes are not captured.
final class RowWriter {
    let database: Database
    let table: CapturedTable
    /// The server's table; its columns' types.
    let server: ServerSchema.Table
    /// The account's own syncId.
    let account: String
    /// The columns that the server has, with their types.
    let columns: [(column: CapturedTable.Column, server: ServerSchema.Table.Column)]
    /// The server's defaults, by the places of the columns that have one.
    let serverDefaults: [(index: Int, value: ValueSpelling.Canonical)]
    /// The columns by the server's names.
    let indexes: [String: Int]
    /// The app's columns that the known schema lacks, folded.
    let lacking: Set<String>
    /// Changes of columns that the server does not have; `nil` if there are none.
    private let held: HeldColumns?
    /// How the app spells new values of the columns.
    let spellings: [ValueSpelling]
    /// How columns have the keys of other rows that they name; `nil` for others.
    let references: [Reference?]
    /// What rows have in columns in which the app permits no NULL where the server has none: the default, by the numbers of the columns.
    let defaults: [Int: SQLValue]
    /// Statements that run for each row: to look their texts up would take as long as to run them.
    let selectState: Statement
    let selectRow: Statement
    let selectEdit: Statement
    let selectSent: Statement
    private let upsertState: Statement
    private let updateState: Statement
    /// The numbers of those who have written rows.
    var writers = Writers()
    /// With every column that the server has.
    private let insertWhole: Statement
    private let updateWhole: Statement
    /// Updates of columns of a row that ``selectRow`` has found, by the bits of their places in `columns`.
    private var updates: [UInt64: Statement] = [:]
    /// Whether a row names a parent that is not there; `nil` for a table without foreign keys.
    let selectOrphan: Statement?
    /// Whether rows of other tables, or of this one, may name its rows.
    private let isParent: Bool
    /// Whether the app has triggers on the table.
    let hasTriggers: Bool
    /// All of the file.
    private let tables: [CapturedTable]

    typealias NamedValue = (column: CapturedTable.Column, value: SQLValue)

    /// Why a row cannot be written now.
    struct Unwritable: Error {
        let reason: String
    }

    init(_ table: CapturedTable, _ server: ServerSchema.Table, account: String, in file: ClientFile) throws {
        let database = file.database
        self.database = database
        self.table = table
        self.server = server
        self.account = account
        tables = file.tables
        let columns = table.columns.compactMap { column -> (CapturedTable.Column, ServerSchema.Table.Column)? in
            guard let found = server.column(for: column.name), found.type != .unknown else { return nil }
            return (column, found)
        }
        let held = HeldColumns(database: database, table: table)
        self.held = try held.isEmpty ? nil : held
        self.columns = columns.map { (column: $0, server: $1) }
        serverDefaults = columns.enumerated().compactMap { index, column in
            column.1.defaultValue.map { (index: index, value: $0) }
        }
        spellings = try columns.map { try Self.spelling(of: $0, type: $1.type, in: table, database) }
        references = try columns.map { try Self.reference(of: $0, $1.type, in: table, file) }
        defaults = try Self.defaults(of: table, in: database)
        indexes = Dictionary(
            columns.enumerated().map { ($1.1.name, $0) }, uniquingKeysWith: { first, _ in first })
        lacking = Set(table.columns.filter { !server.isKnown($0.name) }.map { foldedName($0.name) })
        let names = columns.map { quoted($0.0.name) }
        let selected = ([table.definition.rowidName ?? table.quotedKey] + names).joined(separator: ", ")
        let masks = (0..<table.words).map { ", m\($0)" }.joined()
        // As it was created: the key may have got another type since.
        let isByKey = try database.value(
            "SELECT sql LIKE '%WITHOUT ROWID' FROM sqlite_schema WHERE name = ?1", [.text(table.state)])
        let place = isByKey == .integer(1) ? "id" : "rowid"
        selectState = try database.statement(
            "SELECT \(place), time_stamp, owner, deleted FROM \(table.state) WHERE id = ?1")
        selectRow = try database.statement("SELECT \(selected) FROM \(table.quotedName) WHERE \(Self.isKey(table))")
        selectEdit = try database.statement("SELECT v0, 0, was_sent\(masks) FROM \(table.edit) WHERE id = ?1")
        selectSent = try database.statement("SELECT v0, deleted, was_sent\(masks) FROM \(table.sent) WHERE id = ?1")
        upsertState = try database.statement(
            """
            INSERT INTO \(table.state) (id, time_stamp, deleted, owner, writer) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id)
            DO UPDATE SET time_stamp = excluded.time_stamp, deleted = excluded.deleted, owner = excluded.owner,
            writer = excluded.writer
            """)
        updateState = try database.statement(
            "UPDATE \(table.state) SET time_stamp = ?2, deleted = ?3, writer = ?4 WHERE \(place) = ?1")
        insertWhole = try database.statement(Self.insertion(into: table, names))
        updateWhole = try database.statement(Self.update(of: table, names))
        selectOrphan = try table.isOrphan.map {
            try database.statement("SELECT 1 FROM \(table.quotedName) AS t WHERE t.\(table.quotedKey) = ?1 AND (\($0))")
        }
        isParent = file.isParent(table)
        hasTriggers = try Self.hasTriggers(table, in: database)
    }

    /// As in the first rows of the table that have a value, or else as its declaration suggests.
    private static func spelling(
        of column: CapturedTable.Column, type: ColumnType, in table: CapturedTable, _ database: Database
    ) throws -> ValueSpelling {
        let name = quoted(column.name)
        // Not all rows are looked at, since none may have one.
        let examples = try database.map(
            "SELECT \(name) FROM (SELECT \(name) FROM \(table.quotedName) LIMIT 100) WHERE \(name) IS NOT NULL LIMIT 10"
        ) { $0.value(at: 0) }
        return examples.lazy.compactMap { ValueSpelling(of: $0, type: type) }.first
            ?? ValueSpelling(affinity: column.definition.affinity, type: type)
    }

    /// Whether a row has this key, and not one that is equal in its collation alone.
    static func isKey(_ table: CapturedTable) -> String {
        "\(table.quotedKey) = ?1 AND \(table.quotedKey) = ?1 COLLATE BINARY"
    }

    /// - Parameter names: the columns that follow the key, quoted.
    private static func insertion(into table: CapturedTable, _ names: [String]) -> String {
        let places = (1...(names.count + 1)).map { "?\($0)" }
        return """
            INSERT\(table.definition.conflictClause) INTO \(table.quotedName)
            (\(([table.quotedKey] + names).joined(separator: ", "))) VALUES (\(places.joined(separator: ", ")))
            """
    }

    /// - Parameters:
    ///   - names: the columns, quoted; their values follow the key, or the rowid.
    ///   - rowid: the name of the rowid by which the row is found; `nil` for the key.
    private static func update(of table: CapturedTable, _ names: [String], by rowid: String? = nil) -> String {
        // A table without columns has nothing to update.
        let set = names.isEmpty ? ["\(table.quotedKey) = ?1"] : names.enumerated().map { "\($1) = ?\($0 + 2)" }
        return """
            UPDATE\(table.definition.conflictClause) \(table.quotedName) SET \(set.joined(separator: ", "))
            WHERE \(rowid.map { "\($0) = ?1" } ?? isKey(table))
            """
    }

    /// Writes a row, unless the file has it in a later version.
    ///
    /// - Parameters:
    ///   - receiver: `nil` if the table has no edits, which are not looked for then.
    ///   - removed: what the row had before it was removed to free its unique values.
    /// - Throws: `Unwritable`; then nothing was changed.
    func write(_ row: ServerRow, to receiver: Receiver?, removed: RemovedRow? = nil) throws {
        guard let key = table.definition.keyKind.key(ofID: row.id) else {
            throw Unwritable(reason: "its id is no key of the table")
        }
        var known = try self.known(key, hasEdits: receiver != nil)
        let owner = row.syncID == account ? nil : row.syncID
        // Also where its version was forgotten: whose row it is is not decided by who comes first.
        if known.place != nil, known.owner != owner {
            // Nothing is to be deleted: the table does not have that owner's row.
            if row.isDeleted { return }
            // The key of one that is deleted may have been given again.
            guard known.isDeleted, !known.isEdited else {
                throw Unwritable(reason: "another owner has a row of this id")
            }
            known = Known()
        }
        if let receiver, known.place == nil && known.isEdited, try isNew(key, known, notOf: owner, receiver.owners) {
            if row.isDeleted { return }
            throw Unwritable(reason: "another owner has a row of this id")
        }
        // A result tells the version and not what else the row had: the row itself may follow at the same timeStamp.
        if let timeStamp = known.timeStamp, timeStamp > row.timeStamp { return }
        // Before they become this version's.
        let seen = try receiver == nil ? nil : seenValues(of: key, known, beneath: row)
        if row.isDeleted {
            // An edit is kept until its own outcome. One that has changed nothing, as of a statement that ignored the row, is none.
            if known.edit?.masks.isEmpty ?? true, known.sent == nil {
                try delete(key)
                if known.edit != nil { try database.run("DELETE FROM \(table.edit) WHERE id = ?1", [key]) }
            }
        } else {
            do {
                let isOver = try known.isOver(receiver) && !table.has(key, in: database)
                if isOver { (known.edit, known.sent) = (nil, nil) }
                if try !insertNew(row, key, known, removed) {
                    let present = try compare(row, key)
                    let values = try present?.values ?? rowValues(row.values, like: removed.map(SpelledRow.removed))
                    try write(values, key, known, present, removed)
                }
                if isOver { try endEdits(of: key) }
                try recordIfOrphan(key)
            } catch let error as JSONReader.Malformed {
                throw Unwritable(reason: "its values are not those of the schema: \(error.expected) is expected")
            }
        }
        if let receiver { try keepBase(of: key, known, beneath: row, receiver, seen) }
        if let place = known.place {
            try updateState.run(
                [place, .integer(row.timeStamp), .integer(row.isDeleted ? 1 : 0), try writer(of: row)])
        } else {
            try record(key, row.timeStamp, isDeleted: row.isDeleted, owner: owner, writer: try writer(of: row))
        }
    }

    /// Records the version of a row that the file has.
    ///
    /// - Parameter writer: the number of who has written it.
    func record(_ key: SQLValue, _ timeStamp: Int64, isDeleted: Bool, owner: String?, writer: SQLValue) throws {
        try upsertState.run(
            [key, .integer(timeStamp), .integer(isDeleted ? 1 : 0), owner.map { .text($0) } ?? .null, writer])
    }

    /// Whether a row that the app has inserted, and that the server is not known to have, is not this owner's.
    private func isNew(
        _ key: SQLValue, _ known: Known, notOf owner: String?, _ owners: RowOwners
    ) throws -> Bool {
        let said = try owners.said(key, table)
        if known.sent != nil { return said != owner }
        // It may have been sent when it had another parent.
        if known.edit?.wasSent == true, said == owner { return false }
        return try (said ?? owners.inherited(key, of: table, among: tables)) != owner
    }

    func delete(_ key: SQLValue) throws {
        try deleteRow(key)
        if isParent { try OrphanRows.recordRemoval(of: key, from: table, in: database) }
        try held?.remove(key)
    }

    // MARK: Writing

    /// Writes a row that the file does not know, as most of a first sync, without looking for it in the table.
    ///
    /// - Returns: whether it was written; the app may have a row of this key, too.
    private func insertNew(_ row: ServerRow, _ key: SQLValue, _ known: Known, _ removed: RemovedRow?) throws -> Bool {
        guard known.timeStamp == nil, !known.isEdited, removed == nil else { return false }
        do {
            try insert(key, named(whole(try rowValues(row.values, like: nil))))
            return true
        } catch is Unwritable {
            return false
        }
    }

    /// A row that is in the table, and what the server has of it.
    private struct Present {
        /// The rowid or the key, by which it is found again.
        let place: SQLValue
        /// The server's values, spelled as the row's.
        let values: [SQLValue?]
        /// The places of the columns in which the row differs from them.
        ///
        /// Indexes on the others, and triggers of the app that name them, have nothing to do.
        let changed: [Int]
    }

    /// - Returns: `nil` if the row is not in the table.
    private func compare(_ row: ServerRow, _ key: SQLValue) throws -> Present? {
        var found: Present?
        try selectRow.rows([key]) { present in
            let values = try rowValues(row.values, like: .present(present))
            let whole = whole(values)
            let changed = whole.indices.filter { index in
                whole[index].map { !present.has($0, at: 1 + index) } ?? false
            }
            found = Present(place: present.value(at: 0), values: values, changed: changed)
        }
        return found
    }

    /// The statement that updates columns of a row that was found, by their places.
    private func update(ofColumns places: [Int]) throws -> Statement {
        let bits = columns.count > UInt64.bitWidth ? 0 : places.reduce(UInt64(0)) { $0 | 1 << UInt64($1) }
        if let known = updates[bits] { return known }
        let names = places.map { quoted(columns[$0].column.name) }
        let statement = try database.statement(Self.update(of: table, names, by: table.definition.rowidName))
        if bits != 0, updates.count < Self.mostUpdates { updates[bits] = statement }
        return statement
    }

    private static let mostUpdates = 64

    /// - Parameters:
    ///   - values: the server's.
    ///   - present: `nil` if the row is not in the table.
    private func write(
        _ values: [SQLValue?], _ key: SQLValue, _ known: Known, _ present: Present?, _ removed: RemovedRow?
    ) throws {
        let whole = whole(values)
        if let present {
            let places = present.changed.filter { !known.isPending(columns[$0].column) }
            if !places.isEmpty {
                try run(try update(ofColumns: places), key, named(whole, at: places), at: present.place)
            }
        } else if !known.isEdited {
            let given = named(whole)
            // What the server does not say stays as it was.
            let others = removed?.values.filter { other in !given.contains { $0.column.number == other.column.number } }
            try insert(key, given + (others ?? []))
        }
        for (side, edit) in [(table.edit, known.edit), (table.sent, known.sent)] {
            guard let edit else { continue }
            // A default is not sent with an insertion; a change, such as a backfill, is sent where the server has no value.
            let before = edit.masks.isWhole ? whole : zip(values, whole).map { $1 == nil ? nil : $0 ?? SQLValue.null }
            // A deletion has all values before, be it one that was ignored. An edit that follows the batch has those that are being sent.
            for (column, value) in named(before)
            where (present == nil || edit.hasDeletion || edit.masks.contains(column))
                && (side == table.sent || known.sent?.masks.contains(column) != true)
            {
                try setBefore(column, value, of: key, in: side)
            }
        }
    }

    /// The values that there are, with their columns.
    ///
    /// - Parameter places: of the columns; `nil` for all.
    func named(_ values: [SQLValue?], at places: [Int]? = nil) -> [NamedValue] {
        (places ?? Array(values.indices)).compactMap { index in values[index].map { (columns[index].column, $0) } }
    }

    /// Gives a row the values that the server has in place of an edit that is over.
    ///
    /// - Parameters:
    ///   - image: the edit's values before, which are the server's.
    ///   - isDeletion: whether the edit was the row's deletion, so that the row is inserted again.
    /// - Throws: `Unwritable`; then nothing was changed.
    func restore(_ key: SQLValue, _ image: [NamedValue], isDeletion: Bool) throws {
        let edit = try edit(selectEdit, key)?.masks
        let isPresent = try table.has(key, in: database)
        if !isPresent, edit == nil {
            if isDeletion { try insert(key, permitted(image)) }
            return
        }
        if isPresent { try update(key, permitted(image.filter { edit?.contains($0.column) != true })) }
        // A deletion that the app has made since has all values before.
        for (column, value) in image where !isPresent || edit?.contains(column) == true {
            try setBefore(column, value, of: key, in: table.edit)
        }
    }

    func insert(_ key: SQLValue, _ values: [NamedValue]) throws {
        let statement =
            isWhole(values)
            ? insertWhole
            : try database.statement(Self.insertion(into: table, values.map { quoted($0.column.name) }))
        try run(statement, key, values)
    }

    func update(_ key: SQLValue, _ values: [NamedValue]) throws {
        if values.isEmpty { return }
        let statement =
            isWhole(values)
            ? updateWhole : try database.statement(Self.update(of: table, values.map { quoted($0.column.name) }))
        try run(statement, key, values)
    }

    /// Whether these are all columns, in their order, as the server sends rows.
    private func isWhole(_ values: [NamedValue]) -> Bool {
        values.count == columns.count && zip(values, columns).allSatisfy { $0.column.number == $1.column.number }
    }

    /// Makes a value the one that an edit's column had before.
    private func setBefore(
        _ column: CapturedTable.Column, _ value: SQLValue, of key: SQLValue, in side: String
    ) throws {
        let word = "v\(column.word)"
        try database.run(
            """
            UPDATE \(side) SET \(column.side) = ?2,
            \(word) = CASE v0 WHEN -1 THEN \(word) ELSE \(word) | \(column.bit) END WHERE id = ?1
            """, [key, value])
    }
}

/// A row that was removed from its table for a moment, so that others can take its unique values.
struct RemovedRow {
    let values: [RowWriter.NamedValue]
}

extension RowWriter {
    /// Removes a row that is about to be written again.
    ///
    /// - Returns: `nil`, with nothing removed, for a row that is not in the table, has an edit, or has a later version there.
    func remove(_ row: ServerRow) throws -> RemovedRow? {
        guard !row.isDeleted, let key = table.definition.keyKind.key(ofID: row.id) else { return nil }
        let timeStamp = try database.integer("SELECT time_stamp FROM \(table.state) WHERE id = ?1", [key])
        if let timeStamp, timeStamp > row.timeStamp { return nil }
        guard try !table.hasEdit(key, in: database), let values = try self.row(key) else { return nil }
        try deleteRow(key)
        return RemovedRow(values: values)
    }
}
