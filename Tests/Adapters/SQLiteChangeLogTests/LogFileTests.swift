import ChangeLog
import ChangeLogConformance
import Configuration
import Foundation
import SQLite
import Testing

@testable import SQLiteChangeLog

@Suite(.timeLimit(.minutes(5))) struct LogFileTests {
    private let place = TopicPartition(.uploads, 0)

    @Test func syncsTheWriteAheadLogAtEveryCommit() throws {
        let directory = try SQLiteLogHarness()
        let file = try LogFile(SQLiteChangeLogConfiguration(path: directory.path))
        try check(file.connection)
        try file.connection.close()
    }

    private func check(_ connection: Connection) throws {
        var synchronous = try connection.prepare("PRAGMA synchronous")
        #expect(try synchronous.step())
        #expect(try synchronous.integer(at: 0) == 2)
        var journal = try connection.prepare("PRAGMA journal_mode")
        #expect(try journal.step())
        #expect(try journal.text(at: 0) == "wal")
    }

    @Test func rejectsADatabaseOfAnotherApplicationWithoutChangingIt() async throws {
        for sql in ["CREATE TABLE notes (text TEXT)", "PRAGMA application_id = 5", "PRAGMA user_version = 1"] {
            let directory = try SQLiteLogHarness()
            try await directory.edit(sql)
            let error = await #expect(throws: ChangeLogError.self) { try await directory.open(LogSettings()) }
            #expect(error?.message.contains("database of another application") == true)
            #expect(error?.message.contains(directory.path) == true)
            await #expect(throws: SQLiteError.self) { try await directory.edit("SELECT * FROM weir_log") }
        }
    }

    @Test func rejectsANewerFormatAndNamesBoth() async throws {
        let directory = try SQLiteLogHarness()
        try await directory.open(LogSettings()).close()
        try await directory.edit("PRAGMA user_version = 2")
        let error = await #expect(throws: ChangeLogError.self) { try await directory.open(LogSettings()) }
        #expect(error?.message.contains("format 2") == true)
        #expect(error?.message.contains("knows 1") == true)
    }

    @Test func rejectsAFileThatIsNoDatabaseAndAMissingFolder() async throws {
        let directory = try SQLiteLogHarness()
        try Data(repeating: 65, count: 5000).write(to: URL(filePath: directory.path))
        let error = await #expect(throws: ChangeLogError.self) { try await directory.open(LogSettings()) }
        #expect(error?.code == .corrupt)
        await #expect(throws: ChangeLogError.self) {
            try await SQLiteChangeLog(SQLiteChangeLogConfiguration(path: directory.path + "/missing/log"))
        }
    }

    @Test(arguments: [0, -1, 1025]) func rejectsAnInvalidNumberOfPartitions(count: Int) async throws {
        let directory = try SQLiteLogHarness()
        let error = await #expect(throws: ChangeLogError.self) {
            try await SQLiteChangeLog(SQLiteChangeLogConfiguration(path: directory.path).with(\.partitions, count))
        }
        #expect(error?.message.contains("1 to 1024") == true)
    }

    /// A start that fails before it wrote anything has not decided how many there are.
    @Test func anEmptyLogTakesTheConfiguredNumberOfPartitions() async throws {
        let directory = try SQLiteLogHarness()
        func open(_ partitions: Int) async throws -> SQLiteChangeLog {
            try await SQLiteChangeLog(
                SQLiteChangeLogConfiguration(path: directory.path).with(\.partitions, partitions))
        }
        for count in [4, 2, 7] {
            let log = try await open(count)
            #expect(log.partitionCount == count)
            _ = try await log.range(of: TopicPartition(.ordered, count - 1))
            try await log.close()
        }
        let log = try await open(3)
        try await log.producer().append([NewRecord(to: TopicPartition(.control, 0), value: [1])])
        try await log.close()
        let reopened = try await open(5)
        #expect(reopened.partitionCount == 3)
        #expect(try await reopened.range(of: TopicPartition(.control, 0)).end == 1)
        try await reopened.close()
    }

    @Test func rethrowsCancellation() async throws {
        let directory = try SQLiteLogHarness()
        try await directory.open(LogSettings()).close()
        let files = try await LogFileReaders(path: directory.path, threads: 1)
        let read = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await files.read(place, from: 0, to: 1, maximumBytes: 1)
        }
        await #expect(throws: CancellationError.self) { try await read.value }
        try await files.close()
        let error = await #expect(throws: ChangeLogError.self) {
            try await files.read(place, from: 0, to: 1, maximumBytes: 1)
        }
        #expect(error?.code == .closed)
    }

    @Test func reportsMissingRecords() async throws {
        let directory = try SQLiteLogHarness()
        var log = try await directory.open(LogSettings())
        try await log.producer().append((0..<5).map { NewRecord(to: place, value: [UInt8($0)]) })
        try await log.close()
        try await directory.edit("DELETE FROM uploads_0 WHERE place = 2")
        log = try await directory.open(LogSettings())
        let reader = try await log.reader(of: place, from: 0)
        let error = await #expect(throws: ChangeLogError.self) { try await reader.next(maximumBytes: 1 << 20) }
        #expect(error?.code == .corrupt)
        try await log.close()
    }

    /// An append of another process makes this process's offsets wrong: it must not overwrite records or change their order.
    @Test func failsInsteadOfOverwritingRecordsOfAnotherProcess() async throws {
        let directory = try SQLiteLogHarness()
        let log = try await directory.open(LogSettings())
        try await directory.edit("INSERT INTO uploads_0 VALUES (0, 0, x'', x'01')")
        await #expect(throws: ChangeLogError.self) {
            try await log.producer().append([NewRecord(to: place, value: [2])])
        }
        try await log.close()
        let reopened = try await directory.open(LogSettings())
        #expect(try await reopened.reader(of: place, from: 0).next(maximumBytes: 1).map(\.value) == [[1]])
        try await reopened.close()
    }
}
