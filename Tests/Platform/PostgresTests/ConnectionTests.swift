import Postgres
import PostgresServer
import Testing
import ThreadExecutor

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ConnectionTests {
    /// The rows of the table t.
    private func count(_ connection: PostgresConnection) throws -> Int64 {
        try connection.query("SELECT count(*) FROM t").bigint(0, 0)
    }

    @Test func valuesAndArraysAreSentAndReadInBinary() async throws {
        try await withSession { connection in
            var parameters = PostgresParameters()
            parameters.append(Int64.min)
            parameters.append(Int32.max)
            parameters.append("é\u{1F600}")
            parameters.appendNull()
            parameters.append("")
            let rows = try connection.query("SELECT $1::bigint, $2::integer, $3::text, $4::text, $5::text", parameters)
            let (least, greatest) = (try rows.bigint(0, 0), try rows.integer(0, 1))
            #expect(least == .min && greatest == .max)
            let texts = [try rows.text(0, 2), try rows.text(0, 4)]
            #expect(texts == ["é\u{1F600}", ""])
            let areNull = [rows.isNull(0, 3), rows.isNull(0, 4)]
            #expect(areNull == [true, false])
            do {
                _ = try rows.integer(0, 0)
                Issue.record("a value of eight bytes was read as one of four")
            } catch {
                #expect("\(error)".contains("8 bytes"))
            }
        }
    }

    @Test func arraysKeepOrderAndNulls() async throws {
        try await withSession { connection in
            var texts = BinaryArray(.text)
            var reals = BinaryArray(.double)
            for (text, real) in [("a", 0.1), (nil, nil), ("", -0.5)] as [(String?, Double?)] {
                if let text { texts.append(text) } else { texts.appendNull() }
                if let real { reals.append(real) } else { reals.appendNull() }
            }
            var parameters = PostgresParameters()
            parameters.append(texts)
            parameters.append(reals)
            parameters.append(BinaryArray(.bigint))
            let rows = try connection.query(
                "SELECT t, r, cardinality($3::bigint[]) FROM unnest($1::text[], $2::float8[]) AS u (t, r)", parameters)
            var found: [String] = []
            for row in 0..<rows.count {
                let text = rows.isNull(row, 0) ? "null" : try rows.text(row, 0)
                let real = rows.isNull(row, 1) ? "null" : "\(try rows.double(row, 1))"
                found.append("\(text) \(real) \(try rows.integer(row, 2))")
            }
            #expect(found == ["a 0.1 0", "null null 0", " -0.5 0"])
            let full = try connection.query("SELECT ARRAY['x', 'ä', '']::text[]").texts(0, 0)
            let empty = try connection.query("SELECT ARRAY[]::text[]").texts(0, 0)
            #expect(full == ["x", "ä", ""] && empty == [])
        }
    }

    @Test(arguments: [
        "0", "1", "-1", "0.5", "-0.0001", "10000", "99999999", "10000.0001", "12345.678", "0.00001000", "100000000",
        "1.0", "0.000", "123456789012345678901234567890.123456789", "9999", "0.0000000000000000000000000001",
    ])
    func numericsRoundTrip(text: String) async throws {
        try await withSession { connection in
            var numbers = BinaryArray(.numeric)
            let isNumber = numbers.append(numeric: text.utf8.span)
            #expect(isNumber)
            var parameters = PostgresParameters()
            parameters.append(numbers)
            let rows = try connection.query("SELECT u, u::text FROM unnest($1::numeric[]) AS u", parameters)
            let spelled = try rows.text(0, 1)
            #expect(spelled == text)
            var read: [UInt8] = []
            try rows.withBytes(0, 0) { binary throws(PostgresError) in
                try PostgresNumeric.appendText(of: binary, to: &read)
            }
            #expect(String(decoding: read, as: UTF8.self) == text)
        }
    }

    @Test(arguments: ["NaN", "Infinity", "-Infinity"])
    func numericsThatAreNotFiniteAreRejected(text: String) async throws {
        try await withSession { connection in
            let rows = try connection.query("SELECT '\(text)'::numeric")
            var read: [UInt8] = []
            do {
                try rows.withBytes(0, 0) { binary throws(PostgresError) in
                    try PostgresNumeric.appendText(of: binary, to: &read)
                }
                Issue.record("\(text) was read as \(read)")
            } catch {
                #expect("\(error)".contains("no finite number"))
            }
        }
    }

    @Test func aCopyIsAtomic() async throws {
        try await withSession { connection in
            try connection.execute("CREATE TEMP TABLE t (a bigint PRIMARY KEY, b text NOT NULL)")
            let copy = "COPY t FROM STDIN (FORMAT binary)"
            try connection.copy(copy, Self.rows(1...40_000))
            let before = try count(connection)
            #expect(before == 40_000)
            do throws(PostgresError) {
                try connection.copy(copy, Self.rows(39_999...50_000))
                Issue.record("rows with an existing key were inserted")
            } catch {
                #expect(error.sqlState?.code == "23505" && !error.isConnectionLost, "\(error)")
            }
            let after = try count(connection)
            #expect(after == 40_000)
            let last = try connection.queryOnce("SELECT b FROM t WHERE a = 40000").text(0, 0)
            #expect(last == String(repeating: "é", count: 20) + "40000")
        }
    }

    @Test(arguments: ["COPY nothing FROM STDIN (FORMAT binary)", "SELECT 1", "SELECT"])
    func copyRejectsOtherStatementsAndTheSessionStaysUsable(sql: String) async throws {
        try await withSession { connection in
            #expect(throws: PostgresError.self) { try connection.copy(sql, Self.rows(1...1)) }
            let two = try connection.queryOnce("SELECT 2::bigint").bigint(0, 0)
            #expect(two == 2)
        }
    }

    /// Rows of a number and a text as a copy in binary format.
    private static func rows(_ numbers: ClosedRange<Int>) -> [UInt8] {
        var bytes = BinaryCopy()
        for number in numbers {
            bytes.beginRow(columns: 2)
            bytes.append(Int64(number))
            bytes.append(bytes: (String(repeating: "é", count: 20) + "\(number)").utf8.span)
        }
        return bytes.take()
    }

    @Test func anErrorHasCodeAndNamesAndTheSessionStaysUsable() async throws {
        try await withSession { connection in
            try connection.execute("CREATE TEMP TABLE t (a integer CONSTRAINT small CHECK (a < 5))")
            let error = #expect(throws: PostgresError.self) { try connection.execute("INSERT INTO t VALUES (7)") }
            #expect(error?.sqlState == SQLState("23514"))
            #expect(error?.table == "t")
            #expect(error?.constraint == "small")
            #expect(error?.isRetriable == false)
            #expect(error?.isConnectionLost == false)
            // Neither the row nor its values.
            #expect(error?.description.contains("7") == false)
            #expect(try count(connection) == 0)
        }
    }

    @Test func aFailedStatementEndsThePipeline() async throws {
        try await withSession { connection in
            try connection.execute("CREATE TEMP TABLE t (a bigint PRIMARY KEY)")
            let names = try connection.prepare(["INSERT INTO t VALUES ($1::bigint) RETURNING a", "BEGIN", "COMMIT"])
            let (insert, begin, commit) = (names[0], names[1], names[2])
            func insertAll(_ values: [Int64]) throws -> [Int64] {
                var returned: [Int64] = []
                try connection.pipeline { pipeline in
                    try pipeline.send(begin)
                    for value in values {
                        var parameters = PostgresParameters()
                        parameters.append(value)
                        try pipeline.send(insert, parameters)
                    }
                    try pipeline.send(commit)
                } receive: { _, rows in
                    if rows.count > 0 { returned.append(try rows.bigint(0, 0)) }
                }
                return returned
            }
            #expect(try insertAll([1, 2, 3]) == [1, 2, 3])
            let error = #expect(throws: PostgresError.self) { try insertAll([4, 2, 5]) }
            #expect(error?.statement == 2)
            #expect(error?.sqlState == SQLState("23505"))
            #expect(connection.inTransaction)
            try connection.rollBack()
            #expect(try count(connection) == 3)
        }
    }

    @Test func anErrorOfThePipelinesSenderWritesNothing() async throws {
        struct Enough: Error {}
        try await withSession { connection in
            try connection.execute("CREATE TEMP TABLE t (a bigint)")
            let names = try connection.prepare(["BEGIN", "INSERT INTO t VALUES (1)"])
            let (begin, insert) = (names[0], names[1])
            #expect(throws: Enough.self) {
                try connection.pipeline { pipeline in
                    try pipeline.send(begin)
                    try pipeline.send(insert)
                    throw Enough()
                }
            }
            try connection.rollBack()
            #expect(try count(connection) == 0)
        }
    }

    @Test func aPipelineLargerThanTheSocketBuffersCompletes() async throws {
        try await withSession { connection in
            let echo = try connection.prepare(["SELECT $1::text"])[0]
            let text = String(repeating: "x", count: 100_000)
            var received = 0
            try connection.pipeline { pipeline in
                for _ in 0..<200 {
                    var parameters = PostgresParameters()
                    parameters.append(text)
                    try pipeline.send(echo, parameters)
                }
            } receive: { _, rows in
                received += try rows.text(0, 0).utf8.count
            }
            #expect(received == 200 * 100_000)
        }
    }

    @Test func manyStatementsAreDeallocatedAndPreparedAgain() async throws {
        let parameters = try ConnectionParameters(try await PostgresServer.shared().connectionString())
        let pool = try await PostgresPool.start(parameters, count: 1)
        for round in 0..<5 {
            try await pool.perform { connection in
                for number in 0..<80 {
                    let expected = Int64(round * 50 + number)
                    let found = try connection.query("SELECT \(expected)::bigint").bigint(0, 0)
                    #expect(found == expected)
                }
            }
        }
        let count = try await pool.perform { connection in
            try connection.query("SELECT count(*) FROM pg_prepared_statements").bigint(0, 0)
        }
        #expect(count < 300)
        await pool.close()
    }

    @Test func statementsInUseAreKeptAndThoseUsedLongestAgoGivenUp() async throws {
        let parameters = try ConnectionParameters(try await PostgresServer.shared().connectionString())
        let pool = try await PostgresPool.start(parameters, count: 1, maximumStatements: 20)
        let used = (0..<10).map { "SELECT \($0)" }
        let first = try await pool.perform { try $0.prepare(used) }
        for round in 1...10 {
            let names = try await pool.perform { connection in
                try connection.prepare((0..<5).map { "SELECT \(round * 100 + $0)" } + used)
            }
            #expect(names.suffix(10) == first[...])
        }
        let count = try await pool.perform { connection in
            try connection.query("SELECT count(*) FROM pg_prepared_statements").bigint(0, 0)
        }
        // Those of one use may exceed the limit until the next.
        #expect((15...26).contains(count), "\(count)")
        await pool.close()
    }

    @Test func statementsArePreparedTogetherAndOneThatFailsIsNoneOfAPipeline() async throws {
        try await withSession { connection in
            let error = #expect(throws: PostgresError.self) {
                try connection.prepare(["SELECT 1", "SELECT 1", "SELECT nothing FROM nowhere", "SELECT 2"])
            }
            #expect(error?.sqlState == SQLState("42P01") && error?.statement == nil)
            let names = try connection.prepare(["SELECT 2", "SELECT 1", "SELECT 2"])
            #expect(names[0] == names[2] && names[0] != names[1])
            let prepared = try connection.queryOnce(
                "SELECT name, statement FROM pg_prepared_statements ORDER BY statement")
            #expect(try (0..<prepared.count).map { try prepared.text($0, 0) } == [names[1], names[0]])
            var values: [Int32] = []
            try connection.pipeline { pipeline in
                for name in names { try pipeline.send(name) }
            } receive: { _, rows in
                values.append(try rows.integer(0, 0))
            }
            #expect(values == [2, 1, 2])
        }
    }

    @Test func aSessionThatTheServerEndedIsReopened() async throws {
        let parameters = try ConnectionParameters(try await PostgresServer.shared().connectionString())
        let pool = try await PostgresPool.start(parameters, count: 1)
        let first = try await pool.perform { $0.backendID }
        let error = await #expect(throws: PostgresError.self) {
            try await pool.perform { try $0.execute("SELECT pg_terminate_backend(pg_backend_pid())") }
        }
        #expect(error?.sqlState == .adminShutdown)
        #expect(error?.isConnectionLost == true)
        #expect(error?.isRetriable == true)
        let second = try await pool.perform { $0.backendID }
        #expect(second != first)
        // A session that ended while it was idle is detected before its next use.
        _ = try await withSession { try $0.query("SELECT pg_terminate_backend(\(second), 5000)").boolean(0, 0) }
        let one = try await pool.perform { try $0.query("SELECT 1::bigint").bigint(0, 0) }
        #expect(one == 1)
        await pool.close()
        await #expect(throws: PoolUnavailable.closed) { try await pool.perform { $0.backendID } }
    }

    @Test func aTransactionLeftOpenIsRolledBack() async throws {
        let parameters = try ConnectionParameters(try await PostgresServer.shared().connectionString())
        let pool = try await PostgresPool.start(parameters, count: 1)
        try await pool.perform { try $0.execute("CREATE TEMP TABLE t (a bigint)") }
        try await pool.perform { try $0.execute("BEGIN; INSERT INTO t VALUES (1)") }
        let inTransaction = try await pool.perform { $0.inTransaction }
        let rows = try await pool.perform { connection in try count(connection) }
        #expect(!inTransaction && rows == 0)
        await pool.close()
    }
}
