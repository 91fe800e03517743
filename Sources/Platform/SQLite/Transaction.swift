import CWeirSQLite

package enum TransactionKind: Sendable {
    /// Locks at its first read, which sets its snapshot; for reading.
    case deferred
    /// Takes the write lock at the start; for everything that writes.
    case immediate
}

/// A transaction failed and could not be rolled back; closing the connection ends the transaction.
package struct RollbackFailure: Error {
    /// The failure of the transaction.
    package let cause: any Error
    /// The failure of the rollback.
    package let rollback: SQLiteError
}

extension Connection {
    package var inTransaction: Bool { sqlite3_get_autocommit(openDatabase) == 0 }

    /// Runs a closure in a transaction: commits when it returns, rolls back when it or the commit throws.
    ///
    /// On some errors (disk full, input/output) SQLite itself rolls back; if the closure continues, its further statements
    /// and the commit fail, so that nothing is written outside of the transaction.
    ///
    /// - Throws: what the closure throws; `SQLiteError`, which is misuse for a nested transaction; `RollbackFailure`.
    package func transaction<Result>(_ kind: TransactionKind, _ body: () throws -> Result) throws -> Result {
        guard !inTransaction, !isInsideTransaction else {
            throw failure(
                SQLITE_MISUSE, .transaction, message: "a transaction is already open; transactions do not nest")
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

    /// Rolls back an open transaction before `cause` is thrown.
    func rollBack(after cause: any Error) throws {
        guard inTransaction else { return }
        do {
            try control("ROLLBACK")
        } catch {
            throw RollbackFailure(cause: cause, rollback: error)
        }
    }

    /// Records whether SQLite rolled back the transaction because of a failed step.
    func checkTransactionAfterFailedStep() {
        if isInsideTransaction && !inTransaction { hasLostTransaction = true }
    }

    private func control(_ sql: StaticString) throws(SQLiteError) {
        do throws(SQLiteError) {
            var statement = try statement(sql)
            try statement.run()
        } catch {
            var failure = error
            failure.action = .transaction
            throw failure
        }
    }
}
