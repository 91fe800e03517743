import Testing
import WeirClient

/// How the app's values become JSON, by the type of the server's column.
@Suite struct ValueTests {
    @Test(arguments: [
        ("text", "'ä \"q\" \\ '", #""ä \"q\" \\ ""#), ("text", "''", #""""#), ("text", "NULL", "null"),
        // A key of another table in an integer or a blob.
        ("text", "42", #""42""#),
        ("text", "x'00112233445566778899aabbccddeeff'", #""00112233-4455-6677-8899-aabbccddeeff""#),
        ("integer", "9007199254740991", "9007199254740991"), ("integer", "9007199254740992", #""9007199254740992""#),
        ("integer", "-9223372036854775808", #""-9223372036854775808""#), ("integer", "2.5", "2.5"),
        ("real", "0.1", "0.1"), ("real", "1e300", "1e+300"), ("real", "7", "7"), ("real", "-0.0", "0"),
        ("boolean", "0", "false"), ("boolean", "1", "true"),
        ("decimal(10,2)", "'12.50'", #""12.50""#), ("decimal(10,2)", "12.5", "12.5"), ("decimal(10,2)", "12", "12"),
        ("uuid", "'0A112233-4455-6677-8899-AABBCCDDEEFF'", #""0A112233-4455-6677-8899-AABBCCDDEEFF""#),
        ("uuid", "x'0A112233445566778899AABBCCDDEEFF'", #""0a112233-4455-6677-8899-aabbccddeeff""#),
        ("timestamp", "'2026-01-02T03:04:05.678+01:00'", #""2026-01-02T03:04:05.678+01:00""#),
        ("timestamp", "'2026-01-02 03:04:05.678'", #""2026-01-02T03:04:05.678000Z""#),
        ("timestamp", "'2026-01-02T03:04:05Z'", #""2026-01-02T03:04:05.000000Z""#),
        ("timestamp", "'2026-01-02T03:04:05.123456Z'", #""2026-01-02T03:04:05.123456Z""#),
        // The server says what is wrong with them.
        ("timestamp", "'2026-01-02T03:04:05.1234567Z'", #""2026-01-02T03:04:05.1234567Z""#),
        ("timestamp", "'2026-01-02T03:04:05.Z'", #""2026-01-02T03:04:05.Z""#),
        ("timestamp", "'2026-01-02T03:04:05.+1Z'", #""2026-01-02T03:04:05.+1Z""#),
        ("timestamp", "'2026-01-02 03:04'", #""2026-01-02T03:04:00.000000Z""#),
        ("timestamp", "'2026-01-02 03:04:05+00:00'", #""2026-01-02T03:04:05+00:00""#),
        ("timestamp", "0", #""1970-01-01T00:00:00.000000Z""#),
        ("timestamp", "1772323199", #""2026-02-28T23:59:59.000000Z""#),
        ("timestamp", "951782400", #""2000-02-29T00:00:00.000000Z""#),
        ("timestamp", "-1", #""1969-12-31T23:59:59.000000Z""#),
        ("timestamp", "-62135596800", #""0001-01-01T00:00:00.000000Z""#),
        ("timestamp", "253402300799", #""9999-12-31T23:59:59.000000Z""#),
        ("timestamp", "1772323199.25", #""2026-02-28T23:59:59.250000Z""#),
        ("timestamp", "-0.5", #""1969-12-31T23:59:59.500000Z""#),
        ("timestamp", "0.9999999", #""1970-01-01T00:00:01.000000Z""#),
        ("date", "'2026-01-02'", #""2026-01-02""#), ("date", "'2026-01-02 00:00:00.000'", #""2026-01-02""#),
        ("bytes", "x'00ff10'", #""AP8Q""#), ("bytes", "'abc'", #""YWJj""#), ("bytes", "x''", #""""#),
        ("json", #"'{"a": [1, null]}'"#, #"{"a": [1, null]}"#), ("json", "'\"text\"'", #""text""#),
        ("json", "x'5b315d'", "[1]"), ("json", "3", "3"), ("json", "' [] '", " [] "),
        // As deep as the server takes it.
        ("json", "'\(ValueTests.nested(64))'", ValueTests.nested(64)),
    ]) func isWritten(type: String, literal: String, json: String) throws {
        let app = try app(type)
        try app.run("INSERT INTO t VALUES ('k', \(literal))")
        #expect(try app.frozen() == [#"{"table":"t","id":"k","values":{"v":\#(json)},"base":0}"#])
    }

    @Test(arguments: [
        ("text", "x'00ff'", "v holds a blob of 2 bytes, in a column of type text"),
        ("text", "CAST(x'ff' AS TEXT)", "v holds a text that is not UTF-8"),
        ("text", "1.5", "v holds a real number, in a column of type text"),
        ("real", "9e999", "v holds a real number, in a column of type real"),
        ("integer", "'a'", "v holds a text, in a column of type integer"),
        ("boolean", "2", "v holds an integer, in a column of type boolean"),
        ("boolean", "'true'", "v holds a text, in a column of type boolean"),
        ("timestamp", "253402300800", "v holds an integer, in a column of type timestamp"),
        ("timestamp", "x'00'", "v holds a blob of 1 bytes, in a column of type timestamp"),
        ("date", "'2026-01-02 03:00'", "v holds a date with a time of day, in a column of type date"),
        ("json", "'{'", ValueTests.noJSON),
        ("json", "''", ValueTests.noJSON), ("json", "CAST(x'22ff22' AS TEXT)", ValueTests.noJSON),
        // What some parsers accept, and the server does not.
        ("json", "'[1,]'", ValueTests.noJSON),
        ("json", #"'{"a":1,}'"#, ValueTests.noJSON), ("json", "x'efbbbf5b5d'", ValueTests.noJSON),
        ("json", "x'5b005d00'", ValueTests.noJSON),
        ("json", "'\(ValueTests.nested(65))'", ValueTests.noJSON),
        ("json", "'\(ValueTests.nested(200))'", ValueTests.noJSON),
    ]) func whatTheTypeDoesNotHaveStaysPending(type: String, literal: String, reason: String) throws {
        let app = try app(type)
        try app.run("INSERT INTO t VALUES ('bad', \(literal)), ('good', NULL)")
        let frozen = try app.freeze()
        #expect(frozen.batch?.changeTexts == [#"{"table":"t","id":"good","values":{"v":null},"base":0}"#])
        #expect(frozen.held.map { [$0.table, $0.key, $0.reason] } == [["t", "'bad'", reason]])
        #expect(frozen.heldCount == 1)
        try app.acknowledge()
        #expect(try app.opened.pendingRows() == 1)
        try app.run("UPDATE t SET v = NULL WHERE id = 'bad'")
        #expect(try app.sync().count == 1)
    }

    @Test(arguments: [
        ("TEXT", "''"), ("TEXT", "CAST(zeroblob(2) AS TEXT)"), ("TEXT", "hex(zeroblob(128))"), ("TEXT", "x'00'"),
        ("TEXT", "CAST(x'ff' AS TEXT)"), ("INT", "'a'"), ("INT", "1.5"), ("BLOB", "x'0011'"), ("BLOB", "'text'"),
    ]) func aKeyThatIsNoIDStaysPending(type: String, key: String) throws {
        let app = try SyncedApp("CREATE TABLE t (id \(type) PRIMARY KEY, v TEXT)", server: ["t": ["v": "text"]])
        try app.open("t")
        try app.run("INSERT INTO t VALUES (\(key), 'v')")
        let frozen = try app.freeze()
        #expect(frozen.batch == nil)
        #expect(frozen.held.first?.reason.contains("its key is no id") == true)
        try app.run("DELETE FROM t")
        #expect(try app.freeze().held.isEmpty)
        #expect(try app.opened.pendingRows() == 0)
    }

    private static let noJSON = "v holds a text that is not JSON of at most 64 levels, in a column of type json"

    private static func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    private func app(_ type: String) throws -> SyncedApp {
        let app = try SyncedApp("CREATE TABLE t (id TEXT PRIMARY KEY, v)", server: ["t": ["v": type]])
        try app.open("t")
        return app
    }
}
