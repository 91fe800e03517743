import Commands
import Configuration
import FanOut
import Gateway
import Ingest
import KafkaChangeLog
import NetworkLink
import Observability
import Operations
import Ordering
import PostgresRecordStore
import SQLiteChangeLog
import SQLiteRecordStore

/// Every setting of the program, under the scopes by which files, variables and flags name them.
enum Settings {
    /// The declarations of all components.
    static var schema: ConfigurationSchema {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(PipelineConfiguration.self, as: "", "The process")
        schema.add(LogConfiguration.self, as: "log", "Logging")
        schema.add(OperationsConfiguration.self, as: "operations", "The operations port")
        schema.add(LimitsConfiguration.self, as: "limits", "What a batch may hold")
        schema.add(GatewayConfiguration.self, as: "gateway", "The gateway")
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
        return schema
    }

    /// The configuration file that is read when none is named and it is there.
    static let defaultFile = "weir.yaml"
}

/// The settings of a command that works on log and tables beside the pipeline, as far as they concern a data folder.
struct OfflineSettings: Sendable {
    var data: String
    var limits: LimitsConfiguration
    var ordering: OrderingConfiguration
    var changeLog: SQLiteChangeLogConfiguration
    var store: SQLiteRecordStoreConfiguration

    /// The scopes that such a command reads: the schema file is none of them, since the log has every version.
    static let scopes = ["log", "limits", "ordering", "changelog", "store"]

    /// The flags of such a command.
    static var options: [CommandOption] {
        Settings.options(of: scopes + OfflineClusterSettings.scopes, and: ["config", "data", "log-format", "storage"])
    }

    /// The same for another folder.
    func moved(to folder: String) -> OfflineSettings {
        var settings = self
        settings.data = folder
        settings.changeLog.path = folder + "/log.db"
        settings.store.path = folder + "/tables.db"
        return settings
    }

    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        data = try configuration.read(DataConfiguration.self, from: "").data
        limits = try configuration.read(LimitsConfiguration.self, from: "limits")
        ordering = try configuration.read(OrderingConfiguration.self, from: "ordering")
        changeLog = try configuration.read(SQLiteChangeLogConfiguration.self, from: "changelog")
        store = try configuration.read(SQLiteRecordStoreConfiguration.self, from: "store")
        changeLog.path = data + "/log.db"
        store.path = data + "/tables.db"
    }
}

/// The settings of the same command where log and tables are in a cluster.
struct OfflineClusterSettings: Sendable {
    /// Where databases may go that are removed afterwards.
    var data: String
    var ordering: OrderingConfiguration
    var kafka: KafkaChangeLogConfiguration
    var postgres: PostgresRecordStoreConfiguration

    /// The scopes that it reads.
    static let scopes = ["log", "ordering", "kafka", "postgres"]

    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        data = try configuration.read(DataConfiguration.self, from: "").data
        ordering = try configuration.read(OrderingConfiguration.self, from: "ordering")
        kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
        postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
    }
}

/// Where the data lies: one of the keys of ``PipelineConfiguration``.
struct DataConfiguration: ConfigurationComponent {
    static let keys: [any DeclaredConfigurationKey] = [PipelineConfiguration.data]

    let data: String

    init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        data = try reader.read(PipelineConfiguration.data)
    }
}

/// The settings of a process with all roles on files of one folder.
struct EmbeddedSettings: Sendable {
    var pipeline: PipelineConfiguration
    var operations: OperationsConfiguration
    var stages: StageSettings
    var changeLog: SQLiteChangeLogConfiguration
    var store: SQLiteRecordStoreConfiguration

    /// The scopes that such a process reads.
    static let scopes = [
        "", "log", "operations", "limits", "gateway", "ingest", "ordering", "fanout", "changelog", "store",
    ]

    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        pipeline = try configuration.read(PipelineConfiguration.self, from: "")
        operations = try configuration.read(OperationsConfiguration.self, from: "operations")
        stages = try StageSettings(configuration)
        changeLog = try configuration.read(SQLiteChangeLogConfiguration.self, from: "changelog")
        store = try configuration.read(SQLiteRecordStoreConfiguration.self, from: "store")
        stages.fanOut.directory = pipeline.data
        changeLog.path = pipeline.data + "/log.db"
        store.path = pipeline.data + "/tables.db"
        if let partitions = pipeline.partitions { changeLog.partitions = partitions }
    }
}

extension StageSettings {
    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        limits = try configuration.read(LimitsConfiguration.self, from: "limits")
        gateway = try configuration.read(GatewayConfiguration.self, from: "gateway")
        ingest = try configuration.read(IngestConfiguration.self, from: "ingest")
        ordering = try configuration.read(OrderingConfiguration.self, from: "ordering")
        fanOut = try configuration.read(FanOutConfiguration.self, from: "fanout")
    }
}
