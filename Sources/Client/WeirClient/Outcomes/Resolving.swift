/// Carries out a decision about a change that was kept, as part of a transaction whose changes are captured: what it writes is as if the
/// app had written it.
///
/// What the app has written since is not replaced: a decision is about the change that was kept.
struct Resolving {
    let writer: RowWriter
    let edit: KeptEdit
    /// Later changes of the row that wait for a decision, too.
    let later: [KeptEdit]

    private var table: CapturedTable { writer.table }
    private var database: Database { writer.database }
    private var key: SQLValue { edit.key }

    /// The version on which an edit is based that is not of the newest one that the table has.
    struct Base {
        let version: Int64
        /// The row's values, as JSON of the contract.
        let seen: [UInt8]
    }

    /// The logs must have been folded before.
    ///
    /// - Returns: for ``keep(_:)``, which is to be called before the transaction's end.
    func run(_ resolution: Resolution) throws -> Base? {
        let waiting = try resolution == .acceptServer ? nil : waiting()
        // An edit that is pending is of the version that the table has.
        let isPending = try database.value("SELECT 1 FROM \(table.edit) WHERE id = ?1", [key]) != nil
        switch resolution {
        case .acceptServer: try removeIfUnknown()
        case .keepLocal:
            let since = try changedSince()
            try checkOwner(since, waiting)
            if !edit.isDeletion {
                try write(edit.local, since: since, waiting)
            } else if since == .none {
                try delete(waiting)
            }
            return isPending ? nil : waiting.map { Base(version: $0.timeStamp, seen: Array($0.values)) }
        case .merge(let values):
            let since = try changedSince()
            try checkOwner(since, waiting)
            let (version, known) = (edit.version ?? 0, try current()?.timeStamp ?? 0)
            let all = edit.local.merging(values) { $1 }
            guard try write(all, updating: values, since: since, waiting) else { return nil }
            // What it was decided on may be older than what the file has now, or waits.
            if version < known || waiting != nil && version > known && !isPending { return shown }
        }
        return nil
    }

    /// The version that was shown with the change.
    private var shown: Base {
        let values = table.columns.compactMap { column in
            edit.server?[column.name].map { (column: column, value: $0) }
        }
        return Base(version: edit.version ?? 0, seen: writer.json(of: values))
    }

    /// The newest version, if the table cannot have it at the moment.
    private func waiting() throws -> ServerRow? {
        let row = try ParkedRows.row(key, of: table, edit.owner ?? writer.account, in: database)
        guard let row, let current = try current() else { return row }
        return current.owner == edit.owner && current.timeStamp <= row.timeStamp ? row : nil
    }

    /// What the app has changed in the row since.
    private enum Since: Equatable {
        /// The columns' names.
        case columns(Set<String>)
        /// It has inserted the row, or deleted it.
        case row

        static let none = columns([])
    }

    private func changedSince() throws -> Since {
        var names = Set(later.flatMap(\.local.keys))
        if later.contains(where: \.isDeletion) { return .row }
        let row = try writer.row(key)
        for pending in try writer.pending(key) {
            guard let row, !pending.masks.isWhole else { return .row }
            for (column, value) in row where pending.masks.contains(column) {
                // A statement may have left the value as it was.
                let before = pending.before.first { $0.column.number == column.number }
                if before?.value != value { names.insert(column.name) }
            }
        }
        return .columns(names)
    }

    /// A row of another owner can be written where it is the owner's, also where it waits, or where the server has refused to create it as
    /// the owner's.
    private func checkOwner(_ since: Since, _ waiting: ServerRow?) throws {
        guard let owner = edit.owner else { return }
        if try current()?.owner == owner { return }
        let isGranted = try SessionRecord(database: database).writableOwners.contains(owner)
        let isKnown = try waiting != nil || ChangeContent(Array(edit.change.utf8)[...]).isCreation
        guard try isGranted && isKnown && current() == nil else { throw WeirError.notGranted(owner: owner) }
        // Otherwise the app has inserted another row since.
        if since != .row { try RowOwners(database: database).record(owner, of: key, table) }
    }

    private func current() throws -> KnownVersion? { try KnownVersion(key, of: table, in: database) }

    // MARK: Writing

    /// Deletes the row, also one that the server alone has.
    private func delete(_ waiting: ServerRow?) throws {
        let isThere = try writer.row(key) != nil
        try run("DELETE FROM \(table.quotedName) WHERE \(RowWriter.isKey(table))", [key])
        if !isThere, let waiting { try writer.recordDeletion(of: waiting, key) }
    }

    /// Writes values into the row, which is inserted if it is not there.
    ///
    /// - Parameters:
    ///   - values: those of a row that is inserted; others are the server's, or what the app had then.
    ///   - updating: those that a row gets which is there, if they are not the same.
    ///   - since: what is not written.
    ///   - waiting: the server's version that the table cannot have.
    /// - Returns: whether anything was.
    @discardableResult
    private func write(
        _ values: KeptEdit.Values, updating: KeptEdit.Values? = nil, since: Since, _ waiting: ServerRow?
    ) throws -> Bool {
        guard case .columns(let newer) = since else { return false }
        let clause = table.definition.conflictClause
        if try writer.row(key) != nil {
            let update = (updating ?? values).filter { !newer.contains($0.key) }.sorted { $0.key < $1.key }
            if !update.isEmpty {
                if let waiting { try record(update.map(\.key), changedFrom: waiting) }
                let set = update.enumerated().map { "\(quoted($1.key)) = ?\($0 + 2)" }.joined(separator: ", ")
                try run(
                    "UPDATE\(clause) \(table.quotedName) SET \(set) WHERE \(RowWriter.isKey(table))",
                    [key] + update.map(\.value))
            }
            return try sendIfUnknown() || !update.isEmpty
        }
        let whole =
            try database.map("SELECT whole FROM weir_aside WHERE number = ?1", [.integer(edit.number)]) {
                $0.isNull(at: 0) ? nil : $0.bytes(at: 0)
            }.first ?? nil
        var all = edit.isDeletion ? edit.base : edit.server ?? [:]
        if let whole {
            for (column, value) in try writer.values(of: whole, like: key) { all[column.name] = value }
        }
        let insert = all.merging(values) { $1 }.sorted { $0.key < $1.key }
        let names = ([table.quotedKey] + insert.map { quoted($0.key) }).joined(separator: ", ")
        let places = (1...(insert.count + 1)).map { "?\($0)" }.joined(separator: ", ")
        try run("INSERT\(clause) INTO \(table.quotedName) (\(names)) VALUES (\(places))", [key] + insert.map(\.value))
        // It is the deleted one, and not another row under an integer that SQLite gives again.
        if let owner = edit.owner, try current()?.isDeleted == true {
            try RowOwners(database: database).record(owner, of: key, table)
        }
        return true
    }

    /// Runs a statement that the app's table may refuse.
    private func run(_ sql: String, _ values: [SQLValue]) throws {
        try database.statement(sql).runOrTaken(values)
    }

    /// A row that the server has refused to create may have the values that are to be sent, so nothing was captured.
    private func sendIfUnknown() throws -> Bool {
        guard try current() == nil else { return false }
        try database.run(
            "INSERT INTO \(table.log) (id, kind, at) VALUES (?1, \(LogKind.insert.rawValue), julianday('now'))", [key])
        return true
    }

    /// Records that columns are changed from the values of a version that waits: the table may have the new ones, of the version before.
    private func record(_ names: [String], changedFrom waiting: ServerRow) throws {
        let before = try writer.values(of: Array(waiting.values), like: key, isWhole: true)
            .filter { names.contains($0.column.name) }
        let masks = (0..<table.words).map { word in
            before.filter { $0.column.word == word }.reduce(Int64(0)) { $0 | $1.column.bit }
        }
        let columns = ["id", "kind", "at"] + masks.indices.map { "m\($0)" } + before.map(\.column.side)
        let places = (2..<(columns.count - 1)).map { ", ?\($0)" }.joined()
        try database.run(
            """
            INSERT INTO \(table.log) (\(columns.joined(separator: ", ")))
            VALUES (?1, \(LogKind.update.rawValue), julianday('now')\(places))
            """, [key] + masks.map { .integer($0) } + before.map(\.value))
    }

    /// The edit is based on the version that was decided on, and not on one that nobody has looked at, or that the table has of before.
    func keep(_ base: Base) throws {
        try LogFolding(table: table).fold(in: database)
        try database.run(
            "UPDATE \(table.edit) SET base = ?2, seen = ?3 WHERE id = ?1 AND base IS NULL",
            [key, .integer(base.version), .blob(base.seen)])
    }

    /// Removes a row that the server does not have, unless the app has changed it since.
    private func removeIfUnknown() throws {
        guard try current() == nil, try !table.hasEdit(key, in: database), try !isForgotten() else { return }
        try database.run("INSERT INTO weir_applying (active) VALUES (1)")
        do { try writer.delete(key) } catch let error as RowWriter.Unwritable {
            throw WeirError.taken(reason: error.reason)
        }
        try database.run("DELETE FROM weir_applying")
        try RowOwners.forget(key, ofTable: table.number, in: database)
    }

    /// Whether the server has had the row, and it is not known if it still does: its history is another one, of which not everything was
    /// pulled.
    private func isForgotten() throws -> Bool {
        guard edit.version != nil, try waiting() == nil else { return false }
        return try SessionRecord(database: database).mustDrain
    }
}

extension Weir {
    /// Decides about a change that was not stored, in one transaction.
    ///
    /// What is written is captured as a change of the app, and its outcome is tracked as with ``write(foreignKeys:_:)``. If the server does not store
    /// it either, that is another kept change.
    ///
    /// - Parameters:
    ///   - edit: the change, as it was shown; one of the log that has ended with ``KeptEdit/Ending/deletionWon`` as well.
    ///   - resolution: the decision.
    /// - Returns: whether the change was still kept to be decided about, and the rows that were written; if not, nothing was changed.
    /// - Throws: `WeirError.taken` if a constraint or a trigger of the app's table refuses it; `WeirError.notGranted` if the row's owner is no
    ///   longer granted; `WeirError.unsupportedTable` if the table is not synced any more. Then nothing is changed.
    @discardableResult
    public func resolve(_ edit: KeptEdit, _ resolution: Resolution) async throws -> SavedChanges<Bool> {
        let file = try openFile
        let limit = attachment?.options.conflictLog ?? ConflictLogLimit()
        let number: SQLValue = .integer(edit.number)
        // A row that is removed since the server does not have it must not take others with it.
        var based: (Resolving, on: Resolving.Base)?
        let saved = try captured(in: file, foreignKeys: resolution != .acceptServer) { database in
            let kept = KeptEdits(database: database)
            let table = try database.integer(
                "SELECT tbl FROM weir_aside WHERE number = ?1 AND (resolution IS NULL OR resolution = ?2)",
                [number, .text(KeptEdit.Ending.deletionWon.rawValue)])
            guard let table else { return false }
            if let writer = try file.writer(ofTable: Int(table)) {
                let later = try file.keptEdits(
                    where: "a.tbl = ?1 AND a.id IS ?2 AND a.number > ?3 AND a.resolution IS NULL",
                    [.integer(table), edit.key, number])
                let resolving = Resolving(writer: writer, edit: edit, later: later)
                based = try resolving.run(resolution).map { (resolving, $0) }
            } else if resolution != .acceptServer {
                throw WeirError.unsupportedTable(
                    name: edit.table, reason: "its changes cannot be sent at the moment; list it again, and sync")
            }
            try kept.end(edit.number, KeptEdit.Ending(resolution))
            try kept.prune(limit)
            return true
        } then: {
            if let (resolving, base) = based { try resolving.keep(base) }
        }
        try showKept()
        await wrote()
        return saved
    }
}

extension KeptEdit.Ending {
    fileprivate init(_ resolution: Resolution) {
        self =
            switch resolution {
            case .keepLocal: .keptLocal
            case .acceptServer: .acceptedServer
            case .merge: .merged
            }
    }
}
