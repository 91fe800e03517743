import CSQLite

extension Connection {
    /// How many steps of SQLite's machine lie between two looks at the task: some milliseconds of work.
    private static let stepsBetweenLooks: Int32 = 100_000

    /// Runs a closure whose statements are given up soon after the task is cancelled.
    ///
    /// For one that takes long, such as the check of a whole file. A transaction around it is rolled back.
    ///
    /// - Throws: what the closure throws; `CancellationError` instead, once the task is cancelled.
    package func withCancellation<Value>(_ body: () throws -> Value) throws -> Value {
        sqlite3_progress_handler(openDatabase, Self.stepsBetweenLooks, { _ in Task.isCancelled ? 1 : 0 }, nil)
        defer { sqlite3_progress_handler(openDatabase, 0, nil, nil) }
        do {
            return try body()
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }
}
