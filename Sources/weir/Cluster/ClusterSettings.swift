import Configuration
import FanOut
import Gateway
import Ingest
import KafkaChangeLog
import NetworkLink
import Operations
import Ordering
import PostgresRecordStore

/// The settings of a process on Kafka and Postgres: those that it uses, and no others.
struct ClusterSettings: Sendable {
    var operations: OperationsConfiguration
    var kafka: KafkaChangeLogConfiguration
    /// The tables, for a process that reads or writes them.
    var postgres: PostgresRecordStoreConfiguration?
    /// The folder of the streams, for a process that has some.
    var data: String?
    var work: Work

    /// What the process does, with the settings for that.
    enum Work: Sendable {
        case gateway(GatewaySettings)
        case ingest(IngestConfiguration, LimitsConfiguration)
        case ordering(OrderingConfiguration)
        case fanOut(FanOutSettings)
        /// Everything, the gateway with the fan-out beside it; such a process makes the history, too.
        case all(StageSettings, PipelineConfiguration)
    }

    struct GatewaySettings: Sendable {
        var gateway: GatewayConfiguration
        var limits: LimitsConfiguration
        var link: LinkConfiguration
        var remote: RemoteFanOutConfiguration
    }

    struct FanOutSettings: Sendable {
        var fanOut: FanOutConfiguration
        var link: LinkConfiguration
        var server: FanOutServerConfiguration
    }

    /// The scopes that every role reads.
    static let sharedScopes = ["log", "operations", "kafka"]

    /// The scopes of a process with all roles.
    static let allScopes = [""] + Set(ClusterRole.allCases.flatMap(\.scopes)).subtracting(["link"]).sorted()

    /// Reads those of one role.
    init(_ configuration: Configuration, of role: ClusterRole) throws(ConfigurationProblem) {
        operations = try configuration.read(OperationsConfiguration.self, from: "operations")
        kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
        switch role {
        case .gateway:
            work = .gateway(
                GatewaySettings(
                    gateway: try configuration.read(GatewayConfiguration.self, from: "gateway"),
                    limits: try configuration.read(LimitsConfiguration.self, from: "limits"),
                    link: try configuration.read(LinkConfiguration.self, from: "link"),
                    remote: try configuration.read(RemoteFanOutConfiguration.self, from: "link")))
            _ = try configuration.read(AuthenticationConfiguration.self, from: "")
        case .ingest:
            work = .ingest(
                try configuration.read(IngestConfiguration.self, from: "ingest"),
                try configuration.read(LimitsConfiguration.self, from: "limits"))
        case .ordering:
            work = .ordering(try configuration.read(OrderingConfiguration.self, from: "ordering"))
            postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
        case .fanout:
            var settings = FanOutSettings(
                fanOut: try configuration.read(FanOutConfiguration.self, from: "fanout"),
                link: try configuration.read(LinkConfiguration.self, from: "link"),
                server: try configuration.read(FanOutServerConfiguration.self, from: "link"))
            settings.fanOut.directory = try configuration.read(DataConfiguration.self, from: "").data
            data = settings.fanOut.directory
            work = .fanOut(settings)
            postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
            // Whoever writes the tables makes them; a fan-out waits for that.
            postgres?.migratesAtStart = false
        }
    }

    /// Reads those of a process with all roles.
    init(all configuration: Configuration, _ pipeline: PipelineConfiguration) throws(ConfigurationProblem) {
        operations = try configuration.read(OperationsConfiguration.self, from: "operations")
        kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
        postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
        var stages = try StageSettings(configuration)
        stages.fanOut.directory = pipeline.data
        data = pipeline.data
        work = .all(stages, pipeline)
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
