import AsyncPrimitives
import ChangeLog
import Commands
import Configuration
import Foundation
import KafkaChangeLog
import KafkaServer
import ServerShell
import Testing
import ThreadExecutor

/// Brokers with TLS and passwords.
@Suite(.timeLimit(.minutes(5)), .enabled(if: TestCluster.mayKill, "needs WEIR_TEST_LENGTH=long and KAFKA_HOME"))
struct SecurityTests {
    /// Creates an authority, the broker's certificate from it, and an authority that signs nothing.
    private static let certificates = """
        cd "$1" || exit 1
        authority() {
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.crt" 2> /dev/null
        }
        authority authority && authority other \
        && openssl req -newkey rsa:2048 -nodes -subj /CN=broker -keyout broker.key -out broker.csr 2> /dev/null \
        && printf 'subjectAltName=IP:127.0.0.1\\n' > names \
        && openssl x509 -req -in broker.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 \
        -extfile names -out broker.crt 2> /dev/null \
        && cat broker.key broker.crt authority.crt > broker.pem && echo done
        """

    /// The broker's settings: TLS, and passwords for clients and the broker itself.
    private static func settings(_ folder: String) -> [String: String] {
        [
            "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM", "ssl.keystore.location": "\(folder)/broker.pem", "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "\(folder)/authority.crt", "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config":
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"broker\" "
                + "password=\"inner\" user_broker=\"inner\" user_weir=\"hunter2\";",
        ]
    }

    private static func configuration(
        _ kafka: KafkaServer, _ folder: String, authority: String = "authority", password: String = "hunter2"
    ) throws -> KafkaChangeLogConfiguration {
        let file = "\(folder)/password-\(UUID().uuidString)"
        try Data("\(password)\n".utf8).write(to: URL(fileURLWithPath: file))
        var schema = ConfigurationSchema(program: "weir")
        schema.add(KafkaChangeLogConfiguration.self, as: "kafka", "Kafka")
        let sources = ConfigurationSources(environment: [
            "WEIR_KAFKA_SERVERS": kafka.servers, "WEIR_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
            "WEIR_KAFKA_SSL_CA_LOCATION": "\(folder)/\(authority).crt", "WEIR_KAFKA_SASL_MECHANISM": "PLAIN",
            "WEIR_KAFKA_SASL_USERNAME": "weir", "WEIR_KAFKA_SASL_PASSWORD_FILE": file,
        ])
        return try schema.load(from: sources) { $0.read() }.settings
    }

    @Test func logWorksOverTLSWithPasswordAndRejectionsHaveReasons() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "weir-certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let thread = try DedicatedThread(name: "certificates")
        try await thread.run {
            var shell = try ServerShell(Self.certificates, [folder.path])
            shell.end()
        }
        await thread.close()
        let kafka = try await KafkaServer.start(settings: Self.settings(folder.path))
        let result = await Result.capturing {
            let right = try Self.configuration(kafka, folder.path)
            try await KafkaTopics(right).create(
                .init(partitions: 2, replicationFactor: 1, minimumInSyncReplicas: 1))
            let log = try await KafkaChangeLog(right)
            let partition = TopicPartition(.uploads, 1)
            try await log.producer().append([NewRecord(to: partition, value: [1, 2, 3])])
            let records = try await log.reader(of: partition, from: 0).next(maximumBytes: 1)
            #expect(records.map(\.value) == [[1, 2, 3]])
            await log.close()

            for (wrong, reason) in [
                (try Self.configuration(kafka, folder.path, password: "hunter3"), "uthentication failed"),
                (try Self.configuration(kafka, folder.path, authority: "other"), "certificate verify failed"),
            ] {
                let error = await #expect(throws: ChangeLogError.self) { _ = try await KafkaChangeLog(wrong) }
                #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
                #expect(error?.message.contains("hunter") == false)
                #expect(error?.isRetriable == true)
            }
        }
        await kafka.end()
        try FileManager.default.removeItem(at: folder)
        try result.get()
    }
}
