extension Catalog {
    private static let freezing = "Batches/Freezing.swift"
    private static let changes = "Batches/RowChange.swift"
    private static let pending = "Batches/PendingKeys.swift"
    private static let thawing = "Batches/Thawing.swift"
    private static let rowOwners = "Batches/RowOwners.swift"
    private static let keyChanges = "Batches/Freezing+KeyChanges.swift"

    /// What the client sends.
    static let batches: [Mutant] = [
        .client(
            .statement, "the number of a batch is used again", in: freezing,
            "try database.run(\"UPDATE weir_meta SET value = ?1 WHERE key = 'last_batch'\", [.integer(batch.number)])",
            tests: "FreezingTests"),
        .client(
            .expression, "children are sent before their parents", in: freezing,
            "kind == .written ? tables : tables.reversed()", "Array(tables.reversed())", tests: "FreezingTests"),
        .client(
            .expression, "parents are deleted before their children", in: freezing,
            "kind == .written ? tables : tables.reversed()", "tables", tests: "FreezingTests"),
        .client(
            .expression, "parents are deleted before their children in the same table", in: pending,
            "kind == .written ? ordered : ordered.reversed()", "ordered", tests: "FreezingTests"),
        .client(
            .expression, "children are sent before their parents in the same table", in: pending,
            "TableOrder.parentsFirst(rows)", "rows.map(\\.key)", tests: "FreezingTests"),
        .client(
            .statement, "a batch without outcome is not sent again", in: freezing,
            "if let pending = try pending(in: file.database) { return FrozenBatch(repeating: pending) }",
            tests: "FreezingTests"),
        .client(
            .statement, "the owner that a new row has by its parents is forgotten once it is sent", in: freezing,
            "if let owner = row.newOwner { try owners.record(owner, of: row.key, table) }", tests: "OwnerTests"),
        .client(
            .expression, "a row is deleted that the app has not deleted", in: changes,
            "row.isTombstone || !row.wasThere", "row.isTombstone", tests: "MigrationTests"),
        .client(
            .expression, "a batch has more changes than the server takes", in: freezing,
            "min(limits.changes, Self.mostChanges)", "Self.mostChanges", tests: "FreezingTests"),
        .client(
            .expression, "a batch has more bytes than the server takes", in: freezing,
            "body.bytes(adding: row.json) > limits.divisibleBytes", "false", tests: "FreezingTests"),
        .client(
            .expression, "a deletion that may have been applied is repeated without a condition", in: changes,
            "row.wasSent || base == 0", "base == 0", tests: "UnseenRowsTests"),
        .client(
            .expression, "a row that the app has not seen is deleted without a condition", in: changes,
            "row.wasSent || base == 0", "row.wasSent", tests: "UnseenRowsTests"),
        .client(
            .expression, "a row that is inserted again replaces what others have written", in: changes,
            ".rewrite(base: base)", ".update(base: base, columns: Set(table.columns.map(\\.number)))",
            within: "row.isInserted: change = .rewrite(base: base)", tests: "CaptureTests"),
        .client(
            .expression, "a column that has its old value again is sent", in: changes,
            "row.isChanged[$0] && differs[$0]", "row.isChanged[$0]",
            within: "let columns = known.filter { row.isChanged[$0] && differs[$0] }", tests: "CaptureTests"),
        .client(
            .expression, "an insertion is based on a row that the app has not seen", in: changes,
            ".create(base: 0)", ".rewrite(base: row.version)",
            within: "case (true, 0?) where row.isInserted: change = .create(base: 0)", tests: "UnseenRowsTests"),
        .client(
            .expression, "a row is not revived whose deletion was pulled beneath its insertion", in: changes,
            ".create(base: row.version, isConditional: isNew)", ".create(base: Self.anyVersion)",
            tests: "UnseenRowsTests"),
        .client(
            .expression, "a row that is inserted over a tombstone is sent without a condition", in: changes,
            "isNew && base == row.version", "false", tests: "CaptureTests"),
        .client(
            .expression, "an insertion that the server has is sent", in: changes,
            "row.isInserted && row.isPulled && !known.contains { differs[$0] }", "false", tests: "UnseenRowsTests"),
        .client(
            .expression, "an edit is based on the version that was pulled beneath it", in: changes,
            #""coalesce(e.base, r.time_stamp)""#, #""r.time_stamp""#, tests: "ApplyingTests"),
        .client(
            .expression, "an edit is of the row whose key differs in case alone", in: changes,
            #""t.\(table.quotedKey) = e.id AND e.id = t.\(table.quotedKey) COLLATE BINARY""#,
            #""t.\(table.quotedKey) = e.id""#, tests: "CaptureTests", "CapturePropertyTests"),
        .client(
            .expression, "the change of another owner's row does not name the owner", in: changes,
            #""coalesce(r.owner, o.sync_id)""#, #""o.sync_id""#, tests: "OwnerTests"),
        .client(
            .statement, "rows whose keys were changed may be stored alone", in: keyChanges,
            "body.isAtomic = true", tests: "KeyChangeTests"),
        .client(
            .text, "of a batch that is pending again the later value before counts", in: thawing,
            #"THEN excluded.\(side) ELSE \(edit).\(side) END"#, #"THEN \(edit).\(side) ELSE excluded.\(side) END"#,
            tests: "RecoveryTests"),
        .client(
            .expression, "of a batch that is pending again the columns are lost that were changed since", in: thawing,
            #""m\($0) = \(edit).m\($0) | excluded.m\($0)""#, #""m\($0) = excluded.m\($0)""#, tests: "RecoveryTests"),
        .client(
            .statement, "a batch that is pending again does not count as sent", in: thawing,
            #"try database.run("UPDATE \(CapturedTable.sent(table.number)) SET was_sent = 1")"#,
            tests: "UnseenRowsTests"),
        .client(
            .statement, "changed keys of a batch that is pending again are forgotten", in: thawing,
            "try KeyChanges.thaw(in: database)", tests: "KeyChangeTests"),
        .client(
            .statement, "outcomes of a batch that is pending again are never known", in: thawing,
            "try TrackedOutcomes(database: database).thaw(number, key)", tests: "OutcomeTests"),
        .client(
            .text, "the later value before counts where the server lacks the column", in: "Batches/HeldColumns.swift",
            "at = excluded.at", "at = excluded.at, before = excluded.before", tests: "UnknownColumnsTests"),
        .client(
            .expression, "a new row is sent as that of an owner whose rows may only be read", in: rowOwners,
            "writable.contains(owner)", "true",
            within: "if let owner = owner?.string, writable.contains(owner) { return owner }", tests: "OwnerTests"),
        .client(
            .text, "a child is of the owner of a row that waits", in: rowOwners, "THEN r.owner",
            "THEN coalesce(r.owner, w.sync_id)", tests: "OwnerTests"),
        .client(
            .statement, "a row under a new key is the account's", in: rowOwners,
            "if hasKeyChanges, let owner = try formerOwner(key, of: table) { return owner }", tests: "OwnerTests"),
    ]
}
