import Configuration
import FanOut
import KafkaChangeLog
import Operations
import PostgresRecordStore

/// The settings of a process on Kafka and Postgres.
struct ClusterSettings: Sendable {
    var operations: OperationsConfiguration
    var stages: StageSettings
    var kafka: KafkaChangeLogConfiguration
    var postgres: PostgresRecordStoreConfiguration
    /// The folder of the streams.
    var data: String

    /// The scopes that every role reads.
    static let sharedScopes = ["log", "operations", "kafka"]

    /// The scopes of a process with all roles.
    static let allScopes = [""] + Set(ClusterRole.allCases.flatMap(\.scopes)).sorted()

    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        operations = try configuration.read(OperationsConfiguration.self, from: "operations")
        stages = try StageSettings(configuration)
        kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
        postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
        data = try configuration.read(DataConfiguration.self, from: "").data
        stages.fanOut.directory = data
    }
}
