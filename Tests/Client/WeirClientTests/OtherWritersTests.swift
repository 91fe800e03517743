import Foundation
import Synchronization
import TestResources
import TestSignals
import Testing
import WeirClient

/// Capture does not depend on who writes: any connection, with any settings, and any process.
@Suite(.timeLimit(.minutes(2))) struct OtherWritersTests {
    @Test func theAppsCountsAndRowidsAreThoseOfItsOwnStatements() throws {
        let app = try SyncedApp.withItem()
        try app.run("INSERT INTO item VALUES ('b', 'B', NULL)")
        #expect(try app.query("SELECT last_insert_rowid()") == ["2"])
        try app.run("UPDATE item SET note = 'm'")
        #expect(try app.query("SELECT changes()") == ["2"])
        #expect(try app.query("REPLACE INTO item VALUES ('c', 'C', NULL) RETURNING id") == ["'c'"])
        #expect(try app.query("SELECT changes()") == ["1"])
        #expect(try app.query("SELECT last_insert_rowid()") == ["3"])
    }

    /// Settings of a connection that could keep triggers from running or writing.
    @Test(arguments: [
        "PRAGMA trusted_schema = OFF", "PRAGMA foreign_keys = OFF", "PRAGMA recursive_triggers = ON",
        "PRAGMA case_sensitive_like = ON", "PRAGMA ignore_check_constraints = ON",
        "PRAGMA reverse_unordered_selects = ON",
        "PRAGMA defer_foreign_keys = ON", "PRAGMA query_only = OFF", "PRAGMA journal_mode = WAL",
        "PRAGMA journal_mode = TRUNCATE",
    ]) func changesOfAConnectionWithThisSettingAreCaptured(pragma: String) throws {
        let app = try SyncedApp.withItem()
        let other = try Database(path: app.path)
        try other.execute(pragma)
        try other.execute("UPDATE item SET title = 'B'; INSERT OR REPLACE INTO item VALUES ('b', 'C', NULL)")
        #expect(try app.sync().count == 2)
    }

    /// Without any call, and without an event of the server.
    @Test(arguments: ["WAL", "DELETE"]) func whatAnotherProcessWritesIsSentByAWeirThatRuns(mode: String) async throws {
        let server = EventfulServer(ContractServer(Device.tables))
        let device = try await Device()
        await device.weir.close()
        try device.run("PRAGMA journal_mode = \(mode)")
        try await device.restart()
        let weir = device.weir
        try await weir.attach("abc", server: Device.url, options: SyncOptions(transport: server))
        try await weir.start()
        try await server.opened.nextOrCancellation()
        for await status in weir.status where status.phase == .idle && status.isComplete { break }
        await #expect(processExitsWith: .success) { [path = device.folder.file() as String] in
            let connection = try Database(path: path)
            try connection.execute("INSERT INTO item VALUES ('a', 'by another process', NULL)")
        }
        for await status in weir.status where status.phase == .idle && !server.server.live.isEmpty { break }
        #expect(server.server.live == [#"item a {"note":null,"title":"by another process"} 1"#])
        #expect(try await weir.pendingRows() == 0)
        await weir.close()
    }

    @Test func aProcessThatDiesWhileItAppliesChangesLeavesCaptureOn() async throws {
        let app = try SyncedApp.withItem()
        await #expect(processExitsWith: .failure) { [path = app.path as String] in
            let file = try ClientFile(path: path, tables: ["item"])
            try file.applying {
                try $0.run("UPDATE item SET title = 'never committed'")
                exit(1)
            }
        }
        try app.run("UPDATE item SET note = 'm'")
        #expect(try app.sync() == [#"{"table":"item","id":"a","values":{"note":"m"},"base":101}"#])
    }

    /// A writer that holds the lock is waited for, by the app and by Weir.
    @Test func writersTakeTurns() throws {
        let app = try SyncedApp.withItem()
        let count = 200
        let path = app.path
        // SQLite lets nobody wait in a queue: how long one waits depends on the machine.
        let patience = "PRAGMA busy_timeout = 60000"
        try app.opened.database.run(patience)
        let failure = Mutex<(any Error)?>(nil)
        let writing = DispatchGroup()
        DispatchQueue.global().async(group: writing) {
            do {
                let connection = try Database(path: path)
                try connection.run(patience)
                for number in 1...count { try connection.execute("INSERT INTO item VALUES ('n\(number)', 'N', NULL)") }
            } catch {
                failure.withLock { $0 = error }
            }
        }
        var changes: [String] = []
        var isWriting = true
        while isWriting {
            // Without a pause the writer would find the lock taken nearly always.
            isWriting = writing.wait(timeout: .now() + .milliseconds(1)) == .timedOut
            changes += try app.sync(changes: 7)
        }
        #expect(failure.withLock { $0 } == nil)
        #expect(changes.count == count)
        #expect(Set(changes).count == count)
        #expect(try app.opened.pendingRows() == 0)
    }
}
