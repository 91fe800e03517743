/// What the file has of the server's rows: the vector, the epoch to which it belongs, and where the last page was cut.
struct Vector {
    let database: Database

    var entries: [KnowledgeEntry] {
        get throws {
            try database.map(
                "SELECT sync_id, knowledge_id, last_time_stamp FROM weir_vector ORDER BY sync_id, knowledge_id"
            ) {
                KnowledgeEntry(
                    syncID: $0.string(at: 0), knowledgeID: $0.string(at: 1), lastTimeStamp: $0.integer(at: 2))
            }
        }
    }

    /// Of the history to which the entries belong; `nil` before the first answer.
    var epoch: String? {
        get throws { try database.metaText("epoch").map { String(decoding: $0, as: UTF8.self) } }
    }

    /// As the last answer had it, as JSON.
    var cutFrom: [UInt8]? { get throws { try database.metaText("cut_from") } }

    /// Makes everything of an owner come again, or of all owners.
    ///
    /// The entries stay: by them the server knows of which owners the file has rows, and says if one of them is no longer granted.
    func forget(_ owner: String? = nil) throws {
        let condition = owner == nil ? "" : " WHERE sync_id = ?1"
        try database.run("UPDATE weir_vector SET last_time_stamp = 0\(condition)", owner.map { [.text($0)] } ?? [])
        try database.setMeta("cut_from", nil)
        try Resets(database: database).record()
    }

    /// Notes that the file is about to have rows of owners, whose entries come with the last of them.
    func addOwners(_ owners: Set<String>) throws {
        guard let device = try SessionRecord(database: database).device else { return }
        for owner in owners {
            try database.run(
                """
                INSERT INTO weir_vector (sync_id, knowledge_id, last_time_stamp) SELECT ?1, ?2, 0
                WHERE NOT EXISTS (SELECT 1 FROM weir_vector WHERE sync_id = ?1)
                """, [.text(owner), .text(device)])
        }
    }

    /// Makes the next update begin from the start: the file does not have a row as the server has it.
    func setIncomplete() throws { try database.setMeta("pull_again", .integer(1)) }

    /// Notes that rows came with columns of the app that the known schema lacks, as from a gateway that has learned a later one.
    func setLacksColumns() throws {
        if try database.meta("lacks_columns") == nil { try database.setMeta("lacks_columns", .integer(1)) }
    }

    /// Makes the next update begin from the start if another schema, which is known from now on, may have columns of the app with values that
    /// the file lacks: rows came with columns that the known one lacked, or the new one has defaults for them, which all rows have.
    func completeColumns(from known: ServerSchema?, to new: ServerSchema) throws {
        let gained = try tables(gainingDefaults: new, from: known)
        // The server gives rows that a batch creates the defaults, and need not send them to the device that has created them.
        if !gained.isEmpty, let batch = try Freezing.pending(in: database) {
            try database.setMeta("lacking_batch", .integer(batch.number))
        }
        let hasRows = try gained.contains { try database.value("SELECT 1 FROM \($0.state) LIMIT 1") != nil }
        guard try hasRows || database.meta("lacks_columns") != nil else { return }
        try setIncomplete()
        try database.setMeta("lacks_columns", nil)
    }

    /// Makes the next update begin from the start if a batch, which has its outcome now, was frozen before its tables had columns with defaults.
    func completeColumns(ofBatch number: Int64) throws {
        guard let lacking = try database.meta("lacking_batch") else { return }
        if lacking == .integer(number) { try setIncomplete() }
        try database.setMeta("lacking_batch", nil)
    }

    /// The app's tables of which a schema has defaults for columns that the schema before it did not have.
    private func tables(gainingDefaults new: ServerSchema, from known: ServerSchema?) throws -> [CapturedTable] {
        guard let known else { return [] }
        return try CapturedTable.registered(in: database).compactMap { _, captured in
            guard let captured, let before = known.table(for: captured.name), let after = new.table(for: captured.name)
            else { return nil }
            let isGaining = captured.columns.contains { column in
                after.column(for: column.name)?.defaultValue != nil && !before.isKnown(column.name)
            }
            return isGaining ? captured : nil
        }
    }

    /// Takes over an answer's, as part of the open transaction.
    ///
    /// - Returns: whether it begins from the start instead, so that everything is pulled again.
    func update(_ answer: SyncAnswer) throws -> Bool {
        if !answer.owners.isEmpty { try SessionRecord(database: database).keep(answer.owners) }
        if try epoch != answer.epoch { try database.setMeta("epoch", .text(answer.epoch)) }
        if try database.meta("pull_again") != nil {
            try forget()
            try database.setMeta("pull_again", nil)
            return true
        }
        for owner in Set(answer.knowledge.map(\.syncID)).union(answer.revoked).subtracting(answer.resync) {
            try database.run("DELETE FROM weir_vector WHERE sync_id = ?1", [.text(owner)])
        }
        for owner in answer.resync { try forget(owner) }
        // Its rows are gone: an answer from before must not restore its entries.
        if !answer.revoked.isEmpty { try Resets(database: database).record() }
        for entry in answer.knowledge where !answer.resync.contains(entry.syncID) {
            try database.run(
                "INSERT OR REPLACE INTO weir_vector (sync_id, knowledge_id, last_time_stamp) VALUES (?1, ?2, ?3)",
                [.text(entry.syncID), .text(entry.knowledgeID), .integer(entry.lastTimeStamp)])
        }
        if try cutFrom != answer.cutFromJSON {
            try database.setMeta("cut_from", answer.cutFromJSON.map { .text($0) })
        }
        if !answer.hasMore, answer.resync.isEmpty { try PendingReplacements.end(in: database) }
        return false
    }
}
