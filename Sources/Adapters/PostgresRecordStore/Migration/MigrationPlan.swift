/// What a migration does to one database, in SQL.
package struct MigrationPlan: Sendable, Hashable {
    /// The database, without a password.
    package let database: String
    /// The statements in their order, without semicolons; none where everything is there already.
    package let statements: [String]

    /// All statements as one script, which does the same when an administrator runs it.
    package var script: String {
        guard !statements.isEmpty else { return "-- \(database): nothing to do\n" }
        let lines = ["-- \(database)", "BEGIN"] + statements + ["COMMIT"]
        return lines.enumerated().map { $0.offset == 0 ? $0.element + "\n" : $0.element + ";\n" }.joined()
    }
}
