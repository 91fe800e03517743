import Commands
import Configuration
import EmbeddedPipeline
import FanOut
import Gateway
import Ingest
import KafkaChangeLog
import NetworkLink
import Operations
import Ordering
import OwnerFileStore
import PostgresRecordStore
import SQLiteChangeLog
import SQLiteRecordStore

/// Every setting of the program, under the scopes by which files, variables and flags name them.
enum Settings {
    static var schema: ConfigurationSchema {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(PipelineConfiguration.self, as: "", "The process")
        schema.add(FacesConfiguration.self, as: "", "Other protocols")
        schema.add(LogConfiguration.self, as: "log", "Logging")
        schema.add(OperationsConfiguration.self, as: "operations", "The operations port")
        schema.add(LimitsConfiguration.self, as: "limits", "What a batch may hold")
        schema.add(GatewayConfiguration.self, as: "gateway", "The gateway")
        schema.add(AuthenticationConfiguration.self, as: "auth", "Authentication of callers")
        schema.add(IngestConfiguration.self, as: "ingest", "Ingest")
        schema.add(OrderingConfiguration.self, as: "ordering", "Ordering")
        schema.add(FanOutConfiguration.self, as: "fanout", "Fan-out")
        schema.add(SQLiteChangeLogConfiguration.self, as: "changelog", "The embedded log")
        schema.add(SQLiteRecordStoreConfiguration.self, as: "store", "The embedded tables")
        schema.add(KafkaChangeLogConfiguration.self, as: "kafka", "The log in Kafka")
        schema.add(PostgresRecordStoreConfiguration.self, as: "postgres", "The tables in Postgres")
        schema.add(LinkConfiguration.self, as: "link", "The link between gateways and fan-outs")
        schema.add(FanOutServerConfiguration.self, as: "link", "The link's end at a fan-out")
        schema.add(RemoteFanOutConfiguration.self, as: "link", "The link's end at a gateway")
        schema.addShortFlag("log-format", for: "log.format")
        schema.addShortFlag("address", for: "gateway.address")
        schema.addShortFlag("auth", for: "auth.method")
        return schema
    }

    /// The configuration file that is read, if it exists, when none is named.
    private static let defaultFile = "weir.yaml"

    /// Loads the settings of a command.
    ///
    /// - Parameters:
    ///   - own: options of the command that are no settings.
    ///   - flags: settings that the command itself makes.
    static func load<Value>(
        _ invocation: Invocation, except own: [CommandOption] = [], adding flags: [CommandOptionValue] = [],
        _ body: (ConfigurationReader) throws(ConfigurationProblem) -> Value
    ) throws(ConfigurationProblems) -> Configuration<Value> {
        let sources = ConfigurationSources(
            environment: Environment.variables,
            flags: invocation.options.filter { option in !own.contains { $0.name == option.name } } + flags,
            defaultFile: defaultFile)
        return try schema.load(from: sources, body)
    }
}

/// Where the log and the tables are.
enum BackendSettings: Sendable {
    case embedded(EmbeddedSettings)
    case cluster(ClusterSettings)

    init(_ reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(reader, in: try reader.choice(\PipelineConfiguration.storage))
    }

    init(_ reader: ConfigurationReader, in storage: PipelineConfiguration.Storage) {
        switch storage {
        case .embedded: self = .embedded(EmbeddedSettings(reader))
        case .cluster: self = .cluster(ClusterSettings(kafka: reader.read(), postgres: reader.read()))
        }
    }
}

/// The log in Kafka and the tables in Postgres.
struct ClusterSettings: Sendable {
    var kafka: KafkaChangeLogConfiguration
    /// `nil` for a process that neither reads nor writes tables.
    var postgres: PostgresRecordStoreConfiguration?
    /// Whether nothing works without the tables: then the process waits for them at the start and with each schema version, and is not
    /// ready while a database is away.
    var waitsForTables = true
    /// `nil` for a process without a gateway.
    var devices: DeviceRegistrySettings?
    /// `nil` where no owners' files are kept.
    var files: OwnerFileLimits?

    struct DeviceRegistrySettings: Sendable {
        var postgres: PostgresRecordStoreConfiguration
        /// The devices of a caller that are kept.
        var maximumPerCaller: Int

        init(postgres: PostgresRecordStoreConfiguration, _ gateway: GatewayConfiguration) {
            self.postgres = postgres
            maximumPerCaller = gateway.maxDevices
        }
    }

    /// For a process with all roles: registry and files are where the tables are.
    func withDevices(of gateway: GatewayConfiguration, files: OwnerFileLimits?) -> ClusterSettings {
        var settings = self
        settings.files = files
        settings.devices = postgres.map { DeviceRegistrySettings(postgres: $0, gateway) }
        return settings
    }
}
