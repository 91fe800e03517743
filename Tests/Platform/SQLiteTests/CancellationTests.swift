import SQLite
import TestResources
import Testing

@Suite struct CancellationTests {
    /// Minutes of work.
    private static let long = """
        WITH RECURSIVE number(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number LIMIT 1000000000)
        INSERT INTO t SELECT count(*) FROM number
        """

    @Test func interruptsALongStatementWhenTheTaskIsCancelled() async throws {
        let folder = try TemporaryFolder()
        // A thread of its own, since the statement runs until another task cancels it.
        let writer = try await DatabaseWriter.open(path: folder.file())
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await writer.perform { connection throws in
                defer { begin.finish() }
                try connection.execute("CREATE TABLE t (i)")
                #expect(throws: CancellationError.self) {
                    try connection.transaction(.immediate) {
                        try connection.execute("INSERT INTO t VALUES (1)")
                        begin.finish()
                        try connection.withCancellation { try connection.execute(Self.long) }
                    }
                }
                #expect(!connection.inTransaction)
                // Outside of `withCancellation` the statements of a cancelled task run.
                #expect(try connection.number("SELECT count(*) FROM t") == 0)
            }
        }
        for await _ in begun {}
        task.cancel()
        try await task.value
        try await writer.close()
    }

    @Test func passesResultsAndErrorsThrough() throws {
        try withConnection { connection throws in
            #expect(try connection.withCancellation { try connection.number("SELECT 7") } == 7)
            let error = sqliteError { try connection.withCancellation { try connection.execute("nonsense") } }
            #expect(error?.code == .error)
        }
    }
}
