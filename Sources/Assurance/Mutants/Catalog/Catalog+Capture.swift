extension Catalog {
    private static let triggers = "Capture/CaptureTriggers.swift"
    private static let folding = "Capture/LogFolding.swift"
    private static let seeding = "Capture/Seeding.swift"
    private static let definition = "Capture/TableDefinition.swift"
    private static let registration = "Capture/Registration.swift"

    /// What the client records of the app's writes.
    static let capture: [Mutant] = [
        .client(
            .text, "a change that the column's collation ignores is not captured", in: triggers, " COLLATE BINARY",
            within: #""\(left) IS NOT \(right) COLLATE BINARY""#, tests: "CaptureTests"),
        .client(
            .expression, "a change of the type alone is not captured", in: triggers, "affinity == .none", "false",
            tests: "CaptureTests"),
        .client(
            .statement, "an insertion that replaces nothing counts as a deletion", in: folding,
            "try database.run(forgetKept)", tests: "RecoveryTests", "MigrationTests"),
        .client(
            .expression, "what an insertion replaces by its key is not looked for", in: triggers, "nil", #""NEW""#,
            within: #"replaced("replace", "BEFORE INSERT", besides: nil)"#, tests: "CaptureTests"),
        .client(
            .expression, "what an update replaces is not looked for", in: triggers,
            #"replaced("overwrite", "BEFORE UPDATE\(columns ?? "")", besides: "OLD")"#,
            #"trigger("overwrite", "BEFORE UPDATE", ["SELECT 1"])"#, tests: "CaptureTests"),
        .client(
            .expression, "a row is replaced only if all of its unique values are taken", in: triggers, #"" OR ""#,
            #"" AND ""#, within: #"victims.map { "EXISTS (SELECT 1\($0))" }.joined(separator: " OR ")"#,
            tests: "CaptureTests"),
        .client(
            .expression, "what an insertion replaces is looked for afterwards", in: triggers, #""BEFORE INSERT""#,
            #""AFTER INSERT""#, tests: "CaptureTests"),
        .client(
            .expression, "an insertion is recorded before the row has its key", in: triggers, #""AFTER INSERT""#,
            #""BEFORE INSERT""#, tests: "CaptureTests", "CapturePropertyTests"),
        .client(
            .expression, "an update is recorded after the app's triggers", in: triggers, #""BEFORE UPDATE""#,
            #""AFTER UPDATE""#, within: #"trigger("update", "BEFORE UPDATE", changed)"#, tests: "CaptureTests",
            "CapturePropertyTests"),
        .client(
            .expression, "a deletion is recorded after the app's triggers", in: triggers, #""BEFORE DELETE""#,
            #""AFTER DELETE""#, tests: "CaptureTests", "CapturePropertyTests"),
        .client(
            .expression, "rows of the server are captured", in: triggers,
            #"["NOT EXISTS (SELECT 1 FROM weir_applying)"]"#, #"["1"]"#, tests: "ApplyingTests"),
        .client(
            .expression, "a changed key leads from the new one to the old one", in: triggers,
            #""INSERT INTO weir_key_change (tbl, old, new) VALUES (\(table.number), OLD.\(key), NEW.\(key))""#,
            #""INSERT INTO weir_key_change (tbl, old, new) VALUES (\(table.number), NEW.\(key), OLD.\(key))""#,
            tests: "OwnerTests"),
        .client(
            .expression, "a row is not deleted under its old key", in: triggers,
            #"[whole(of: "OLD", .delete, from: "")]"#, #"["SELECT 1"]"#,
            within: #"private var moved: [String] { [whole(of: "OLD", .delete, from: "")] }"#, tests: "CaptureTests"),
        .client(
            .expression, "a row is not inserted under its new key", in: triggers,
            #""INSERT INTO \(log) (id, kind, at) VALUES (NEW.\(key), \(LogKind.insert.rawValue), \(now))""#,
            #""SELECT 1""#, tests: "CaptureTests"),
        .client(
            .expression, "a changed key is not recorded", in: triggers,
            #""INSERT INTO weir_key_change (tbl, old, new) VALUES (\(table.number), OLD.\(key), NEW.\(key))""#,
            #""SELECT 1""#, tests: "KeyChangeTests"),
        .client(
            .expression, "a key that is changed as the rowid is not captured", in: triggers,
            #"["rowid", "oid", "_rowid_"]"#, "[String]()", tests: "FreezingTests"),
        .client(
            .expression, "a row that is updated counts as replaced by itself", in: triggers,
            #"" AND t.\(key) IS NOT \($0).\(key)""#, #""""#, tests: "UnseenRowsTests"),
        .client(
            .text, "what is replaced is looked for with the column's collation, not the index's", in: triggers,
            #" COLLATE \(quoted($0.collation))"#, tests: "CaptureTests"),
        .client(
            .expression, "a change must be of columns in each word of the mask", in: triggers, #"" OR ""#,
            #"" AND ""#, within: #"words.map { "\($0) <> 0" }.joined(separator: " OR ")"#, tests: "OpeningTests"),
        .client(
            .expression, "the last value before counts, not the first", in: folding,
            #""\($0.side) = CASE WHEN \(Self.isKnown(edit, $0)) THEN \(edit).\($0.side) ELSE excluded.\($0.side) END""#,
            #""\($0.side) = excluded.\($0.side)""#, tests: "CaptureTests"),
        .client(
            .expression, "of several changes of a row the last one's columns are sent", in: folding,
            #""m\($0) = \(edit).m\($0) | excluded.m\($0)""#, #""m\($0) = excluded.m\($0)""#, tests: "FreezingTests"),
        .client(
            .expression, "of several changes of a row the last one's values before are known", in: folding,
            #""v\($0) = \(edit).v\($0) | excluded.v\($0)""#, #""v\($0) = excluded.v\($0)""#, tests: "CaptureTests",
            "CapturePropertyTests"),
        .client(
            .text, "a deletion has no values before", in: folding, #"\(word == 0 ? -1 : 0)"#, "0",
            within: #""WHEN \(LogKind.insert.rawValue) THEN 0 ELSE \(word == 0 ? -1 : 0) END""#,
            tests: "KeyChangeTests", "UnseenRowsTests", "ResolvingTests"),
        .client(
            .text, "folding removes a change that it has not folded", in: folding, "seq <= ?1", "seq <= ?1 + 1",
            within: #""DELETE FROM \(table.log) WHERE seq <= ?1""#, tests: "FreezingTests"),
        .client(
            .expression, "a statement that was ignored moves the time of a change", in: folding, #""at = \(time)""#,
            #""at = excluded.at""#, tests: "FreezingTests"),
        .client(
            .text, "a row of the batch is adopted as one that was there before", in: seeding,
            #"SELECT 1 FROM \(table.sent) AS s WHERE s.id = \(key) COLLATE BINARY"#, "SELECT 1 WHERE 0",
            tests: "SeedingTests"),
        .client(
            .expression, "what a row replaces by an index on expressions is not looked for", in: definition,
            "columns.isEmpty && !areKnown", "columns.isEmpty", tests: "CaptureTests"),
        .client(
            .expression, "a function of an index may make a statement fail", in: definition, "term.isHarmless", "true",
            within: "guard term.isHarmless else { return nil }", tests: "CaptureTests"),
        .client(
            .expression, "rows that share the columns of an index count as replaced", in: definition,
            "areKnown ? values : []", "areKnown && columns.isEmpty ? values : []", tests: "CaptureTests"),
        .client(
            .expression, "the value of an expression follows from NULL in place of the default", in: triggers,
            #""\(new($0)) AS \(quoted($0))""#, #""NEW.\(quoted($0)) AS \(quoted($0))""#, tests: "CaptureTests"),
        .client(
            .expression, "triggers of another form are not replaced", in: registration,
            "expected.allSatisfy({ trigger in onTable.contains { $0.name == trigger.name && $0.sql == trigger.sql } })",
            "true", tests: "OpeningTests", "MigrationTests"),
        .client(
            .expression, "triggers that were taken away are not named", in: registration,
            "!expected.allSatisfy { trigger in onTable.contains { $0.name == trigger.name } }", "false",
            tests: "OpeningTests"),
        .client(
            .expression, "a new column gets the number of one that is gone", in: registration, "before",
            "numbers.count", within: "var count = before", tests: "OpeningTests"),
    ]
}
