/// What ``Weir/write(foreignKeys:_:)`` has written, and what becomes of it.
public struct SavedChanges<Value: Sendable>: Sendable {
    /// What the closure has returned.
    public let value: Value
    /// The rows whose changes were captured, in the order of their tables; those that triggers have changed are among them.
    public let rows: [RowReference]
    let tracked: [Int64: RowReference]
    let weir: Weir

    /// What becomes of each of the rows: it waits until that is known.
    ///
    /// Where a row was changed before and not sent, the server decides about all of it. It is kept in the file: after a new start of
    /// the app it is among ``Weir/outcomes(after:)``. It does not return where nothing syncs, where a row cannot be
    /// sent, or while all that was changed in it waits for columns that the server does not have; in a task that is cancelled it does.
    ///
    /// - Throws: `WeirError.closed` if the Weir is closed before; `CancellationError`.
    public var outcome: [RowOutcome] {
        get async throws { tracked.isEmpty ? [] : try await weir.outcomes(of: tracked) }
    }
}

extension Weir {
    /// Runs statements of the app on Weir's connection, in one transaction, and tracks what becomes of the rows that they change.
    ///
    /// It is as good as a write of any other connection, and captured in the same way. For each row that it changes a
    /// row of Weir's is written as well, so connections of the app's own are better for many thousands of rows. The closure runs while nothing else of
    /// this Weir does, and has the file's write lock, so it should be short.
    ///
    /// - Parameters:
    ///   - foreignKeys: whether foreign keys are enforced, as most apps have it for their connections.
    ///   - body: the statements.
    /// - Returns: what the closure returns, and the rows.
    /// - Throws: what the closure throws, and `WeirError`; then nothing is changed.
    @discardableResult
    public func write<Value: Sendable>(
        foreignKeys: Bool = true, _ body: @Sendable (WriteConnection) throws -> Value
    ) async throws -> SavedChanges<Value> {
        let file = try openFile
        let saved = try captured(in: file, foreignKeys: foreignKeys) { _ in
            let connection = WriteConnection(file)
            defer { connection.end() }
            return try body(connection)
        }
        await wrote()
        return saved
    }

    /// Runs a closure in a transaction whose changes are captured, and tracks the outcomes of the rows that it changes.
    ///
    /// - Parameters:
    ///   - body: it may not fold logs.
    ///   - end: runs at the transaction's end.
    func captured<Value: Sendable>(
        in file: ClientFile, foreignKeys: Bool, _ body: (Database) throws -> Value, then end: () throws -> Void = {}
    ) throws -> SavedChanges<Value> {
        let database = file.database
        try file.foldLogs()
        // It can be set between transactions alone.
        if foreignKeys { try database.run("PRAGMA foreign_keys = ON") }
        defer { if foreignKeys { endForeignKeys(database) } }
        var tracked: [Int64: RowReference] = [:]
        let value = try database.transaction {
            // What is in the logs then is what this transaction has changed.
            try file.fold()
            let value = try body(database)
            for table in file.tables {
                let keys = try database.map("SELECT DISTINCT id FROM \(table.log) WHERE id IS NOT NULL") {
                    $0.value(at: 0)
                }
                for key in keys {
                    let number = try TrackedOutcomes(database: database).track(table.number, key)
                    tracked[number] = RowReference(table: table.name, key: key)
                }
            }
            try end()
            return value
        }
        let rows = tracked.keys.sorted().compactMap { tracked[$0] }
        return SavedChanges(value: value, rows: rows, tracked: tracked, weir: self)
    }

    private func endForeignKeys(_ database: Database) {
        do {
            try database.run("PRAGMA foreign_keys = OFF")
        } catch {
            // It changes a flag of the connection, for which nothing is read or written.
            assertionFailure("\(error)")
        }
    }

    /// Weir's connection has changed the app's tables: what `PRAGMA data_version` tells of others only.
    func wrote() async {
        changes.update { $0 += 1 }
        do {
            let pending = try openFile.pendingRows()
            statuses.update { $0.pendingRows = pending }
        } catch {
            // The write is committed. What it has changed is counted with the next session.
        }
        await runner?.runner.record(.localWrite)
    }
}
