import Commands
import Configuration
import Kafka
import KafkaChangeLog
import Observability
import Synchronization
import Testing

@Suite struct KafkaConfigurationTests {
    private func load(
        _ environment: [String: String], files: [String: String] = [:]
    ) throws -> KafkaChangeLogConfiguration {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(KafkaChangeLogConfiguration.self, as: "kafka", "Kafka")
        let sources = ConfigurationSources(
            environment: environment,
            readFile: { (path, _) throws(FileFault) in
                guard let text = files[path] else { throw FileFault(code: 2, message: "no such file") }
                return Array(text.utf8)
            })
        return try schema.load(from: sources) { $0.read() }.settings
    }

    @Test func readsEveryKey() throws {
        let configuration = try load(
            [
                "WEIR_KAFKA_SERVERS": "a:9092, b:9092", "WEIR_KAFKA_TOPIC_PREFIX": "weir.",
                "WEIR_KAFKA_MAX_RECORD_BYTES": "8MiB", "WEIR_KAFKA_QUEUE_BYTES": "16MiB",
                "WEIR_KAFKA_FETCH_BYTES": "4MiB", "WEIR_KAFKA_LINGER_MS": "1", "WEIR_KAFKA_COMPRESSION": "zstd",
                "WEIR_KAFKA_CLOSE_TIMEOUT": "3s", "WEIR_KAFKA_SESSION_TIMEOUT": "7s",
                "WEIR_KAFKA_INSTANCE_NAME": "ingest-1",
                "WEIR_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
                "WEIR_KAFKA_SASL_PASSWORD_FILE": "secret",
                "WEIR_KAFKA_PROPERTIES": "socket.nagle.disable=true,api.version.request.timeout.ms=5000",
            ], files: ["secret": "hunter2\n"])
        #expect(configuration.servers == ["a:9092", "b:9092"])
        #expect(configuration.topicPrefix == "weir.")
        #expect(configuration.maximumRecordSize == 8 << 20)
        #expect(configuration.queueBytes == 16 << 20)
        #expect(configuration.fetchBytes == 4 << 20)
        #expect(configuration.lingerMilliseconds == 1)
        #expect(configuration.compression == .zstd)
        #expect(configuration.closeTimeout == .seconds(3))
        #expect(configuration.sessionTimeout == .seconds(7))
        #expect(configuration.instanceName == "ingest-1")
        let names = Set(configuration.properties.map(\.name))
        #expect(
            names == [
                "security.protocol", "sasl.password", "socket.nagle.disable", "api.version.request.timeout.ms",
            ])
        #expect(configuration.properties.first { $0.name == "sasl.password" }?.value.reveal() == "hunter2")
        #expect(!String(reflecting: configuration).contains("hunter2"))
    }

    @Test func defaultsHaveTheDocumentedBounds() throws {
        let configuration = try load(["WEIR_KAFKA_SERVERS": "a:9092"])
        #expect(configuration.queueBytes == 32 << 20)
        #expect(configuration.fetchBytes == 16 << 20)
        #expect((0...1).contains(configuration.lingerMilliseconds))
    }

    /// Properties that could lose acknowledged changes have no key, and cannot be set through librdkafka's names.
    @Test(arguments: [
        "enable.idempotence=false", "acks=1", "request.required.acks=0", "enable.gapless.guarantee=false",
        "message.timeout.ms=1000", "delivery.timeout.ms=1000", "retries=0", "message.send.max.retries=0",
        "transactional.id=t", "auto.offset.reset=latest", "group.id=g", "enable.auto.commit=true",
        "partition.assignment.strategy=range", "bootstrap.servers=elsewhere:9092", "linger.ms=100",
        "queue.buffering.max.ms=100", "compression.codec=none", "session.timeout.ms=1",
    ])
    func rejectsPropertiesThatGuaranteesDependOn(property: String) {
        let problems = #expect(throws: ConfigurationProblems.self) {
            try load(["WEIR_KAFKA_SERVERS": "a:9092", "WEIR_KAFKA_PROPERTIES": property])
        }
        #expect(problems?.description.contains("cannot be set") == true)
    }

    /// Kafka would reject the member each time it joins.
    @Test(arguments: ["ingest 1", "..", "ingest/1"]) func rejectsAnInstanceNameThatKafkaDoesNotAllow(name: String) {
        let problems = #expect(throws: ConfigurationProblems.self) {
            try load(["WEIR_KAFKA_SERVERS": "a:9092", "WEIR_KAFKA_INSTANCE_NAME": name])
        }
        #expect(problems?.description.contains("kafka.instance-name") == true)
    }

    @Test func explainsAnInvalidPropertyWithoutShowingIt() {
        for property in ["no.such.thing=hunter2", "socket.timeout.ms=hunter2", "hunter2", "sasl.password=hunter2"] {
            let problems = #expect(throws: ConfigurationProblems.self) {
                try load(["WEIR_KAFKA_SERVERS": "a:9092", "WEIR_KAFKA_PROPERTIES": property])
            }
            #expect(problems?.description.contains("kafka.properties") == true)
            #expect(problems?.description.contains("hunter2") == false)
        }
        let problems = #expect(throws: ConfigurationProblems.self) {
            try load(["WEIR_KAFKA_SERVERS": "a:9092", "WEIR_KAFKA_SECURITY_PROTOCOL": "telnet"])
        }
        #expect(problems?.description.contains("kafka.security.protocol") == true)
    }

    /// A client whose login fails logs no password, also with all of librdkafka's debug output.
    @Test func neverLogsASecret() async throws {
        var configuration = try load(
            [
                "WEIR_KAFKA_SERVERS": "127.0.0.1:1", "WEIR_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
                "WEIR_KAFKA_SASL_MECHANISM": "PLAIN", "WEIR_KAFKA_SASL_USERNAME": "weir",
                "WEIR_KAFKA_SASL_PASSWORD_FILE": "secret", "WEIR_KAFKA_DEBUG": "all",
            ], files: ["secret": "hunter2"])
        configuration.closeTimeout = .milliseconds(1)
        let lines = Lines()
        let logger = Logger(label: "kafka", output: LogOutput(format: .text, to: lines), level: .trace)
        let failing = configuration
        let opening = Task { try await KafkaChangeLog(failing, logger: logger) }
        await lines.wait { $0.contains("librdkafka log") }
        await lines.wait { $0.contains("Kafka reports an error") }
        #expect(!lines.text.contains("hunter2"))
        #expect(lines.text.contains("[redacted]") || !lines.text.contains("sasl.password"))
        // It fails by itself after the time limit, which the test does not wait for.
        opening.cancel()
    }
}

/// Records log lines, and lets tests wait for one.
private final class Lines: LogSink {
    private struct State {
        var text = ""
        var waiting: [(isMet: @Sendable (String) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var text: String { state.withLock { $0.text } }

    func write(_ line: [UInt8]) {
        let met = state.withLock { state in
            state.text += String(decoding: line, as: UTF8.self)
            let text = state.text
            let met = state.waiting.filter { $0.isMet(text) }
            state.waiting.removeAll { $0.isMet(text) }
            return met
        }
        for waiting in met { waiting.continuation.resume() }
    }

    func wait(until isMet: @escaping @Sendable (String) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMetNow = state.withLock { state in
                if isMet(state.text) { return true }
                state.waiting.append((isMet, continuation))
                return false
            }
            if isMetNow { continuation.resume() }
        }
    }
}
