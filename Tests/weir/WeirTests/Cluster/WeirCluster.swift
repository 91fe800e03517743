import Foundation
import KafkaServer
import LoadTools
import PostgresServer
import ServerShell
import Testing

/// Topics, a database and a settings file of one test, and the processes that work on them.
final class WeirCluster: Sendable {
    /// Why tests of processes on Kafka and Postgres are skipped; `nil` where both are at hand.
    static let skipReason: String? = {
        if PostgresServer.programs == nil { return PostgresServer.skipReason }
        if KafkaServer.home == nil && KafkaServer.named == nil {
            return "processes cannot share a mock cluster: KAFKA_HOME or KAFKA_BOOTSTRAP_SERVERS is needed"
        }
        return nil
    }()

    /// Why tests that start and end brokers are skipped; `nil` where brokers can be started.
    static let skipReasonForOwnBrokers: String? =
        PostgresServer.programs == nil
        ? PostgresServer.skipReason : KafkaServer.home == nil ? KafkaServer.skipReason : nil

    /// Where the processes keep their files.
    let folder: TestFolder
    /// Where the brokers are: HOST:PORT, separated by commas.
    let servers: String
    /// How many copies the topics have.
    private let copies: Int
    /// The prefix of the topics' names.
    let prefix: String
    let database: TestDatabase
    let partitions: Int
    /// The gateways that run.
    let gateways = Gateways()

    struct Plan {
        var partitions = 16
        var clock = "sequence(100)"
        var schema = TestServer.schema
        /// Brokers of the test's own, if it has some.
        var kafka: KafkaServer?
        /// A server of the test's own, if it has one.
        var postgres: PostgresServer?
        /// A database that is not empty.
        var database: TestDatabase?
        /// Further settings of every process.
        var settings: [String: String] = [:]
    }

    /// Creates the topics, the history and the tables.
    static func make(_ plan: Plan = Plan()) async throws -> WeirCluster {
        let cluster = try await prepare(plan)
        try await cluster.createTopics()
        try await cluster.command("migrate")
        return cluster
    }

    /// Writes the settings and creates an empty database, and nothing in Kafka.
    static func prepare(_ plan: Plan = Plan()) async throws -> WeirCluster {
        let servers: String
        if let kafka = plan.kafka {
            servers = kafka.servers
        } else if let named = KafkaServer.named {
            servers = named
        } else {
            servers = try await KafkaServer.shared().servers
        }
        let postgres: PostgresServer
        if let own = plan.postgres { postgres = own } else { postgres = try await PostgresServer.shared() }
        let database: TestDatabase
        if let given = plan.database {
            database = given
        } else {
            database = try await TestDatabase.make(on: postgres)
        }
        let cluster = WeirCluster(
            folder: try TestFolder(), servers: servers, copies: min(plan.kafka?.brokers ?? 1, 3), database: database,
            partitions: plan.partitions)
        try cluster.write(plan.schema, plan.clock, plan.settings)
        return cluster
    }

    private init(folder: TestFolder, servers: String, copies: Int, database: TestDatabase, partitions: Int) {
        self.folder = folder
        self.copies = copies
        self.servers = servers
        self.database = database
        self.partitions = partitions
        prefix = "test-\(UUID().uuidString.prefix(8))."
    }

    /// Writes the settings of all processes, with shorter retries than an operator would choose.
    private func write(_ schema: String, _ clock: String, _ settings: [String: String]) throws {
        try folder.write(schema, to: "schema.yaml")
        var lines = [
            "storage: cluster", "schema: \(folder.path)/schema.yaml", "clock: \(clock)", "log:", "  format: json",
            "kafka:", "  topic-prefix: \(prefix)", "  servers: [\(servers)]",
            "  properties: [reconnect.backoff.ms=20, reconnect.backoff.max.ms=200]", "  check-interval: 200ms",
        ]
        // Brokers of the tests' own allow what others may not.
        if KafkaServer.home != nil, KafkaServer.named == nil { lines.append("  session-timeout: 3s") }
        lines += [
            "postgres:", "  shards: [\"\(database.connectionString)\"]", "  connections: 3",
        ]
        let settings = RateFlags.settings.merging(settings) { $1 }
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) { lines.append("\(key): \(value)") }
        try folder.write(lines.joined(separator: "\n") + "\n", to: "weir.yaml")
    }

    func createTopics() async throws {
        try await command(
            "topics", "create", "--partitions", "\(partitions)", "--replication", "\(copies)",
            "--min-insync-replicas", "\(min(copies, 2))")
    }

    /// Runs a command of the program on this cluster, which must succeed.
    func command(_ arguments: String...) async throws {
        let run = try await CommandRun.run(arguments + ["--config", "weir.yaml"], in: folder)
        #expect(run.code == 0, "weir \(arguments.joined(separator: " ")): \(run.output)\(run.errors)")
    }
}
