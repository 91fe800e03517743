import ChangeLog
import Configuration
import Ingest
import Observability
import SyncModel
import Synchronization
import Testing

@Suite struct SettingsTests {
    private func load(_ environment: [String: String]) throws -> IngestConfiguration {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(IngestConfiguration.self, as: "ingest", "Ingest")
        return try schema.load(from: ConfigurationSources(environment: environment)) { $0.read() }.settings
    }

    @Test func readsEveryKey() throws {
        #expect(try load(["WEIR_INGEST_STEP_BYTES": "64KiB"]).stepBytes == 65_536)
        #expect(try load([:]).stepBytes == IngestConfiguration().stepBytes)
    }

    @Test(arguments: ["0", "1KiB", "1GiB", "many"])
    func refusesStepsOutsideTheirRange(size: String) {
        #expect(throws: ConfigurationProblems.self) { try load(["WEIR_INGEST_STEP_BYTES": size]) }
    }

    @Test func writesEventsAsLogLines() {
        let lines = Lines()
        let logger = Logger(label: "ingest", output: LogOutput(format: .text, to: lines, now: { 0 }), level: .debug)
        let upload = UploadReference(partition: 3, offset: 9)
        IngestEvent.recordRefused(upload, RecordRefusal(.malformedChanges, "no array")).write(to: logger)
        let cause = ChangeLogError(.inputOutput, message: "no leader", isRetriable: true)
        IngestEvent.restarting(partition: 3, cause: cause, after: .seconds(2)).write(to: logger)
        IngestEvent.endedUncommitted(partition: 3, cause: cause).write(to: logger)
        IngestEvent.admitted(partition: 3, IngestCounts()).write(to: logger)
        IngestEvent.paused(partition: 3, cause: IngestError.unknownRules(upload, 99)).write(to: logger)
        let texts = lines.texts
        #expect(texts.count == 5 && texts.allSatisfy { $0.contains("topic=uploads") && $0.contains("partition=3") })
        #expect(texts[0].contains("offset=9") && texts[0].contains("no array"))
        #expect(texts[0].contains("code=malformed_changes"))
        #expect(texts[1].contains("no leader") && texts[1].contains("duration_s=2"))
        #expect(texts[2].contains("no leader"))
        #expect(texts[4].contains("critical") && texts[4].contains("rules version 99"))
    }
}

/// Keeps log lines.
private final class Lines: LogSink {
    private let lines = Mutex<[String]>([])

    var texts: [String] { lines.withLock { $0 } }

    func write(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
}
