import SQLite
import TestResources
import Testing

@Suite struct DatabaseCopyTests {
    @Test func copiesASnapshotWithTheHeader() async throws {
        let folder = try TemporaryFolder()
        let writer = try await DatabaseWriter.open(path: folder.file())
        try await writer.write { connection in
            try connection.execute("CREATE TABLE t (i); INSERT INTO t VALUES (1); PRAGMA application_id = 77")
            try connection.setUserVersion(5)
        }
        // While the writer is open and its rows are in the write-ahead log.
        try await DatabaseCopy.make(of: folder.file(), at: folder.file("copy"))
        try await writer.write { try $0.execute("INSERT INTO t VALUES (2)") }
        try withConnection(to: folder.file("copy"), access: .readOnly) { copy in
            let numbers = [
                try copy.number("SELECT count(*) FROM t"), try copy.number("PRAGMA application_id"),
                try copy.number("PRAGMA user_version"),
            ]
            #expect(numbers == [1, 77, 5])
        }
        try await writer.close()
    }

    @Test func failsWithoutADatabase() async throws {
        let folder = try TemporaryFolder()
        let missing = await #expect(throws: SQLiteError.self) {
            try await DatabaseCopy.make(of: folder.file("none"), at: folder.file("copy"))
        }
        #expect(missing?.code == .cannotOpen)
        #expect(!folder.exists("copy") && !folder.exists("none"))
    }
}
