import SQLite
import TestResources
import Testing
import ThreadExecutor

@Suite struct DatabaseWriterTests {
    @Test func commitsBeforeItReturns() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        try await writer.write { try $0.execute("CREATE TABLE t (i)") }
        let rows = try await writer.write { connection in
            #expect(connection.inTransaction)
            try connection.execute("INSERT INTO t VALUES (1), (2)")
            return connection.changes
        }
        #expect(rows == 2)
        try withConnection(to: folder.file(), access: .readOnly) { reader throws in
            #expect(try reader.number("SELECT count(*) FROM t") == 2)
        }
        try await writer.close()
    }

    @Test func rollsBackWhenItsClosureThrowsAndStaysUsable() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        try await writer.write { try $0.execute("CREATE TABLE t (i)") }
        await #expect(throws: Refusal(number: 2)) {
            try await writer.write { connection in
                try connection.execute("INSERT INTO t VALUES (1)")
                throw Refusal(number: 2)
            }
        }
        #expect(try await writer.write { try $0.number("SELECT count(*) FROM t") } == 0)
        try await writer.close()
    }

    @Test func performsWithoutATransactionAndRollsBackOneLeftOpen() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        #expect(try await writer.perform { $0.inTransaction } == false)
        try await writer.perform { try $0.execute("CREATE TABLE t (i)") }
        let error = await #expect(throws: SQLiteError.self) {
            try await writer.perform { try $0.execute("BEGIN; INSERT INTO t VALUES (1)") }
        }
        #expect(error?.code == .misuse)
        #expect(try await writer.write { try $0.number("SELECT count(*) FROM t") } == 0)
        try await writer.close()
    }

    @Test func runsItsCallsOneAtATime() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        try await writer.write { try $0.execute("CREATE TABLE t (i); INSERT INTO t VALUES (0)") }
        try await withThrowingTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    try await writer.write { connection in
                        let value = try connection.number("SELECT i FROM t")
                        try connection.execute("UPDATE t SET i = \(value + 1)")
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await writer.write { try $0.number("SELECT i FROM t") } == 200)
        try await writer.close()
    }

    @Test(.timeLimit(.minutes(5))) func rejectsACallAboveItsLimit() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file(), limit: 1)
        let gate = ThreadGate()
        let first = Task { try await writer.perform { _ in gate.pass() } }
        await gate.isReached()
        await #expect(throws: PoolUnavailable.overloaded(limit: 1)) { try await writer.perform { _ in } }
        gate.open()
        try await first.value
        try await writer.perform { _ in }
        try await writer.close()
    }

    @Test func doesNotRunACancelledCall() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        let gate = ThreadGate()
        let first = Task { try await writer.perform { _ in gate.pass() } }
        await gate.isReached()
        let second = Task { try await writer.perform { _ in Issue.record("the closure of a cancelled caller ran") } }
        second.cancel()
        gate.open()
        try await first.value
        await #expect(throws: CancellationError.self) { try await second.value }
        try await writer.close()
    }

    @Test(.timeLimit(.minutes(5))) func closesAfterTheAcceptedCallsAndRejectsLaterOnes() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        try await writer.write { try $0.execute("CREATE TABLE t (i)") }
        let gate = ThreadGate()
        let inFlight = Task {
            try await writer.write { connection in
                gate.pass()
                try connection.execute("INSERT INTO t VALUES (1)")
            }
        }
        await gate.isReached()
        let closers = (0..<2).map { _ in Task.immediate { try await writer.close() } }
        await #expect(throws: PoolUnavailable.closed) { try await writer.perform { _ in } }
        gate.open()
        try await inFlight.value
        for closer in closers { try await closer.value }
        try await writer.close()
        await #expect(throws: PoolUnavailable.closed) { try await writer.write { _ in } }
        // The last connection to close removes the write-ahead log.
        #expect(!folder.exists("test.sqlite-wal"))
        try withConnection(to: folder.file(), access: .readOnly) { reader throws in
            #expect(try reader.number("SELECT count(*) FROM t") == 1)
        }
    }

    @Test func failsToOpenInAMissingFolder() async throws {
        let folder = try TemporaryFolder()
        let error = await #expect(throws: SQLiteError.self) {
            _ = try await DatabaseWriter.open(path: folder.file("missing/a.sqlite"))
        }
        #expect(error?.code == .cannotOpen)
    }
}
