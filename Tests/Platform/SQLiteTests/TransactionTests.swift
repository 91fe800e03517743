import SQLite
import TestResources
import Testing

@Suite struct TransactionTests {
    @Test(arguments: [TransactionKind.deferred, .immediate])
    func commitsAtTheEndOfItsClosure(kind: TransactionKind) throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE t (i)")
            let result = try connection.transaction(kind) {
                #expect(connection.inTransaction)
                try connection.execute("INSERT INTO t VALUES (1)")
                return 5
            }
            #expect(result == 5)
            #expect(!connection.inTransaction)
            #expect(try connection.number("SELECT count(*) FROM t") == 1)
        }
    }

    @Test func rollsBackWhenItsClosureThrows() throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE t (i)")
            var select = try connection.prepare("SELECT i FROM t")
            do {
                try connection.transaction(.immediate) {
                    try connection.execute("INSERT INTO t VALUES (1), (2)")
                    #expect(try select.step())
                    throw Refusal(number: 3)
                }
                Issue.record("the error of the closure was lost")
            } catch {
                #expect(error as? Refusal == Refusal(number: 3))
            }
            #expect(!connection.inTransaction)
            select.reset()
            #expect(try connection.number("SELECT count(*) FROM t") == 0)
            try connection.transaction(.immediate) { try connection.execute("INSERT INTO t VALUES (1)") }
        }
    }

    @Test func rejectsANestedTransaction() throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE t (i)")
            try connection.transaction(.immediate) {
                try connection.execute("INSERT INTO t VALUES (1)")
                let error = sqliteError { try connection.transaction(.deferred) {} }
                #expect(error?.code == .misuse)
                #expect(error?.message == "a transaction is already open; transactions do not nest")
            }
            #expect(try connection.number("SELECT count(*) FROM t") == 1)
        }
    }

    @Test func reportsAClosureThatEndedTheTransaction() throws {
        try withConnection { connection throws in
            let error = sqliteError { try connection.transaction(.immediate) { try connection.execute("COMMIT") } }
            #expect(error?.code == .abort)
            #expect(error?.message == "the transaction ended before its closure did")
        }
    }

    @Test func rollsBackWhenTheDatabaseIsFull() throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE t (b BLOB); INSERT INTO t VALUES (x'01'); PRAGMA max_page_count = 20")
            let error = sqliteError {
                try connection.transaction(.immediate) {
                    var insert = try connection.prepare("INSERT INTO t VALUES (zeroblob(3000))")
                    while true { try insert.run() }
                }
            }
            #expect(error?.isFull == true)
            #expect(!connection.inTransaction)
            #expect(try connection.number("SELECT count(*) FROM t") == 1)
            try connection.transaction(.immediate) { try connection.execute("INSERT INTO t VALUES (x'02')") }
            #expect(try connection.number("SELECT count(*) FROM t") == 2)
        }
    }

    @Test func writesNothingAfterSQLiteItselfRolledBack() throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE t (i UNIQUE); INSERT INTO t VALUES (1)")
            let error = sqliteError {
                try connection.transaction(.immediate) {
                    try connection.execute("INSERT INTO t VALUES (2)")
                    let first = sqliteError { try connection.execute("INSERT OR ROLLBACK INTO t VALUES (1)") }
                    #expect(first?.isConstraint == true)
                    #expect(!connection.inTransaction)
                    let second = sqliteError { try connection.execute("INSERT INTO t VALUES (3)") }
                    #expect(second?.code == .abort)
                    #expect(sqliteError { try connection.transaction(.immediate) {} }?.code == .misuse)
                }
            }
            #expect(error?.code == .abort)
            #expect(try connection.number("SELECT sum(i) FROM t") == 1)
            try connection.execute("INSERT INTO t VALUES (4)")
        }
    }

    @Test func aReaderSeesOneSnapshotWhileTheWriterCommits() throws {
        let folder = try TemporaryFolder()
        try withConnection(to: folder.file(), access: .readWriteCreate()) { writer throws in
            try writer.execute("CREATE TABLE t (i); INSERT INTO t VALUES (1)")
            try withConnection(to: folder.file(), access: .readOnly) { reader throws in
                try reader.transaction(.deferred) {
                    #expect(try reader.number("SELECT count(*) FROM t") == 1)
                    try writer.execute("INSERT INTO t VALUES (2)")
                    #expect(try reader.number("SELECT count(*) FROM t") == 1)
                }
                #expect(try reader.number("SELECT count(*) FROM t") == 2)
            }
        }
    }

    @Test func aReaderIsNotBlockedByAnOpenWriteTransaction() throws {
        let folder = try TemporaryFolder()
        let impatient = ConnectionOptions(busyTimeoutMilliseconds: 0)
        try withConnection(to: folder.file(), access: .readWriteCreate()) { writer throws in
            try writer.execute("CREATE TABLE t (i); INSERT INTO t VALUES (1)")
            try withConnection(to: folder.file(), access: .readOnly, options: impatient) { reader throws in
                try writer.transaction(.immediate) {
                    try writer.execute("INSERT INTO t VALUES (2)")
                    #expect(try reader.number("SELECT count(*) FROM t") == 1)
                }
                #expect(try reader.number("SELECT count(*) FROM t") == 2)
            }
        }
    }
}
