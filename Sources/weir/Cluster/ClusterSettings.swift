import Configuration
import FanOut
import KafkaChangeLog
import NetworkLink
import Operations
import PostgresRecordStore

/// The settings of a process on Kafka and Postgres.
struct ClusterSettings: Sendable {
    var operations: OperationsConfiguration
    var stages: StageSettings
    var kafka: KafkaChangeLogConfiguration
    var postgres: PostgresRecordStoreConfiguration
    var link: LinkConfiguration
    var server: FanOutServerConfiguration
    var remote: RemoteFanOutConfiguration
    /// The folder of the streams.
    var data: String

    /// The scopes that every role reads.
    static let sharedScopes = ["log", "operations", "kafka"]

    /// The scopes of a process with all roles.
    static let allScopes = [""] + Set(ClusterRole.allCases.flatMap(\.scopes)).subtracting(["link"]).sorted()

    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        operations = try configuration.read(OperationsConfiguration.self, from: "operations")
        stages = try StageSettings(configuration)
        kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
        postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
        link = try configuration.read(LinkConfiguration.self, from: "link")
        server = try configuration.read(FanOutServerConfiguration.self, from: "link")
        remote = try configuration.read(RemoteFanOutConfiguration.self, from: "link")
        _ = try configuration.read(AuthenticationConfiguration.self, from: "")
        data = try configuration.read(DataConfiguration.self, from: "").data
        stages.fanOut.directory = data
    }

    /// How a gateway knows its callers; there is one way.
    private struct AuthenticationConfiguration: ConfigurationComponent {
        static let keys: [any DeclaredConfigurationKey] = [PipelineConfiguration.authentication]

        init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
            switch try reader.read(PipelineConfiguration.authentication) {
            case .none: break
            }
        }
    }
}
