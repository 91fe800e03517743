/// Statements on the app's table, which its constraints, triggers and expressions may refuse.
extension RowWriter {
    /// Runs a statement that writes a row of the table.
    ///
    /// - Parameters:
    ///   - values: those that the row has then.
    ///   - place: by what the statement finds it; the key by default.
    /// - Throws: `Unwritable`; then nothing was changed.
    func run(_ statement: Statement, _ key: SQLValue, _ values: [NamedValue], at place: SQLValue? = nil) throws {
        try refusable {
            if try statement.runRefusable([place ?? key] + values.map(\.value), in: database) > 0 { return }
            // A trigger of the app's may have written the row by itself.
            let isWritten = try row(key).map { row in
                values.allSatisfy { given in
                    row.contains { $0.column.number == given.column.number && $0.value == given.value }
                }
            }
            guard isWritten == true else { throw Unwritable(reason: "a trigger of the app has ignored it") }
        }
    }

    /// Deletes a row that is about to be written again.
    ///
    /// - Throws: `Unwritable`; then nothing was changed.
    func deleteRow(_ key: SQLValue) throws {
        let statement = try database.statement("DELETE FROM \(table.quotedName) WHERE \(Self.isKey(table))")
        try refusable {
            if try statement.runRefusable([key], in: database) > 0 { return }
            if hasTriggers, try table.has(key, in: database) {
                throw Unwritable(reason: "a trigger of the app has ignored its deletion")
            }
        }
    }

    /// Runs a closure, and takes back what triggers of the app have changed if it throws `Unwritable`.
    ///
    /// A statement that fails has changed nothing otherwise: SQLite evaluates expressions and constraints before it writes the row.
    private func refusable(_ body: () throws -> Void) throws {
        guard hasTriggers else { return try body() }
        try database.run("SAVEPOINT weir_row")
        do {
            try body()
        } catch let error as Unwritable {
            try database.run("ROLLBACK TO weir_row")
            try database.run("RELEASE weir_row")
            throw error
        }
        try database.run("RELEASE weir_row")
    }
}

extension Statement {
    /// Runs a statement on a table of the app's, which the values may make fail.
    ///
    /// What fails as it is compiled does so for each row, and is the session's error.
    ///
    /// - Returns: the rows that it changed.
    /// - Throws: `RowWriter.Unwritable`, unless the transaction has ended: then a trigger has rolled back, and with it what turns capturing
    ///   off.
    @discardableResult
    func runRefusable(_ values: [SQLValue], in database: Database) throws -> Int {
        do {
            return try run(values)
        } catch let error as WeirError {
            guard let reason = error.refusal, database.isInTransaction else { throw error }
            throw RowWriter.Unwritable(reason: reason)
        }
    }

    /// Runs a statement on a table of the app's, for a call of the app.
    ///
    /// - Returns: the rows that it changed.
    /// - Throws: `WeirError.taken` where the values make it fail.
    @discardableResult
    func runOrTaken(_ values: [SQLValue]) throws -> Int {
        do {
            return try run(values)
        } catch let error as WeirError {
            throw error.refusal.map { .taken(reason: $0) } ?? error
        }
    }
}

extension RowWriter {
    /// Whether the app has triggers on a table.
    static func hasTriggers(_ table: CapturedTable, in database: Database) throws -> Bool {
        let query = """
            SELECT 1 FROM sqlite_schema
            WHERE type = 'trigger' AND lower(tbl_name) = lower(?1) AND name NOT GLOB 'weir_[0-9]*'
            """
        return try database.value(query, [.text(table.name)]) != nil
    }
}
