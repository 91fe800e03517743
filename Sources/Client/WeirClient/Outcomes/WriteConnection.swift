/// Weir's own connection to the app's file, within ``Weir/write(foreignKeys:_:)``.
///
/// Its statements are one transaction, whose changes are captured as those of any connection. It is of no use after the closure's end.
public final class WriteConnection {
    private let database: Database
    private var isOver = false

    init(_ database: Database) { self.database = database }

    func end() { isOver = true }

    /// Runs one statement that inserts, updates or deletes.
    ///
    /// - Parameters:
    ///   - sql: one statement.
    ///   - arguments: the values of its parameters.
    /// - Returns: how many rows it has changed.
    /// - Throws: `WeirError.database`, also for statements that begin or end transactions, or change the schema.
    @discardableResult
    public func execute(_ sql: String, _ arguments: [SQLValue] = []) throws -> Int {
        try check(sql)
        return try database.run(sql, arguments)
    }

    /// The rows of one query, or of a statement with RETURNING.
    ///
    /// - Parameters:
    ///   - sql: one statement.
    ///   - arguments: the values of its parameters.
    /// - Throws: as ``execute(_:_:)``.
    public func query(_ sql: String, _ arguments: [SQLValue] = []) throws -> [ObservedRow] {
        try check(sql)
        return try database.observedRows(sql, arguments)
    }

    private static let statements: Set<String> = ["SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE"]

    /// Transactions are Weir's, and so are the connection's settings; migrations run with connections of the app's own.
    private func check(_ sql: String) throws {
        func failure(_ message: String) -> WeirError { .database(code: 21, message: message, sql: sql) }
        if isOver { throw failure("the write is over") }
        // Some errors, and triggers that roll back, end the transaction.
        guard database.isInTransaction else { throw failure("the transaction was rolled back") }
        let first = firstStatement(in: sql).prefix { $0.isLetter }.uppercased()
        guard Self.statements.contains(first) else {
            throw failure("\(first.isEmpty ? "an empty statement" : first) is not possible in a write of Weir's")
        }
    }
}
