import AsyncPrimitives
import ChangeLog
import Commands
import Configuration
import Control
import KafkaChangeLog
import Observability
import PostgresRecordStore
import SyncModel

/// The settings of `weir migrate`.
struct MigrateSettings: Sendable {
    var pipeline: PipelineConfiguration
    var limits: LimitsConfiguration
    var kafka: KafkaChangeLogConfiguration
    var postgres: PostgresRecordStoreConfiguration

    init(_ configuration: Configuration) throws(ConfigurationProblem) {
        pipeline = try configuration.read(PipelineConfiguration.self, from: "")
        limits = try configuration.read(LimitsConfiguration.self, from: "limits")
        kafka = try configuration.read(KafkaChangeLogConfiguration.self, from: "kafka")
        postgres = try configuration.read(PostgresRecordStoreConfiguration.self, from: "postgres")
    }
}

/// `weir migrate`.
enum MigrateCommand {
    static let dryRun = CommandOption("dry-run", .none, "Print the SQL and change nothing.")

    static let discussion = """
        Makes the history where the topics are empty, makes or extends the tables of every database for the schema file, and
        publishes the schema version, which running processes then take up. Versions only add; what would lose data is
        refused. Repeating it is harmless.
        """

    /// The scopes that it reads.
    static let scopes = ["", "log", "limits", "kafka", "postgres"]

    static var options: [CommandOption] {
        Settings.options(
            of: scopes, and: ["config", "log-format", "schema", "partitions", "clock", "piece-bytes"])
    }

    static func run(_ settings: MigrateSettings, _ logger: Logger, isDry: Bool) async -> ExitCode {
        let pipeline = settings.pipeline
        do {
            let declared = try SchemaFiles.read(
                pipeline.schema, maximumValueBytes: settings.limits.limits.maxValueBytes)
            let log = try await KafkaChangeLog(settings.kafka, logger: logger)
            let result = await Result.capturing {
                let tables = try await PostgresRecordStore.open(settings.postgres, logger: logger)
                let result = await Result.capturing {
                    if isDry {
                        try await show(declared, pipeline, log, tables, shards: settings.postgres.shards.count)
                    } else {
                        try await migrate(declared, pipeline, log, tables, shards: settings.postgres.shards.count)
                    }
                }
                await tables.close()
                return try result.get()
            }
            await log.close()
            try result.get()
            return .success
        } catch {
            Output.complain("weir migrate: \(error)")
            return .failure
        }
    }

    /// The version is published before the tables have it: workers that learn of it wait for them, while tables of a version
    /// that never was published would fit no other.
    private static func migrate(
        _ declared: [Table], _ pipeline: PipelineConfiguration, _ log: KafkaChangeLog, _ tables: PostgresRecordStore,
        shards: Int
    ) async throws {
        let proposed = try History.proposed(pipeline, for: log, shards: shards)
        do {
            _ = try await ControlTopic.existing(in: log)
        } catch ControlError.noHistory {
            // What the databases refuse must not be begun: they may be of the history that these topics had.
            _ = try await tables.migrationPlans(SchemaHistory().evolved(to: declared), epoch: proposed.epoch)
        }
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        let epoch = control.history.epoch
        // What the databases refuse must not be published.
        _ = try await tables.migrationPlans(control.schemas.evolved(to: declared), epoch: epoch)
        let entry = try await control.register(declared, in: log)
        for plan in try await tables.migrate(control.schemas, epoch: epoch) {
            let count = plan.statements.count
            Output.write("\(plan.database): " + (count == 0 ? "nothing to do" : "\(count) statements"))
        }
        Output.write("Schema version \(entry.version.ordinal) is \(entry.version.hash).")
    }

    private static func show(
        _ declared: [Table], _ pipeline: PipelineConfiguration, _ log: KafkaChangeLog, _ tables: PostgresRecordStore,
        shards: Int
    ) async throws {
        let plans: [MigrationPlan]
        do {
            let control = try await ControlTopic.existing(in: log)
            plans = try await tables.migrationPlans(
                control.schemas.evolved(to: declared), epoch: control.history.epoch)
        } catch ControlError.noHistory {
            let proposed = try History.proposed(pipeline, for: log, shards: shards)
            plans = try await tables.migrationPlans(SchemaHistory().evolved(to: declared), epoch: proposed.epoch)
        }
        for plan in plans { Output.write(plan.script) }
    }
}
