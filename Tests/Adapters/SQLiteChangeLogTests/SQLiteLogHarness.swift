import AsyncPrimitives
import ChangeLog
import ChangeLogConformance
import Configuration
import Foundation
import SQLite
import SQLiteChangeLog
import ThreadExecutor

/// A temporary folder with a log, and a second connection that blocks the log's writes.
final class SQLiteLogHarness: LogUnderTest {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "weir-log-\(UUID().uuidString)")

    var path: String { folder.appending(path: "log.sqlite").path }

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    deinit {
        do {
            try FileManager.default.removeItem(at: folder)
        } catch {
            assertionFailure("\(folder.path) stays: \(error)")
        }
    }

    func open(_ settings: LogSettings) async throws -> SQLiteChangeLog {
        try await SQLiteChangeLog(
            SQLiteChangeLogConfiguration(path: path).with(\.partitions, settings.partitions)
                .with(\.maximumRecordSize, settings.maximumRecordSize).with(\.queueBytes, settings.queueBytes))
    }

    func close(_ log: SQLiteChangeLog) async throws { try await log.close() }

    func whileWritesStall(_ log: SQLiteChangeLog, _ body: () async throws -> Void) async throws {
        // The writer waits for the lock; its timeout is longer than the body takes.
        try await OtherConnection.use(path) { other in
            try await other.execute("BEGIN IMMEDIATE")
            let result = await Result.capturing { try await body() }
            try await other.execute("ROLLBACK")
            try result.get()
        }
    }

    func whileAppendsFail(_ log: SQLiteChangeLog, _ body: () async throws -> Void) async throws {
        try await OtherConnection.use(path) { other in
            try await other.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON uploads_0 BEGIN SELECT RAISE(FAIL, 'the test refuses it'); END")
            let result = await Result.capturing { try await body() }
            try await other.execute("DROP TRIGGER refuse")
            try result.get()
        }
    }

    func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String], from log: SQLiteChangeLog
    ) async throws {
        try await log.removeRecords(of: topic, before: time, floors: floors, consumers: consumers)
    }

    /// Changes the file while no log has it open.
    func edit(_ sql: String) async throws {
        try await OtherConnection.use(path) { try await $0.execute(sql) }
    }
}

/// A second connection, on a thread of its own.
actor OtherConnection {
    private nonisolated let thread: DedicatedThread
    private let path: String
    private var connection: Connection?

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Runs a body with a connection, and closes it.
    static func use(_ path: String, _ body: (OtherConnection) async throws -> Void) async throws {
        let other = try OtherConnection(path: path)
        let result = await Result.capturing { try await body(other) }
        try await other.close()
        try result.get()
    }

    private init(path: String) throws {
        thread = try DedicatedThread(name: "other")
        self.path = path
    }

    func execute(_ sql: String) throws {
        let connection = try self.connection ?? Connection(path: path, access: .readWriteCreate())
        self.connection = connection
        try connection.execute(sql)
    }

    private nonisolated func close() async throws {
        let result = await Result.capturing { try await closeConnection() }
        await thread.close()
        try result.get()
    }

    private func closeConnection() throws { try connection?.close() }
}
