import SQLite
import TestResources
import Testing

@Suite struct StatementTests {
    private let table = "CREATE TABLE t (i INTEGER, d REAL, s TEXT, b BLOB)"

    @Test(arguments: [Int64.min, -1, 0, 1, 1 << 53, Int64.max])
    func keepsIntegers(value: Int64) throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT ?1")
            try statement.bind(integer: value, at: 1)
            #expect(try statement.step())
            #expect(statement.type(at: 0) == .integer)
            #expect(try statement.integer(at: 0) == value)
        }
    }

    @Test(arguments: [0.0, -0.0, 1.5, .pi, .greatestFiniteMagnitude, .leastNonzeroMagnitude, -.infinity])
    func keepsDoubles(value: Double) throws {
        try withConnection { connection throws in
            try connection.execute(table)
            var insert = try connection.prepare("INSERT INTO t (d) VALUES (?1)")
            try insert.bind(double: value, at: 1)
            try insert.run()
            var select = try connection.prepare("SELECT d FROM t")
            #expect(try select.step())
            #expect(select.type(at: 0) == .double)
            #expect(try select.double(at: 0) == value)
        }
    }

    @Test(arguments: ["", "a", "nul\u{0}inside", "\u{E9}", "e\u{301}", "😀", String(repeating: "long ", count: 10_000)])
    func keepsTextByteByByte(text: String) throws {
        try withConnection { connection throws in
            try connection.execute(table)
            var insert = try connection.prepare("INSERT INTO t (s) VALUES (?1)")
            try insert.bind(text: text, at: 1)
            try insert.run()
            var select = try connection.prepare("SELECT s FROM t")
            #expect(try select.step())
            #expect(select.type(at: 0) == .text)
            #expect(try Array(select.text(at: 0).utf8) == Array(text.utf8))
            #expect(try select.bytes(at: 0) == Array(text.utf8))
            #expect(try !select.step())
        }
    }

    @Test(arguments: [[], [0], [0xFF, 0, 0xFE], [UInt8](repeating: 7, count: 1 << 20)])
    func keepsBlobsCopiedOrBorrowed(blob: [UInt8]) throws {
        try withConnection { connection throws in
            try connection.execute(table)
            var insert = try connection.prepare("INSERT INTO t (b) VALUES (?1)")
            try insert.bind(blob: blob, at: 1)
            try insert.run()
            try insert.bind(blob: blob.span.bytes, at: 1)
            try insert.run()
            try insert.run(borrowingBlob: blob.span.bytes, at: 1)
            var select = try connection.prepare("SELECT b FROM t")
            for _ in 0..<3 {
                #expect(try select.step())
                #expect(select.type(at: 0) == .blob)
                #expect(try select.bytes(at: 0) == blob)
                let count = try select.withBytes(at: 0) { $0.byteCount }
                #expect(count == blob.count)
            }
        }
    }

    @Test func distinguishesAnEmptyBlobAndAnEmptyTextFromNull() throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT ?1, ?2, ?3, ?4")
            try statement.bind(blob: [], at: 1)
            try statement.bind(text: "", at: 2)
            try statement.bindNull(at: 3)
            #expect(try statement.step())
            #expect(statement.type(at: 0) == .blob)
            #expect(statement.type(at: 1) == .text)
            #expect(statement.isNull(at: 2) == true)
            #expect(statement.isNull(at: 3) == true)
            #expect(statement.isNull(at: 0) == false)
            // A span without memory.
            statement.reset()
            try statement.bind(blob: RawSpan(), at: 3)
            try statement.bind(text: RawSpan(), at: 4)
            #expect(try statement.step())
            #expect(statement.type(at: 2) == .blob)
            #expect(statement.type(at: 3) == .text)
        }
    }

    @Test func readsBytesOnlyThroughTheBorrowedSpan() throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT x'0102ff', 'text'")
            #expect(try statement.step())
            let sum = try statement.withBytes(at: 0) { bytes in
                (0..<bytes.byteCount).reduce(0) { $0 + Int(bytes.unsafeLoad(fromByteOffset: $1, as: UInt8.self)) }
            }
            #expect(sum == 1 + 2 + 255)
            #expect(throws: Refusal(number: 4)) {
                try statement.withBytes(at: 1) { throw Refusal(number: $0.byteCount) }
            }
        }
    }

    @Test func unbindsBorrowedBytesAfterTheRun() throws {
        try withConnection { connection throws in
            try connection.execute(table)
            var insert = try connection.prepare("INSERT INTO t (i, b) VALUES (?1, ?2)")
            try insert.bind(integer: 1, at: 1)
            let blob: [UInt8] = [1, 2, 3]
            try insert.run(borrowingBlob: blob.span.bytes, at: 2)
            try insert.run()
            #expect(try connection.number("SELECT count(*) FROM t WHERE b IS NULL AND i = 1") == 1)
            #expect(try connection.number("SELECT count(*) FROM t WHERE b = x'010203' AND i = 1") == 1)
        }
    }

    @Test func rejectsAnotherTypeThanRequested() throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT NULL, 'one', 1, x'ff', CAST(x'ff' AS TEXT)")
            #expect(try statement.step())
            for column in [0, 1, 3, 4] {
                #expect(sqliteError { _ = try statement.integer(at: column) }?.code == .mismatch)
                #expect(sqliteError { _ = try statement.double(at: column) }?.code == .mismatch)
            }
            for column in [0, 2, 3, 4] {
                #expect(sqliteError { _ = try statement.text(at: column) }?.code == .mismatch)
            }
            for column in [0, 2] {
                #expect(sqliteError { _ = try statement.bytes(at: column) }?.code == .mismatch)
            }
            #expect(try statement.double(at: 2) == 1)
            let error = sqliteError { _ = try statement.integer(at: 0) }
            #expect(error?.message == "column 0 holds null, not an integer")
            #expect(error?.action == .read)
        }
    }

    @Test func keepsItsBindingsAfterAReset() throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT ?1")
            try statement.bind(integer: 5, at: 1)
            #expect(try statement.step())
            statement.reset()
            #expect(try statement.step())
            #expect(try statement.integer(at: 0) == 5)
            #expect(statement.columnCount == 1)
        }
    }

    @Test func rejectsBindingBetweenRowsAndBeyondItsParameters() throws {
        try withConnection { connection throws in
            var statement = try connection.prepare("SELECT ?1")
            #expect(sqliteError { try statement.bind(integer: 1, at: 2) }?.code == .range)
            #expect(sqliteError { try statement.bind(integer: 1, at: 0) }?.code == .range)
            #expect(sqliteError { try statement.bind(integer: 1, at: .max) }?.code == .range)
            #expect(try statement.step())
            let error = sqliteError { try statement.bind(integer: 1, at: 1) }
            #expect(error?.code == .misuse)
            #expect(error?.action == .bind)
            #expect(error?.sql == "SELECT ?1")
        }
    }

    @Test func canBeReusedAfterAnError() throws {
        try withConnection { connection throws in
            try connection.execute("CREATE TABLE u (k INTEGER PRIMARY KEY)")
            var insert = try connection.prepare("INSERT INTO u VALUES (?1)")
            try insert.bind(integer: 1, at: 1)
            try insert.run()
            #expect(sqliteError { try insert.run() }?.isConstraint == true)
            try insert.bind(integer: 2, at: 1)
            try insert.run()
            #expect(try connection.number("SELECT count(*) FROM u") == 2)
        }
    }

    @Test func aCachedStatementIsResetAndWithoutBindings() throws {
        try withConnection { connection throws in
            func first(binding value: Int64?) throws -> Bool {
                var statement = try connection.statement("SELECT ?1 UNION ALL SELECT 2")
                if let value { try statement.bind(integer: value, at: 1) }
                #expect(try statement.step())
                return statement.isNull(at: 0)
            }
            #expect(try !first(binding: 1))
            #expect(try first(binding: nil))
        }
    }

    @Test func theSameLiteralCanBeInUseTwice() throws {
        try withConnection { connection throws in
            func depth(_ rest: Int64) throws -> Int64 {
                var statement = try connection.statement("SELECT ?1")
                try statement.bind(integer: rest, at: 1)
                #expect(try statement.step())
                let below = rest > 0 ? try depth(rest - 1) : 0
                return try statement.integer(at: 0) + below
            }
            #expect(try depth(3) == 6)
            #expect(try depth(3) == 6)
        }
    }

    /// Without a limit, a connection to tables whose columns change would keep every text that it ever ran.
    @Test func cachedTextsAreResetAndOfALimitedNumber() throws {
        try withConnection { connection throws in
            func first(of text: String, binding value: Int64?) throws -> Bool {
                var statement = try connection.statement(caching: text)
                if let value { try statement.bind(integer: value, at: 1) }
                #expect(try statement.step())
                return statement.isNull(at: 0)
            }
            for number in 0..<500 { #expect(try !first(of: "SELECT ?1, \(number)", binding: 1)) }
            for number in 0..<500 { #expect(try first(of: "SELECT ?1, \(number)", binding: nil)) }
            #expect(connection.cachedTexts == 400)
            // One of a text that is in use is a second one.
            var statement = try connection.statement(caching: "SELECT ?1, 0")
            try statement.bind(integer: 7, at: 1)
            #expect(try statement.step())
            #expect(try first(of: "SELECT ?1, 0", binding: nil))
            #expect(try statement.integer(at: 0) == 7)
            #expect(sqliteError { _ = try connection.statement(caching: "SELECT 1; SELECT 2") }?.code == .misuse)
        }
    }

    @Test func trapsWhenAColumnIsReadWithoutARow() async throws {
        // Created here, since a process that traps does not remove it.
        let folder = try TemporaryFolder()
        let path = folder.file()
        await #expect(processExitsWith: .trap) { [path = path as String] in
            try withConnection(to: path, access: .readWriteCreate()) { connection in
                let statement = try connection.prepare("SELECT 1")
                _ = statement.type(at: 0)
            }
        }
    }
}
