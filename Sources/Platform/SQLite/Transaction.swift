import CSQLite

/// When a transaction takes its locks.
package enum TransactionKind: Sendable {
    /// At its first read, which fixes what it sees; for reading.
    case deferred
    /// At once the one lock for writing; for everything that writes.
    case immediate
}

/// A transaction failed and could not be rolled back either; close the connection, which gives up the transaction.
package struct RollbackFailure: Error {
    /// What the transaction failed with.
    package let cause: any Error
    /// What rolling it back failed with.
    package let rollback: SQLiteError
}

extension Connection {
    /// Whether a transaction is open.
    package var inTransaction: Bool { sqlite3_get_autocommit(openDatabase) == 0 }

    /// Runs a closure in a transaction: commits when it returns, rolls everything back when it or the commit throws.
    ///
    /// Some errors (disk full, input/output) make SQLite itself roll back; should the closure go on regardless, its
    /// further statements and the commit are refused, so that nothing is written outside of the transaction.
    ///
    /// - Throws: what the closure throws; `SQLiteError` of SQLite, also for a transaction within a transaction, which
    ///   is refused as misuse; `RollbackFailure`.
    package func transaction<Result>(_ kind: TransactionKind, _ body: () throws -> Result) throws -> Result {
        guard !inTransaction, !isInsideTransaction else {
            throw failure(SQLITE_MISUSE, .transaction, message: "a transaction is open already; they do not nest")
        }
        switch kind {
        case .deferred: try control("BEGIN DEFERRED")
        case .immediate: try control("BEGIN IMMEDIATE")
        }
        isInsideTransaction = true
        defer {
            isInsideTransaction = false
            hasLostTransaction = false
        }
        do {
            let result = try body()
            guard inTransaction else {
                throw failure(SQLITE_ABORT, .transaction, message: "the transaction ended before its closure did")
            }
            try control("COMMIT")
            return result
        } catch {
            try rollBack(after: error)
            throw error
        }
    }

    /// Rolls an open transaction back, on the way to throwing `cause`.
    func rollBack(after cause: any Error) throws {
        guard inTransaction else { return }
        do {
            try control("ROLLBACK")
        } catch {
            throw RollbackFailure(cause: cause, rollback: error)
        }
    }

    /// Sees whether SQLite answered a failed step by rolling the transaction back.
    func noteFailedStep() {
        if isInsideTransaction && !inTransaction { hasLostTransaction = true }
    }

    private func control(_ sql: StaticString) throws(SQLiteError) {
        do throws(SQLiteError) {
            var statement = try statement(sql)
            try statement.run()
        } catch {
            throw SQLiteError(
                code: error.code, extendedCode: error.extendedCode, message: error.message, action: .transaction,
                sql: error.sql, path: error.path, systemError: error.systemError)
        }
    }
}
