/// A change that the server has not stored, kept until the app or the user has decided about it.
///
/// The row has the server's values, and what the app had written is in ``local``. A row that the server does not have stays in the table
/// for the user to correct: its next change is sent as a creation. ``Weir/resolve(_:_:)`` decides about it.
public struct KeptEdit: Equatable, Sendable, Identifiable {
    /// How a change that was kept has ended.
    public enum Ending: String, Sendable {
        /// Its values were written again: ``Resolution/keepLocal``.
        case keptLocal
        /// The server's row stays: ``Resolution/acceptServer``.
        case acceptedServer
        /// Other values were written: ``Resolution/merge(_:)``.
        case merged
        /// A later change of all its columns, or the row's deletion, was stored.
        case sentAgain
        /// The app has removed it, with ``Weir/removeKeptEdits(through:)``.
        case removed
        /// It was stored in a row that was deleted before, and stays so; nobody had to decide. It can be brought back with
        /// ``Weir/resolve(_:_:)``.
        case deletionWon
    }

    /// Values by the names of the app's columns, spelled as the app spells them.
    public typealias Values = [String: SQLValue]

    /// Names it; greater than those of earlier ones.
    public let number: Int64
    /// The app's table.
    public let table: String
    /// The row's key.
    public let key: SQLValue
    /// `conflict`, `revoked`, `deleted`, or the server's code of the refusal.
    public let code: String
    /// The server's, for developers.
    public let message: String
    /// The change as it was sent: JSON with `values`.
    public let change: String
    /// When it was kept, in RFC 3339.
    public let at: String
    /// Whether the app had deleted the row.
    public let isDeletion: Bool
    /// The row's owner, if it is not the account.
    public let owner: String?
    /// The values that the app had written, of the columns that it had changed; none of a deletion.
    public let local: Values
    /// The values that the app had seen before; of a column that is missing it is not known, as of a row that the app had inserted.
    public let base: Values
    /// The row as the server has it, in its newest version that was received, and of a change that has ended, as it was then; `nil` if the
    /// server has none, or a deleted one.
    public let server: Values?
    /// The timeStamp of that version; `nil` if the server has no such row.
    public let version: Int64?
    /// How it has ended; `nil` while nobody has decided.
    public let ending: Ending?
    /// When it has ended, in RFC 3339.
    public let endedAt: String?

    /// The number.
    public var id: Int64 { number }

    /// The columns that the server has changed as well, and to other values.
    public var conflicting: Set<String> {
        guard let server else { return Set(local.keys) }
        return Set(local.filter { server[$0.key] != $0.value && server[$0.key] != base[$0.key] }.keys)
    }
}

/// A decision about a change that was not stored.
///
/// It is about that change: columns that the app has written since, or that a later kept change has, are left as they are, and a row that it has
/// inserted or deleted since as a whole.
public enum Resolution: Equatable, Sendable {
    /// The app's values are written again, over the server's newest version; a row that is deleted is inserted again, a deletion repeated.
    case keepLocal
    /// The server's row stays as it is; a row that the server does not have is removed from the app's table.
    case acceptServer
    /// These values are written, by the names of the app's columns. Where the row has changed since they were decided on, the server
    /// decides by the table's policy, and may find another conflict.
    case merge([String: SQLValue])
}

extension ClientFile {
    /// Reads changes that were kept.
    ///
    /// - Parameter condition: of rows of `weir_aside`, and their order.
    func keptEdits(where condition: String, _ values: [SQLValue] = []) throws -> [KeptEdit] {
        let stored = try database.map(
            """
            SELECT a.number, a.tbl, t.name, a.id, a.code, a.message, a.change, a.at, a.base, a.row, a.resolution, a.resolved_at
            FROM weir_aside AS a JOIN weir_table AS t ON t.number = a.tbl WHERE \(condition)
            """, values, StoredEdit.init)
        if stored.isEmpty { return [] }
        try foldLogs()
        var readers: [Int: KeptEditReader] = [:]
        return try stored.map { edit in
            if readers[edit.table] == nil { readers[edit.table] = try KeptEditReader(edit.table, in: self) }
            return try edit.kept(readers[edit.table])
        }
    }

    /// A writer of a table; `nil` if the table is not synced, or the server's is not known.
    func writer(ofTable number: Int) throws -> RowWriter? {
        let record = SessionRecord(database: database)
        guard let table = tables.first(where: { $0.number == number }), let account = try record.account?.syncID,
            let schema = try record.schema(known: serverSchema), let server = schema.schema.table(for: table.name)
        else { return nil }
        serverSchema = schema
        return try RowWriter(table, server, account: account, in: self)
    }
}

/// A row of `weir_aside`.
private struct StoredEdit {
    let number: Int64
    let table: Int
    let name: String
    let key: SQLValue
    let code: String
    let message: String
    let change: [UInt8]
    let at: String
    let base: [UInt8]?
    let row: [UInt8]?
    let ending: KeptEdit.Ending?
    let endedAt: String?

    init(_ row: Row) {
        number = row.integer(at: 0)
        table = Int(row.integer(at: 1))
        name = row.string(at: 2)
        key = row.value(at: 3)
        code = row.string(at: 4)
        message = row.string(at: 5)
        change = row.bytes(at: 6)
        at = row.string(at: 7)
        base = row.isNull(at: 8) ? nil : row.bytes(at: 8)
        self.row = row.isNull(at: 9) ? nil : row.bytes(at: 9)
        ending = row.isNull(at: 10) ? nil : KeptEdit.Ending(rawValue: row.string(at: 10))
        endedAt = row.isNull(at: 11) ? nil : row.string(at: 11)
    }

    func kept(_ reader: KeptEditReader?) throws -> KeptEdit {
        let content = try ChangeContent(change[...])
        let local = content.isDeletion ? [:] : try reader?.values(content.values, key) ?? [:]
        var base = try self.base.flatMap { try reader?.values($0, key) } ?? [:]
        if !content.isDeletion { base = base.filter { local[$0.key] != nil } }
        let server = try ending == nil ? reader?.serverRow(key, row, content.owner) : reader?.row(row, key)
        return KeptEdit(
            number: number, table: name, key: key, code: code, message: message,
            change: String(decoding: change, as: UTF8.self), at: at, isDeletion: content.isDeletion,
            owner: content.owner, local: local, base: base, server: server?.values, version: server?.version,
            ending: ending, endedAt: endedAt)
    }
}

/// Reads the values of a table's changes that were kept.
struct KeptEditReader {
    let writer: RowWriter

    /// - Returns: `nil` if the table is not synced, or the server's is not known; then values are not shown.
    init?(_ table: Int, in file: ClientFile) throws {
        guard let writer = try file.writer(ofTable: table) else { return nil }
        self.writer = writer
    }

    private var database: Database { writer.database }
    private var table: CapturedTable { writer.table }

    func values(_ json: [UInt8], _ key: SQLValue, isWhole: Bool = false) throws -> KeptEdit.Values {
        if json.isEmpty { return [:] }
        do {
            return Self.byName(try writer.values(of: json, like: key, isWhole: isWhole))
        } catch is JSONReader.Malformed {
            // The server's column has another type since. The change as it was sent shows what it was.
            return [:]
        }
    }

    private static func byName(_ values: [RowWriter.NamedValue]) -> KeptEdit.Values {
        Dictionary(values.map { ($0.column.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    typealias ServerVersion = (version: Int64, values: KeptEdit.Values?)

    /// The server's row as it came.
    func row(_ json: [UInt8]?, _ key: SQLValue) throws -> ServerVersion? {
        guard let json else { return nil }
        var reader = JSONReader(json)
        let row = try ServerRow(&reader)
        return (row.timeStamp, row.isDeleted ? nil : try values(Array(row.values), key, isWhole: true))
    }

    /// The newest version of the server's row that was received, which may not be in the table.
    ///
    /// - Parameters:
    ///   - shown: the row as it came with the outcome.
    ///   - owner: `nil` is the account.
    func serverRow(_ key: SQLValue, _ shown: [UInt8]?, _ owner: String?) throws -> ServerVersion? {
        let state = try database.map("SELECT time_stamp, deleted FROM \(table.state) WHERE id = ?1", [key]) {
            (version: $0.integer(at: 0), isDeleted: $0.integer(at: 1) == 1)
        }.first
        var shown = try row(shown, key)
        let waiting = try ParkedRows.row(key, of: table, owner ?? writer.account, in: database)
        if let waiting, waiting.timeStamp >= shown?.version ?? 0 { shown = try row(Array(waiting.json), key) }
        // The table may not have the version that is recorded.
        guard let state, state.version > shown?.version ?? -1 else { return shown }
        if state.isDeleted { return (state.version, nil) }
        // The row is the server's, but for what the app has changed and not sent, and before that, sent.
        var values = Self.byName(try writer.row(key) ?? [])
        for edit in try writer.pending(key) {
            for (column, value) in edit.before { values[column.name] = value }
        }
        return (state.version, values.filter { writer.server.isKnown($0.key) })
    }
}
