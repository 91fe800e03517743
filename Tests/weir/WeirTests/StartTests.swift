import Foundation
import SQLite
import Testing

/// What `weir run` reports when it cannot start, and what it logs.
@Suite(.timeLimit(.minutes(5))) struct StartTests {
    private let folder: TestFolder

    init() throws {
        folder = try TestFolder()
        try folder.write(TestServer.schema, to: "schema.yaml")
    }

    /// Runs with a schema and a folder that exist, unless said otherwise; the last line's error.
    private func refusal(
        schema: String = "schema.yaml", data: String = "data", address: String = "127.0.0.1:0", _ more: String...
    ) async throws -> String {
        let run = try await CommandRun.run(
            ["run", "--schema", schema, "--data", data, "--address", address, "--log-format", "json"] + more,
            in: folder)
        #expect(run.code == 1)
        #expect(run.output.isEmpty)
        let last = try JSON.line(try #require(run.errorLines.last))
        #expect(last["level"].string == "critical")
        #expect(last["message"].string == "Weir stops after an error")
        return try #require(last["error"].string)
    }

    private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: folder.path + "/" + name) }

    @Test func aMissingOrInvalidSchemaIsRefusedBeforeFilesAreCreated() async throws {
        #expect(
            try await refusal(schema: "none.yaml")
                == "the schema file none.yaml cannot be read: No such file or directory")
        try folder.write("tables:\n  person:\n    columns:\n      name: txt\n", to: "bad.yaml")
        let bad = try await refusal(schema: "bad.yaml")
        #expect(bad.hasPrefix("bad.yaml:4:13: "))
        #expect(bad.hasSuffix("did you mean text?"))
        #expect(!exists("data"))
    }

    @Test func aFolderInUseIsRefusedAndItsProcessContinues() async throws {
        let weir = try await TestServer.start(in: folder)
        #expect(
            try await refusal()
                == "the data folder data cannot be locked: another weir uses it; name another with --data")
        var device = TestDevice(weir, syncID: "abc", knowledgeID: "k1")
        let answer = try await device.sync([TestDevice.change("p1", ["name": "A"])])
        #expect(TestDevice.verdicts(answer) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    /// Sizes that contain one another, before anything is accepted that would not fit.
    @Test func sizesThatDoNotFitAreRefusedWithTheirSum() async throws {
        #expect(
            try await refusal("--changelog.max-record-bytes", "1MiB", "--piece-bytes", "768KiB")
                == "piece-bytes is 786432; with 524288 bytes of ids it is 1310720, more than max-record-bytes, 1048576: "
                + "lower the one or raise the other")
        let rows = try await refusal("--changelog.max-record-bytes", "1MiB")
        #expect(
            rows.hasPrefix(
                "limits.max-row-bytes is 2097152; twice that, for the defaults of later columns, and 524288 "))
        #expect(rows.hasSuffix("set limits.max-row-bytes to at most 262144"))
        let batches = try await refusal("--changelog.max-record-bytes", "1MiB", "--limits.max-row-bytes", "256KiB")
        #expect(batches.hasSuffix("set limits.max-batch-bytes to at most 524288"))
        // What is refused fixes nothing; a history's records are as large as they were when it was created.
        let weir = try await TestServer.start(in: folder, settings: ["changelog.max-record-bytes": "8MiB"])
        #expect(await weir.stop() == 0)
        let later = try await refusal(
            "--partitions", "2", "--clock", "sequence(100)", "--limits.max-row-bytes", "4MiB")
        #expect(later.contains("more than a record, 8388608 "))
        let values = try await CommandRun.run(
            ["run", "--schema", "schema.yaml", "--data", "data", "--limits.max-row-bytes", "1KiB"], in: folder)
        #expect(values.code != 0)
        #expect(values.errors.contains("is 1024, less than max-value-bytes, 262144"))
        let batchRows = try await CommandRun.run(
            ["run", "--schema", "schema.yaml", "--data", "data", "--limits.max-batch-row-bytes", "1MiB"], in: folder)
        #expect(batchRows.errors.contains("is 1048576, less than max-row-bytes, 2097152"))
    }

    @Test func largeRowsAloneNeedNoLargerLimitOfABatch() async throws {
        let weir = try await TestServer.start(in: folder, settings: ["limits.max-row-bytes": "20MiB"])
        let schema = try await DeviceClient(port: weir.port, syncID: "abc").get("/v1/schema").json()
        #expect(schema["limits"]["maxRowBytes"].int == 20 << 20 && schema["limits"]["maxBatchRowBytes"].int == 20 << 20)
        #expect(await weir.stop() == 0)
    }

    @Test func aLogWithSmallerRecordsThanItsHistoryIsRefused() async throws {
        let weir = try await TestServer.start(in: folder)
        #expect(await weir.stop() == 0)
        #expect(
            try await refusal("--changelog.max-record-bytes", "8MiB", "--partitions", "2", "--clock", "sequence(100)")
                == "the records of this history have up to 67108864 bytes, and max-record-bytes is 8388608: set it to "
                + "67108864 or more")
    }

    @Test(arguments: ["0.0.0.0:0", "[::]:0"])
    func anAddressBeyondLoopbackIsRefusedWithoutAuthentication(address: String) async throws {
        let error = try await refusal(address: address)
        #expect(error.contains("every client that can reach \(address) could read and write all data"))
        #expect(error.contains("listen on loopback only: 127.0.0.1:0"))
    }

    @Test func anAddressInUseIsReported() async throws {
        let weir = try await TestServer.start()
        #expect(
            try await refusal(address: "127.0.0.1:\(weir.port)")
                == "port \(weir.port) of 127.0.0.1 is used by another process; stop it or choose another port")
        #expect(await weir.stop() == 0)
    }

    @Test func aFolderThatCannotBeCreatedOrWrittenIsReported() async throws {
        try folder.write("", to: "file")
        #expect(
            try await refusal(data: "file")
                == "the data folder file cannot be written: Not a directory; name another with --data")
        #expect(
            try await refusal(data: "no/folder")
                == "the data folder no/folder cannot be made: No such file or directory; name another with --data")
    }

    @Test func aFolderOfAnotherApplicationIsNotChanged() async throws {
        try FileManager.default.createDirectory(atPath: folder.path + "/data", withIntermediateDirectories: true)
        let path = folder.path + "/data/log.db"
        let connection = try Connection(path: path, access: .readWriteCreate())
        try connection.execute("CREATE TABLE song (title TEXT)")
        try connection.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let error = try await refusal()
        #expect(error == "data/log.db is a database of another application; set another data folder")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)

        try Data("Dear diary, today I have learned about files.".utf8).write(to: URL(fileURLWithPath: path))
        let text = try await refusal()
        #expect(text.contains("data/log.db: the file is no SQLite database"))
    }

    @Test func tablesWithoutTheirLogAreRefused() async throws {
        let weir = try await TestServer.start(in: folder)
        #expect(await weir.stop() == 0)
        try FileManager.default.removeItem(atPath: folder.path + "/data/log.db")
        let error = try await refusal()
        #expect(error.hasPrefix("data/log.db is missing while data/tables.db is there: restore the log"))
        #expect(!exists("data/log.db"))
    }

    @Test func theSettingsOfAHistoryCannotBeChanged() async throws {
        let weir = try await TestServer.start(in: folder)
        #expect(await weir.stop() == 0)
        let partitions = try await refusal("--partitions", "8", "--clock", "sequence(100)")
        #expect(partitions.contains("made with 2 partitions, 8 are configured"))
        #expect(partitions.contains("set partitions to 2"))
        let clock = try await refusal("--partitions", "2", "--clock", "log-time")
        #expect(clock.contains("made with clock sequence(100), log-time is configured: set it back"))
        let again = try await TestServer.start(in: folder)
        #expect(await again.stop() == 0)
    }

    @Test func everyLineOfAJSONLogIsAnObjectWithTimeLevelLabelAndMessage() async throws {
        let weir = try await TestServer.start(in: folder, settings: ["log.level": "trace"])
        #expect(await weir.stop() == 0)
        let lines = weir.log
        #expect(lines.count > 5)
        for text in lines {
            let line = try JSON.line(text)
            let time = line["time"].string ?? ""
            #expect(time.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/) != nil, "\(text)")
            let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
            #expect(levels.contains(line["level"].string ?? ""), "\(text)")
            #expect(line["label"].string?.isEmpty == false, "\(text)")
            #expect(line["message"].string?.isEmpty == false, "\(text)")
        }
    }

    @Test func everyLineOfATextLogIsReadable() async throws {
        let weir = try await TestServer.start()
        let run = try await CommandRun.run(
            "run", "--schema", "schema.yaml", "--data", "data", "--address", "127.0.0.1:\(weir.port)", in: folder)
        #expect(await weir.stop() == 0)
        #expect(run.code == 1)
        #expect(run.errorLines.count > 1)
        for line in run.errorLines {
            let form = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (?:info|notice|warning|error|critical) +[a-z]+: \S.*/
            #expect(line.wholeMatch(of: form) != nil, "\(line)")
        }
        #expect(run.errors.contains(" critical weir: Weir stops after an error error=\"port \(weir.port) "))
    }

    @Test func theFirstStartLogsNoStreamsAndALostStreamIsLogged() async throws {
        let first = try await TestServer.start(in: folder)
        #expect(try Self.streamLines(first).isEmpty)
        var device = TestDevice(first, syncID: "abc", knowledgeID: "k1")
        _ = try await device.sync([TestDevice.change("p1", ["name": "A"])])
        #expect(await first.stop() == 0)

        let second = try await TestServer.start(in: folder)
        #expect(try Self.streamLines(second).isEmpty)
        #expect(await second.stop() == 0)

        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data")
        where name.hasPrefix("fanout-") {
            try FileManager.default.removeItem(atPath: folder.path + "/data/" + name)
        }
        let third = try await TestServer.start(in: folder)
        let lines = try Self.streamLines(third)
        // One owner's partition has rows; the other has nothing to rebuild.
        try #require(lines.map { $0["level"].string } == ["warning", "notice"])
        #expect(lines[0]["message"].string?.hasPrefix("Stream must be rebuilt: there is no file ") == true)
        #expect(lines[1]["message"].string == "Stream was rebuilt with 1 rows")
        #expect(lines[0]["partition"] == lines[1]["partition"])
        #expect(await third.stop() == 0)
    }

    /// What the fan-out has logged at the default level.
    private static func streamLines(_ weir: WeirProcess) throws -> [JSON] {
        try weir.log.map(JSON.line).filter { $0["label"].string == "fanout" }
    }
}

extension JSON {
    /// Reads a line of text.
    static func line(_ text: String) throws -> JSON { JSON(try JSONSerialization.jsonObject(with: Data(text.utf8))) }
}
