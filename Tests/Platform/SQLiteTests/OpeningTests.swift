import Glibc
import SQLite
import TestResources
import Testing

@Suite struct OpeningTests {
    private func openError(_ path: String, _ access: Access = .readWriteCreate()) -> SQLiteError? {
        sqliteError { try withConnection(to: path, access: access) { _ in } }
    }

    @Test func namesAMissingFolder() throws {
        let folder = try TemporaryFolder()
        let error = openError(folder.file("missing/a.sqlite"))
        #expect(error?.code == .cannotOpen)
        #expect(error?.action == .open)
        #expect(error?.message == "the folder \(folder.path)/missing does not exist; create it or correct the path")
    }

    @Test func namesAMissingFileWhenReadOnly() throws {
        let folder = try TemporaryFolder()
        let error = openError(folder.file(), .readOnly)
        #expect(error?.code == .cannotOpen)
        #expect(error?.message.hasPrefix("the file does not exist") == true)
        #expect(!folder.exists("test.sqlite"))
    }

    @Test func rejectsAFolderAndAFileInAFile() throws {
        let folder = try TemporaryFolder()
        try folder.write([1], to: "plain")
        #expect(openError(folder.path)?.message == "the path is a folder; set a file in it")
        #expect(
            openError(folder.file("plain/a.sqlite"))?.message
                == "\(folder.path)/plain is a file, not a folder; correct the path")
        #expect(openError("")?.code == .cannotOpen)
        #expect(openError(folder.file("a\u{0}b"))?.code == .cannotOpen)
        #expect(!folder.exists("a"))
    }

    @Test func doesNotInterpretAPathAsAURI() throws {
        let folder = try TemporaryFolder()
        #expect(openError("file:" + folder.file())?.message.hasPrefix("the folder file:/") == true)
        #expect(!folder.exists("test.sqlite"))
    }

    @Test(.enabled(if: geteuid() != 0, "root may write any file"))
    func rejectsOpeningAReadOnlyFileForWriting() throws {
        let folder = try TemporaryFolder()
        try withConnection(to: folder.file(), access: .readWriteCreate()) { try $0.setUserVersion(1) }
        #expect(chmod(folder.file(), 0o444) == 0)
        let error = openError(folder.file())
        #expect(error?.isReadOnly == true)
        #expect(error?.message.hasPrefix("the database is read-only; give this process the right to write") == true)
        #expect(chmod(folder.file(), 0) == 0)
        #expect(openError(folder.file(), .readOnly)?.message.hasPrefix("permission denied; give this process") == true)
    }

    @Test func namesAFolderWithoutWritePermission() {
        // Not even root may create files in sysfs.
        let error = openError("/sys/weir.sqlite")
        #expect(error?.code == .cannotOpen)
        #expect(
            error?.message == "the file could not be created; give this process the right to write in the folder /sys")
    }

    @Test(arguments: [true, false])
    func rejectsAFileThatIsNoDatabase(forReading: Bool) throws {
        let folder = try TemporaryFolder()
        let content = [UInt8]("this is no database, though it is long enough to have a header of 100 bytes. ".utf8)
        try folder.write(content + content, to: "text")
        let error = openError(folder.file("text"), forReading ? .readOnly : .readWriteCreate())
        #expect(error?.code == .notADatabase)
        #expect(error?.isCorrupt == true)
        #expect(error?.message.hasPrefix("the file is no SQLite database") == true)
        #expect(try folder.read("text") == content + content)
    }

    @Test func rejectsWritesOfAReadOnlyConnection() throws {
        let folder = try TemporaryFolder()
        try withConnection(to: folder.file(), access: .readWriteCreate()) { writer throws in
            try writer.execute("CREATE TABLE t (i)")
            try withConnection(to: folder.file(), access: .readOnly) { reader throws in
                let error = sqliteError { try reader.execute("INSERT INTO t VALUES (1)") }
                #expect(error?.isReadOnly == true)
                #expect(error?.action == .step)
                #expect(try reader.number("SELECT count(*) FROM t") == 0)
            }
        }
    }

    @Test func isBusyWhileAnotherConnectionWrites() throws {
        let folder = try TemporaryFolder()
        let impatient = ConnectionOptions(busyTimeoutMilliseconds: 0)
        try withConnection(to: folder.file(), access: .readWriteCreate(), options: impatient) { first throws in
            try first.execute("CREATE TABLE t (i)")
            try withConnection(to: folder.file(), access: .readWriteCreate(), options: impatient) { second throws in
                try first.transaction(.immediate) {
                    let error = sqliteError { try second.transaction(.immediate) {} }
                    #expect(error?.isBusy == true)
                    #expect(error?.action == .transaction)
                    #expect(error?.sql == "BEGIN IMMEDIATE")
                }
                try second.transaction(.immediate) { try second.execute("INSERT INTO t VALUES (1)") }
            }
        }
    }

    @Test func reportsADamagedFile() throws {
        let folder = try TemporaryFolder()
        try withConnection(to: folder.file(), access: .readWriteCreate()) { connection throws in
            try connection.execute(
                """
                CREATE TABLE t (i INTEGER PRIMARY KEY, s TEXT);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
                INSERT INTO t SELECT i, 'row ' || i FROM n
                """)
            try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        var bytes = try folder.read("test.sqlite")
        for page in 3..<6 {
            for offset in 0..<32 { bytes[page * 4096 + offset] ^= 0xA5 }
        }
        try folder.write(bytes, to: "test.sqlite")
        try withConnection(to: folder.file(), access: .readOnly) { connection throws in
            #expect(sqliteError { _ = try connection.number("SELECT sum(length(s)) FROM t") }?.isCorrupt == true)
        }
    }
}
