import SQLite
import TestResources
import Testing
import ThreadExecutor

@Suite struct DatabaseReaderPoolTests {
    /// Runs a body with a writer, a table `t` of one row, and readers.
    private func withDatabase(
        count: Int = 2, waitingLimit: Int = 1024,
        _ body: (DatabaseWriter, DatabaseReaderPool) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        try await writer.write { try $0.execute("CREATE TABLE t (i); INSERT INTO t VALUES (1)") }
        let readers = try await DatabaseReaderPool.open(path: folder.file(), count: count, waitingLimit: waitingLimit)
        try await body(writer, readers)
        try await readers.close()
        try await writer.close()
    }

    @Test func readsCommittedRows() async throws {
        try await withDatabase { writer, readers in
            #expect(try await readers.read { try $0.number("SELECT count(*) FROM t") } == 1)
            try await writer.write { try $0.execute("INSERT INTO t VALUES (2)") }
            #expect(try await readers.read { try $0.number("SELECT count(*) FROM t") } == 2)
        }
    }

    @Test func aReadSeesOneSnapshotWhileTheWriterCommits() async throws {
        try await withDatabase { writer, readers in
            let gate = ThreadGate()
            let counts = Task {
                try await readers.read { connection in
                    let before = try connection.number("SELECT count(*) FROM t")
                    gate.pass()
                    return [before, try connection.number("SELECT count(*) FROM t")]
                }
            }
            await gate.isReached()
            try await writer.write { try $0.execute("INSERT INTO t VALUES (2)") }
            #expect(try await readers.read { try $0.number("SELECT count(*) FROM t") } == 2)
            gate.open()
            #expect(try await counts.value == [1, 1])
        }
    }

    @Test func readsWhileTheWriterHasAnOpenTransaction() async throws {
        try await withDatabase { writer, readers in
            let gate = ThreadGate()
            let writing = Task {
                try await writer.write { connection in
                    try connection.execute("INSERT INTO t VALUES (2)")
                    gate.pass()
                }
            }
            await gate.isReached()
            #expect(try await readers.read { try $0.number("SELECT count(*) FROM t") } == 1)
            gate.open()
            try await writing.value
            #expect(try await readers.read { try $0.number("SELECT count(*) FROM t") } == 2)
        }
    }

    @Test func readsAtTheSameTimeOnSeveralThreads() async throws {
        try await withDatabase(count: 2) { _, readers in
            let gates = [ThreadGate(), ThreadGate()]
            let readings = gates.map { gate in
                Task { try await readers.read { _ in gate.pass() } }
            }
            // Both run at the same time, before either may end.
            for gate in gates { await gate.isReached() }
            for gate in gates { gate.open() }
            for reading in readings { try await reading.value }
        }
    }

    @Test func rejectsAWrite() async throws {
        try await withDatabase { _, readers in
            let error = await #expect(throws: SQLiteError.self) {
                try await readers.read { try $0.execute("INSERT INTO t VALUES (2)") }
            }
            #expect(error?.isReadOnly == true)
        }
    }

    @Test func servesMoreCallersThanConnections() async throws {
        try await withDatabase(count: 2) { _, readers in
            let sum = try await withThrowingTaskGroup(of: Int64.self) { group in
                for value in 0..<300 as Range<Int64> {
                    group.addTask { try await readers.read { try $0.number("SELECT i * \(value) FROM t") } }
                }
                return try await group.reduce(0, +)
            }
            #expect(sum == (0..<300).reduce(0, +))
        }
    }

    @Test(.timeLimit(.minutes(5))) func rejectsACallerAboveTheWaitingLimit() async throws {
        try await withDatabase(count: 1, waitingLimit: 0) { _, readers in
            let gate = ThreadGate()
            let first = Task { try await readers.read { _ in gate.pass() } }
            await gate.isReached()
            await #expect(throws: PoolUnavailable.overloaded(limit: 1)) { try await readers.read { _ in } }
            gate.open()
            try await first.value
            try await readers.read { _ in }
        }
    }

    @Test(.timeLimit(.minutes(5))) func aCancelledCallerStopsWaiting() async throws {
        try await withDatabase(count: 1) { _, readers in
            let gate = ThreadGate()
            let first = Task { try await readers.read { _ in gate.pass() } }
            await gate.isReached()
            let second = Task.immediate { try await readers.read { _ in } }
            second.cancel()
            // The only connection is in use: only the cancellation can end the wait.
            await #expect(throws: CancellationError.self) { try await second.value }
            gate.open()
            try await first.value
            try await readers.read { _ in }
        }
    }

    @Test(.timeLimit(.minutes(5))) func closesAfterTheWaitingCallersAndRejectsLaterOnes() async throws {
        try await withDatabase(count: 1) { _, readers in
            let gate = ThreadGate()
            let first = Task { try await readers.read { _ in gate.pass() } }
            await gate.isReached()
            // Each runs until it waits before the test continues.
            let waiting = (0..<3).map { _ in
                Task.immediate { try await readers.read { try $0.number("SELECT count(*) FROM t") } }
            }
            let closer = Task.immediate { try await readers.close() }
            await #expect(throws: PoolUnavailable.closed) { try await readers.read { _ in } }
            gate.open()
            try await first.value
            for reading in waiting { #expect(try await reading.value == 1) }
            try await closer.value
        }
    }

    @Test func failsToOpenAMissingFile() async throws {
        let folder = try TemporaryFolder()
        let error = await #expect(throws: SQLiteError.self) {
            _ = try await DatabaseReaderPool.open(path: folder.file())
        }
        #expect(error?.code == .cannotOpen)
    }
}
