extension Catalog {
    private static let database = "SQLite/Database.swift"
    private static let file = "ClientFile.swift"
    private static let writer = "Applying/RowWriter.swift"
    private static let freezing = "Batches/Freezing.swift"
    private static let bases = "Applying/RowWriter+Bases.swift"
    private static let steps = "Applying/AnswerSteps.swift"
    private static let application = "Applying/Applying.swift"
    private static let vector = "Applying/Vector.swift"
    private static let parkedRows = "Applying/ParkedRows.swift"
    private static let orphans = "Applying/OrphanRows.swift"
    private static let ownerRows = "Applying/OwnerRows.swift"
    private static let kept = "Outcomes/KeptEdits.swift"

    /// What the client writes of an answer.
    static let applying: [Mutant] = [
        .client(
            .statement, "an older version of a row replaces a newer one", in: writer,
            "if let timeStamp = known.timeStamp, timeStamp > row.timeStamp { return }", tests: "LeaseTests"),
        .client(
            .expression, "a pulled row replaces a value that is pending", in: writer,
            "present.changed.filter { !known.isPending(columns[$0].column) }", "present.changed", tests: "ApplyingTests"
        ),
        .client(
            .statement, "the value before an edit is not that of the pulled row beneath it", in: writer,
            "try setBefore(column, value, of: key, in: side)", tests: "ApplyingTests"),
        .client(
            .expression, "the value before an edit is not that of the batch which it follows", in: writer,
            "known.sent?.masks.contains(column) != true", "true", tests: "RecoveryTests"),
        .client(
            .expression, "a pulled deletion removes a row with an edit", in: writer,
            "known.edit?.masks.isEmpty ?? true", "true", tests: "ApplyingTests"),
        .client(
            .expression, "a pulled deletion removes a row of the batch", in: writer, "known.sent == nil", "true",
            within: "known.edit?.masks.isEmpty ?? true, known.sent == nil {", tests: "ApplyingTests"),
        .client(
            .expression, "a row of another owner replaces that of the same id", in: writer,
            "known.owner != owner", "false", tests: "OwnerTests"),
        .client(
            .statement, "the version that the app has seen is not kept", in: writer,
            "if let receiver { try keepBase(of: key, known, beneath: row, receiver, seen) }", tests: "ApplyingTests"),
        .client(
            .expression, "the device's own version counts as one that the app has not seen", in: bases,
            "try receiver.device.map { try row.isWritten(by: $0, of: account) } ?? false", "false",
            tests: "UnseenRowsTests", "RecoveryTests",
            unfound: "the server counts no version of the device itself against a base"),
        .client(
            .statement, "a row that was written still waits", in: application,
            "if state.hasParked { try ParkedRows.remove(row, in: database) }", tests: "ParkedRowsTests"),
        .client(
            .text, "an older version that waits replaces a newer one", in: parkedRows,
            "excluded.time_stamp > time_stamp OR", "1 OR", tests: "OrphanRowsTests"),
        .client(
            .statement, "a row that waits is not tried again", in: steps, "if try parked.next() { return true }",
            tests: "ParkedRowsTests"),
        .client(
            .statement, "an owner is not known by the first of its rows", in: steps,
            "if isFirst { try Vector(database: applying.database).addOwners(Set(answer.changes.map(\\.syncID))) }",
            tests: "SliceTests"),
        .client(
            .statement, "what the app writes through Weir after a long answer is not captured", in: database,
            "if writesRows { try setTriggers(firing: true) }", tests: "SliceTests"),
        .client(
            .expression, "triggers of the app do not fire for long answers", in: file,
            "!isLong || hasTriggersOfTheApp", "!isLong", tests: "SliceTests"),
        .client(
            .statement, "rows that wait for each other's unique values are not exchanged", in: parkedRows,
            "if try UniqueExchange(applying: applying, writer: writer, table: name).run() { isWritten = true }",
            tests: "ParkedRowsTests/rowsThatHaveExchangedUniqueValuesAreWrittenTogether"),
        .client(
            .expression, "a new row is taken for another owner's of its key", in: writer,
            "known.place == nil && known.isEdited", "false", tests: "OwnerTests"),
        .client(
            .expression, "a new row goes where the tombstone of another one was not pulled yet",
            in: "Applying/SentRow.swift", "change.isCreation || isRevival", "isRevival", tests: "UnseenDeletionTests"),
        .client(
            .statement, "an insertion overwrites a row that was brought back unseen", in: "Applying/SentRow.swift",
            "if let known, let tombstone, !known.isDeleted, known.timeStamp > tombstone { return false }",
            tests: "UnseenDeletionTests"),
        .client(
            .expression, "an insertion over a tombstone goes with another tombstone", in: bases,
            "known.isDeleted && known.sent == nil && known.edit?.isUnsentInsertion == true", "false",
            tests: "UnseenDeletionTests"),
        .client(
            .statement, "a condition takes back rows whose keys were changed", in: freezing,
            "if isInGroup, case .create(let base, isConditional: true) = change { change = .create(base: base) }",
            tests: "UnseenDeletionTests"),
        .client(
            .expression, "an edit revives a row in another history whose deletion the app has not seen", in: bases,
            "known.isDeleted && isInsertion ? nil : PendingRow.anyVersion", "nil", tests: "UnseenDeletionTests"),
        .client(
            .expression, "a row of a lost outcome is revived that another device has deleted", in: bases,
            "wasSent && isCreatedHere(row)", "wasSent && isCreatedHere(row) && row.id.isEmpty",
            tests: "UnseenDeletionTests"),
        .client(
            .statement, "a row without a parent is not looked for", in: "Applying/RowWriter+Parents.swift",
            "try selectOrphan?.rows([key]) { _ in try OrphanRows.record(key, of: table, in: database) }",
            tests: "OrphanRowsTests"),
        .client(
            .statement, "the children of a deleted row are not looked for", in: writer,
            "if isParent { try OrphanRows.recordRemoval(of: key, from: table, in: database) }",
            tests: "OrphanRowsTests"),
        .client(
            .statement, "a row with an edit is parked", in: orphans,
            "if try table.hasEdit(key, in: database) { return true }", tests: "OrphanRowsTests"),
        .client(
            .expression, "a row is parked though its parent may follow", in: steps, "!answer.hasMore", "true",
            within: "if !answer.hasMore, try orphans.next()", tests: "OrphanRowsTests"),
        .client(
            .expression, "a row of a small page is parked though its parent may follow", in: steps,
            "try answer.hasMore || orphans.settleFew()", "try orphans.settleFew()", tests: "OrphanRowsTests"),
        .client(
            .statement, "the vector is written before the last slice", in: steps,
            "if !areRowsWritten { return try !writeNextRows() }",
            """
            if !areRowsWritten {
                _ = try applyingFolded { try Vector(database: $0.database).update(answer) }
                return try !writeNextRows()
            }
            """, tests: "KillTests", "LongOfflineTests"),
        .client(
            .statement, "what the app writes before a slice's transaction is not taken for an edit", in: steps,
            "try applying.file.fold()", tests: "WritingMeanwhileTests"),
        .client(
            .statement, "where a page was cut is not kept", in: vector,
            "try database.setMeta(\"cut_from\", answer.cutFromJSON.map { .text($0) })", tests: "SessionTests"),
        .client(
            .statement, "an owner whose history begins again is not pulled again", in: vector,
            "for owner in answer.resync { try forget(owner) }", tests: "SliceTests"),
        .client(
            .expression, "the vector has a revoked owner", in: vector,
            "Set(answer.knowledge.map(\\.syncID)).union(answer.revoked)", "Set(answer.knowledge.map(\\.syncID))",
            tests: "OwnerTests"),
        .client(
            .statement, "after a refused batch the next one is frozen before everything was pulled", in: application,
            "try record.setMustDrain(true)", tests: "RecoveryTests"),
        .client(
            .statement, "the edits of a refused batch are removed", in: application,
            "try file.thawBatch()",
            """
            for table in file.tables { try database.run("DELETE FROM \\(table.sent)") }
            try database.run("DELETE FROM weir_batch")
            """, tests: "RecoveryTests"),
        .client(
            .expression, "a copy of a file keeps its name", in: application,
            #"["batch_mismatch", "outcome_expired"].contains(code)"#, "false", tests: "DeviceNameTests"),
        .client(
            .expression, "a change that was not judged is not repeated", in: application,
            "repeated.contains(sent.position)", "false", tests: "KeyChangeTests", "RecoveryTests"),
        .client(
            .expression, "the outcome of a batch replaces a later version", in: application,
            "known.timeStamp >= result.timeStamp", "false", tests: "ApplyingTests"),
        .client(
            .statement, "a row keeps the values of a change that was not stored", in: application,
            "if let known { try restore(sent, to: known, writer) }",
            tests: "SettlingTests"),
        .client(
            .statement, "a change that was not stored is not kept", in: application,
            "try keep(sent.key, of: table.number, outcome, sent.position, change, completion, (writer, sent))",
            tests: "UnseenRowsTests"),
        .client(
            .expression, "the base of a conflict is the server's version", in: application,
            "sent.seen ?? writer.json(of: sent.image)", "writer.json(of: sent.image)", tests: "ResolvingTests"),
        .client(
            .statement, "an owner who is granted again before the last slice lacks rows", in: ownerRows,
            "if end == .revoked { try Vector(database: database).forget(owner) }", tests: "SliceTests"),
        .client(
            .statement, "an edit is based on a version of another history", in: ownerRows,
            #"try database.run("UPDATE \(side) SET base = NULL, seen = NULL WHERE id = ?1", [key])"#,
            tests: "RecoveryTests"),
        .client(
            .statement, "a change for another owner decides about one that was not stored", in: kept,
            "guard earlier.owner == later.owner else { continue }", tests: "ResolvingTests", "OwnerTests"),
        .client(
            .expression, "a change of another column decides about one that was not stored", in: kept,
            "later.isDeletion || !earlier.isDeletion && earlier.columns.isSubset(of: later.columns)", "true",
            tests: "ResolvingTests"),
    ]
}
