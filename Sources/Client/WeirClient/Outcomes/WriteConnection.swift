/// Weir's own connection to the app's file, within ``Weir/write(foreignKeys:_:)``.
///
/// Its statements are one transaction, whose changes are captured as those of any connection. It is of no use after the closure's end.
public final class WriteConnection {
    private let file: ClientFile
    private var isOver = false
    private var database: Database { file.database }

    init(_ file: ClientFile) { self.file = file }

    func end() { isOver = true }

    /// Runs one statement that inserts, updates or deletes.
    ///
    /// A statement that runs for each of many rows is compiled once if its text is the same for all, with the values among its arguments.
    ///
    /// - Parameters:
    ///   - sql: one statement.
    ///   - arguments: the values of its parameters.
    /// - Returns: how many rows it has changed.
    /// - Throws: `WeirError.database`, also for statements that begin or end transactions, or change the schema.
    @discardableResult
    public func execute(_ sql: String, _ arguments: [SQLValue] = []) throws -> Int {
        try check(sql)
        return try database.statement(ofTheApp: sql).run(arguments)
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

    /// Says whose a new row is, as ``Weir/setOwner(_:of:_:)`` does, in the transaction that inserts it.
    ///
    /// - Parameters:
    ///   - owner: the owner's syncId; `nil` for the account itself.
    ///   - table: one of the tables that were opened.
    ///   - key: the row's primary key.
    /// - Returns: whether it is so; a row that was sent keeps its owner.
    /// - Throws: `WeirError`.
    @discardableResult
    public func setOwner(_ owner: String?, of table: String, _ key: SQLValue) throws -> Bool {
        try check(before: nil)
        return try RowOwners.set(owner, of: key, file.table(named: table), in: database)
    }

    private static let statements: Set<String> = ["SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE"]

    /// Transactions are Weir's, and so are the connection's settings; migrations run with connections of the app's own.
    private func check(_ sql: String) throws {
        try check(before: sql)
        let first = firstStatement(in: sql).prefix { $0.isLetter }.uppercased()
        guard Self.statements.contains(first) else {
            throw Self.failure(
                "\(first.isEmpty ? "an empty statement" : first) is not possible in a write of Weir's", sql)
        }
    }

    private func check(before sql: String?) throws {
        if isOver { throw Self.failure("the write is over", sql) }
        // Some errors, and triggers that roll back, end the transaction.
        guard database.isInTransaction else { throw Self.failure("the transaction was rolled back", sql) }
    }

    private static func failure(_ message: String, _ sql: String?) -> WeirError {
        .database(code: 21, message: message, sql: sql)
    }
}
