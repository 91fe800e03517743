import Synchronization
import TestResources
import Testing
import WeirClient

/// Apps write at any moment of a session.
@Suite struct WritingMeanwhileTests {
    /// One of a session's statements, before which another connection writes.
    private final class Moment: Sendable {
        private let state = Mutex((number: 0, left: 0, hasWritten: false))

        /// - Returns: whether the app could write: between two transactions of the session.
        var hasWritten: Bool { state.withLock { $0.hasWritten } }

        func begin(at statement: Int) { state.withLock { $0 = (statement, statement, false) } }

        /// Whether the statement was not reached.
        var isAfterEnd: Bool { state.withLock { $0.left > 0 } }

        func willRun(_ path: String) {
            let number = state.withLock { state in
                state.left -= 1
                return state.left == 0 ? state.number : nil
            }
            guard let number else { return }
            do {
                let database = try Database(path: path)
                defer { database.close() }
                try database.run("PRAGMA busy_timeout = 0")
                try database.run("UPDATE item SET title = 'mine \(number)' WHERE id = 'a'")
                state.withLock { $0.hasWritten = true }
            } catch {
                // The session has the lock.
            }
        }
    }

    @Test func whatTheAppWritesAtAnyMomentOfAPullIsNeitherLostNorOverwritten() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device.synced(server)
        let (moment, path) = (Moment(), device.folder.file())
        StatementTrace.begin(path) { moment.willRun(path) }
        defer { StatementTrace.end(path) }
        // Of a connection that is opened from now on each statement is seen.
        try await device.restart()
        try await device.attach(server)
        var writes = 0
        for statement in 1... {
            server.write("item", "a", ["title": "theirs \(statement)"])
            moment.begin(at: statement)
            try await device.weir.sync()
            if moment.isAfterEnd { break }
            guard moment.hasWritten else { continue }
            writes += 1
            try await device.weir.sync()
            // What comes to the server last wins.
            #expect(server.live.first?.contains("mine \(statement)") == true, "at statement \(statement)")
        }
        #expect(writes > 10)
    }
}
