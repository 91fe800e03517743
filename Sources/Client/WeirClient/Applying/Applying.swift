/// Applies an answer to the app's file: what became of the batch, the rows, and the vector.
package struct Applying {
    let file: ClientFile
    let schema: ServerSchema
    /// The account's own syncId.
    let account: String
    let writers: [String: RowWriter]

    /// How many rows are written in one transaction: some milliseconds, which a write of the app may have to wait.
    package static let slice = 250
    let slice: Int
    /// A transaction ends with the row that reaches so many bytes of JSON, also where rows are large.
    static let sliceBytes = 256 << 10
    let orphans: OrphanPolicy
    /// The app's name for the file as another device.
    let knowledgeID: String?

    package init(
        _ file: ClientFile, _ schema: ServerSchema, account: String, slice: Int = Applying.slice,
        orphans: OrphanPolicy = .park, knowledgeID: String? = nil
    ) throws {
        self.file = file
        self.schema = schema
        self.account = account
        self.slice = slice
        self.orphans = orphans
        self.knowledgeID = knowledgeID
        var writers: [String: RowWriter] = [:]
        for table in file.tables {
            guard let server = schema.table(for: table.name) else { continue }
            writers[server.name] = try RowWriter(table, server, account: account, in: file)
        }
        self.writers = writers
    }

    var database: Database { file.database }

    // MARK: Rows

    /// Writes rows, and keeps those that cannot be written now, as part of the open transaction.
    func write(_ rows: some Sequence<ServerRow>) throws {
        let state = try WriteState(file)
        for row in rows { try write(row, state) }
    }

    /// What rows need not be asked for one by one.
    struct WriteState {
        /// The numbers of tables with edits.
        var edited: Set<Int> = []
        let hasParked: Bool
        let receiver: RowWriter.Receiver

        init(_ file: ClientFile) throws {
            for table in file.tables {
                let edits = "SELECT 1 FROM \(table.edit) UNION ALL SELECT 1 FROM \(table.sent) LIMIT 1"
                if try file.database.value(edits) != nil { edited.insert(table.number) }
            }
            hasParked = try ParkedRows.wait(in: file.database)
            let record = SessionRecord(database: file.database)
            receiver = try RowWriter.Receiver(
                device: record.device, isDraining: record.mustDrain, owners: RowOwners(database: file.database))
        }
    }

    /// - Returns: whether it was written, or was there already.
    @discardableResult
    func write(_ row: ServerRow, _ state: WriteState) throws -> Bool {
        do {
            guard let writer = writers[row.table] else {
                throw RowWriter.Unwritable(reason: "the app does not sync such a table")
            }
            try write(row, by: writer, to: state.edited.contains(writer.table.number) ? state.receiver : nil)
            if state.hasParked { try ParkedRows.remove(row, in: database) }
            return true
        } catch let error as RowWriter.Unwritable {
            try ParkedRows.park(row, error.reason, of: writers[row.table]?.table, in: database)
            return false
        }
    }

    /// Writes a row by its table's writer.
    ///
    /// - Throws: `RolledBack`, once for each version of a row; `Unwritable`, and then nothing was changed.
    func write(
        _ row: ServerRow, by writer: RowWriter, to receiver: RowWriter.Receiver?, removed: RemovedRow? = nil
    ) throws {
        try refusable(Refusals.Step(row)) { try writer.write(row, to: receiver, removed: removed) }
    }

    // MARK: The batch

    /// Records what became of the batch, as part of the open transaction.
    func complete(_ outcome: BatchOutcome) throws {
        // Another process may have had the answer before.
        guard let batch = try Freezing.pending(in: database), batch.number == outcome.batch else { return }
        if let refusal = outcome.refusal { return try refuse(refusal) }
        guard outcome.results.count == batch.changes else {
            throw BatchMismatch(expected: batch.number, changes: batch.changes)
        }
        let changes = try SentChange.all(in: batch)
        let state = try Completion(database)
        let repeated = try RepeatedChanges(outcome, in: database)
        for table in file.tables {
            guard let server = schema.table(for: table.name), let writer = writers[server.name] else { continue }
            for sent in try SentRow.all(of: table, in: database) {
                if repeated.contains(sent.position) {
                    try Thawing(database: database).thaw(table.number, columns: table.columnNumbers, sent.key)
                } else {
                    try complete(sent, of: table, outcome, changes[sent.position], writer, state)
                }
            }
        }
        try Vector(database: database).completeColumns(ofBatch: outcome.batch)
        try completeOthers(outcome, changes, repeated, state)
        try KeyChanges.endSent(in: database)
        try database.run("DELETE FROM weir_batch")
        if state.hasTracked { try state.tracked.prune() }
    }

    /// What the changes of a batch have in common while it is completed.
    private struct Completion {
        let tracked: TrackedOutcomes
        let kept: KeptEdits
        /// Whether the app waits for an outcome.
        let hasTracked: Bool
        /// Whether a change waits for a decision.
        let hasOpen: Bool
        /// Whether a row waits among those that cannot be written.
        let hasParked: Bool
        /// The owners whose rows the file may have.
        let owners: Set<String>
        let device: String?

        init(_ database: Database) throws {
            tracked = TrackedOutcomes(database: database)
            kept = KeptEdits(database: database)
            hasTracked = try tracked.areOpen
            hasOpen = try kept.areOpen
            hasParked = try ParkedRows.wait(in: database)
            let record = SessionRecord(database: database)
            owners = Set(try record.owners.map(\.syncID))
            device = try record.device
        }

        func complete(_ table: Int, _ key: SQLValue, _ result: ChangeResult, kept: Int64? = nil) throws {
            guard hasTracked else { return }
            let status: RowOutcome.Status =
                switch result.status {
                case .applied: .applied
                case .deleted: .deleted
                case .conflict: .conflict
                case .refused: .refused
                }
            try tracked.complete(
                table, key, isSent: true,
                TrackedOutcomes.Result(
                    status: status, code: result.code, message: result.message,
                    timeStamp: result.timeStamp == 0 ? nil : result.timeStamp, kept: kept))
        }
    }

    /// Makes the changes of a batch that was refused as a whole pending again, until everything is pulled.
    private func refuse(_ code: String) throws {
        let record = SessionRecord(database: database)
        try file.thawBatch()
        try record.setMustDrain(true)
        // The server has seen the number with other content, or later ones: the file is a copy, or was restored from one. A device that
        // sends one batch at a time never falls behind its own, and under the old name each number up to the newest would be refused.
        if ["batch_mismatch", "outcome_expired"].contains(code) { try record.renew(knowledgeID) }
    }

    /// Keeps changes of the batch aside whose rows went with their owner: pending again, they would have no row whose values are sent.
    func keepThoseOfRevokedOwners() throws {
        guard let batch = try Freezing.pending(in: database) else { return }
        let changes = try SentChange.all(in: batch)
        let state = try Completion(database)
        for (number, table) in try CapturedTable.registered(in: database) {
            let writer = writers.values.first { $0.table.number == number }
            let whole = try writer.map { try SentRow.all(of: $0.table, in: database) } ?? []
            let sentRows = Dictionary(uniqueKeysWithValues: whole.map { ($0.position, $0) })
            let (sent, edit) = (CapturedTable.sent(number), CapturedTable.edit(number))
            let rows = try database.map(
                """
                SELECT position, id FROM \(sent) AS s WHERE NOT deleted
                AND NOT EXISTS (SELECT 1 FROM \(edit) AS e WHERE e.id = s.id)
                """
            ) { (position: Int($0.integer(at: 0)), key: $0.value(at: 1)) }
            for row in rows {
                guard let owner = try owner(of: ChangeContent(changes[row.position])), !state.owners.contains(owner),
                    try table.map({ try !$0.has(row.key, in: database) }) ?? true
                else { continue }
                try state.kept.refuse(
                    kept(
                        row.key, of: number, code: "revoked", message: "", changes[row.position],
                        writer.flatMap { writer in sentRows[row.position].map { (writer, $0) } }), isSent: true)
                try database.run("DELETE FROM \(sent) WHERE id = ?1", [row.key])
            }
        }
    }

    /// Records what became of rows whose tables are no longer listed, or have been retired by the server: their rows are not written.
    private func completeOthers(
        _ outcome: BatchOutcome, _ changes: [ArraySlice<UInt8>], _ repeated: RepeatedChanges, _ completion: Completion
    ) throws {
        let tables = try database.map("SELECT number, columns, name FROM weir_table") {
            (number: Int($0.integer(at: 0)), columns: Int($0.integer(at: 1)), name: $0.string(at: 2))
        }
        for table in tables {
            let (sent, state) = (CapturedTable.sent(table.number), CapturedTable.state(table.number))
            let rows = try database.map("SELECT position, id, deleted FROM \(sent)") {
                (position: Int($0.integer(at: 0)), key: $0.value(at: 1), isDeletion: $0.integer(at: 2) == 1)
            }
            for row in rows {
                let result = outcome.results[row.position]
                if repeated.contains(row.position) {
                    try Thawing(database: database).thaw(table.number, columns: table.columns, row.key)
                    continue
                }
                switch result.status {
                case .applied, .deleted:
                    let change = try ChangeContent(changes[row.position])
                    try end(row.key, of: table.number, result, change, completion)
                    let owner = owner(of: change)
                    if let owner, !completion.owners.contains(owner) {
                        try Vector(database: database).setIncomplete()
                        break
                    }
                    if result.timeStamp == 0 {
                        try database.run("DELETE FROM \(state) WHERE id = ?1", [row.key])
                        break
                    }
                    let isDeleted = row.isDeletion || result.status == .deleted
                    if result.status == .deleted {
                        try database.run(
                            """
                            UPDATE \(CapturedTable.edit(table.number)) SET base = ?2
                            WHERE id = ?1 AND \(RowWriter.hasNotSeenDeletion)
                            """, [row.key, .integer(change.base)])
                    }
                    try database.run(
                        """
                        INSERT INTO \(state) (id, time_stamp, deleted, owner)
                        VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id)
                        DO UPDATE SET time_stamp = excluded.time_stamp, deleted = excluded.deleted
                        WHERE excluded.time_stamp > time_stamp
                        """,
                        [
                            row.key, .integer(result.timeStamp), .integer(isDeleted ? 1 : 0),
                            owner.map { .text($0) } ?? .null,
                        ])
                    try RowOwners.forget(row.key, ofTable: table.number, in: database)
                case .conflict, .refused:
                    try keep(row.key, of: table.number, outcome, row.position, changes[row.position], completion)
                    if let row = outcome.row(of: row.position) {
                        // It waits until the table is listed again.
                        try write(row, try WriteState(file))
                    } else {
                        // The app's value is in the table, which is not known here: the server's is pulled once it is listed again.
                        try database.run(
                            "UPDATE weir_table SET incomplete = 1 WHERE number = ?1 AND NOT listed",
                            [.integer(Int64(table.number))])
                    }
                }
                try database.run("DELETE FROM \(sent) WHERE id = ?1", [row.key])
            }
        }
    }

    private func complete(
        _ sent: SentRow, of table: CapturedTable, _ outcome: BatchOutcome, _ change: ArraySlice<UInt8>,
        _ writer: RowWriter, _ completion: Completion
    ) throws {
        let result = outcome.results[sent.position]
        let known = try KnownVersion(sent.key, of: table, in: database)
        if try insertsAgain(sent, outcome, change, known, writer, owners: completion.owners) { return }
        try database.run("DELETE FROM \(table.sent) WHERE id = ?1", [sent.key])
        switch result.status {
        case .applied, .deleted:
            let change = try ChangeContent(change)
            try end(sent.key, of: table.number, result, change, completion, (writer, sent))
            let owner = owner(of: change)
            // The rows of an owner that is no longer granted were removed. If it is granted again, the server may leave this one out.
            if let owner, try !completion.owners.contains(owner) || isRemoved(sent, known != nil, result, writer) {
                return try Vector(database: database).setIncomplete()
            }
            // Unless it was pulled after another device has brought it back.
            if result.status == .deleted, known.map({ $0.timeStamp < result.timeStamp || $0.isDeleted }) ?? true {
                try writer.keepBase(of: sent.key, following: change)
            }
            if result.timeStamp == 0, known.map({ $0.timeStamp <= change.base }) ?? true {
                // The server had nothing to delete, and nothing has come since.
                try database.run("DELETE FROM \(table.state) WHERE id = ?1", [sent.key])
            } else if let known, known.timeStamp >= result.timeStamp {
                // The row was pulled at a later version, which the edit has covered until now.
                try restore(sent, to: known, writer)
            } else {
                let isDeleted = sent.isDeletion || result.status == .deleted
                try writer.record(
                    sent.key, result.timeStamp, isDeleted: isDeleted, owner: owner,
                    writer: try completion.device.map { try writer.writer($0, of: account) } ?? .null)
                try RowOwners.forget(sent.key, ofTable: table.number, in: database)
                // One that the app has written without a parent; other devices park it.
                try writer.recordIfOrphan(sent.key)
                if isDeleted, try !isEdited(sent.key, table) {
                    let new = KnownVersion(timeStamp: result.timeStamp, isDeleted: true, owner: owner)
                    try settle(sent.key, as: new, writer) { try writer.delete(sent.key) }
                }
            }
        case .conflict, .refused:
            try keep(sent.key, of: table.number, outcome, sent.position, change, completion, (writer, sent))
            if let known { try restore(sent, to: known, writer) }
            if let row = outcome.row(of: sent.position) { try write(row, try WriteState(file)) }
            // The next row under its integer is another one.
            if known?.isDeleted == true, try !table.has(sent.key, in: database) {
                try RowOwners.forget(sent.key, ofTable: table.number, in: database)
            }
        }
    }

    /// Whether the table does not have a row any more that was stored, and not since the app has deleted it.
    private func isRemoved(
        _ sent: SentRow, _ isKnown: Bool, _ result: ChangeResult, _ writer: RowWriter
    ) throws -> Bool {
        if isKnown || sent.isDeletion || result.status == .deleted { return false }
        return try !writer.table.has(sent.key, in: database) && !isEdited(sent.key, writer.table)
    }

    /// The owner for whose row a change was sent; `nil` for the account itself.
    func owner(of change: ChangeContent) -> String? { change.owner.flatMap { $0 == account ? nil : $0 } }

    /// Gives a row the server's values in place of an edit that is over.
    private func restore(_ sent: SentRow, to known: KnownVersion, _ writer: RowWriter) throws {
        try settle(sent.key, as: known, writer) {
            if known.isDeleted {
                if try !isEdited(sent.key, writer.table) { try writer.delete(sent.key) }
                return
            }
            // What the server does not have is not replaced by the change's end.
            let image = sent.isDeletion ? sent.image : sent.image.filter { writer.server.isKnown($0.column.name) }
            try writer.restore(sent.key, image, isDeletion: sent.isDeletion)
            try writer.recordIfOrphan(sent.key)
        }
    }

    /// Makes a row what the server has where its change has ended.
    ///
    /// The table may refuse it, as where a value is another row's meanwhile. Then the rows are pulled again, and this one waits among those that
    /// cannot be written.
    private func settle(
        _ key: SQLValue, as version: KnownVersion, _ writer: RowWriter, _ body: () throws -> Void
    ) throws {
        let version = self.version(version.timeStamp, of: key, version.owner, writer)
        do {
            try refusable(Refusals.Step(version: version), body)
        } catch is RowWriter.Unwritable {
            try Vector(database: database).setIncomplete()
        }
    }

    private func isEdited(_ key: SQLValue, _ table: CapturedTable) throws -> Bool {
        try database.value("SELECT 1 FROM \(table.edit) WHERE id = ?1", [key]) != nil
    }

    // MARK: What was not stored

    /// Records what became of a change that was stored.
    private func end(
        _ key: SQLValue, of table: Int, _ result: ChangeResult, _ change: ChangeContent, _ completion: Completion,
        _ row: (writer: RowWriter, sent: SentRow)? = nil
    ) throws {
        if completion.hasOpen, result.status == .applied { try completion.kept.endSentAgain(table, key, by: change) }
        if completion.hasParked, result.status == .applied, let device = completion.device {
            try ParkedRows.advance(change, to: result.timeStamp, by: device, of: account, in: database)
        }
        var number: Int64?
        if result.status == .deleted {
            // Nobody has to decide, but the values are gone from the app's table.
            let new = try kept(key, of: table, code: result.status.rawValue, message: "", change.json, row)
            number = try completion.kept.keep(new, ending: .deletionWon)
        }
        try completion.complete(table, key, result, kept: number)
    }

    /// Keeps a change that was not stored.
    private func keep(
        _ key: SQLValue, of table: Int, _ outcome: BatchOutcome, _ position: Int, _ change: ArraySlice<UInt8>,
        _ completion: Completion, _ row: (writer: RowWriter, sent: SentRow)? = nil
    ) throws {
        let result = outcome.results[position]
        var new = try kept(
            key, of: table, code: result.code ?? result.status.rawValue, message: result.message ?? "", change, row)
        new.row = outcome.row(of: position)?.json
        try completion.complete(table, key, result, kept: try completion.kept.keep(new))
    }

    private func kept(
        _ key: SQLValue, of table: Int, code: String, message: String, _ change: ArraySlice<UInt8>,
        _ row: (writer: RowWriter, sent: SentRow)?
    ) throws -> KeptEdits.New {
        var new = KeptEdits.New(table: table, key: key, code: code, message: message, change: change)
        guard let (writer, sent) = row else { return new }
        new.base = sent.seen ?? writer.json(of: sent.image)
        if !sent.isDeletion { new.whole = try writer.row(key).map { writer.json(of: $0) } }
        return new
    }
}
