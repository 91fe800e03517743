import Metrics
import RecordStore
import RelationalTables
import SQLite

/// Writes the waiting calls of `commit` in one transaction; each succeeds or fails separately.
struct GroupCommit {
    let connection: Connection
    let tables: PreparedTables<TableLayout>
    let metrics: SQLiteStoreMetrics

    /// Writes and resolves all calls.
    func run(_ commits: [PendingCommit]) {
        var refusals = [RecordStoreError?](repeating: nil, count: commits.count)
        let watch = Stopwatch()
        do {
            do {
                try transaction { writer in for commit in commits { try writer.write(commit.steps) } }
            } catch is RecordStoreError where commits.count > 1 {
                // Each by itself, which is for refusals alone: a savepoint copies every page that changes after it.
                try transaction { writer in
                    for (index, commit) in commits.enumerated() { refusals[index] = try write(commit, writer) }
                }
            }
        } catch {
            let failure = RecordStoreError(error, database: connection.path)
            metrics.recordFailure(commits)
            for (commit, refusal) in zip(commits, refusals) { commit.resolve(.failure(refusal ?? failure)) }
            return
        }
        metrics.record(commits, failed: refusals.count { $0 != nil }, watch)
        for (commit, refusal) in zip(commits, refusals) {
            commit.resolve(refusal.map(Result.failure) ?? .success(()))
        }
    }

    private func transaction(_ body: (StepWriter) throws -> Void) throws {
        try connection.transaction(.immediate) { try body(StepWriter(connection, tables)) }
    }

    /// Writes one call of several.
    ///
    /// - Returns: why this call alone failed.
    /// - Throws: what fails all of them, such as a full disk.
    private func write(_ commit: PendingCommit, _ writer: StepWriter) throws -> RecordStoreError? {
        try run("SAVEPOINT weir_call")
        do {
            try writer.write(commit.steps)
            try run("RELEASE weir_call")
            return nil
        } catch let refusal as RecordStoreError {
            try run("ROLLBACK TO weir_call")
            try run("RELEASE weir_call")
            return refusal
        }
    }

    private func run(_ sql: StaticString) throws {
        var statement = try connection.statement(sql)
        try statement.run()
    }
}
