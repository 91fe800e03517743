import ChangeLog
import Commands
import Configuration
import Control
import EmbeddedPipeline
import KafkaChangeLog
import Observability
import PostgresRecordStore
import SyncModel

/// `weir migrate`.
enum MigrateCommand {
    private static let dryRun = CommandOption("dry-run", .none, "Print the SQL and change nothing.")

    static let command = Command(
        "migrate", "Publish a schema version and make the tables in Postgres.", Weir.Action(run),
        options: [dryRun] + Settings.schema.options { _ = MigrateSettings($0) },
        discussion: """
            Makes the history where the topics are empty, makes or extends the tables of every database for the schema file, and
            publishes the schema version, which running processes then take up. Versions only add; what would lose data is
            refused. Repeating it is harmless.
            """)

    private struct MigrateSettings: Sendable {
        let log: LogConfiguration
        var pipeline = PipelineConfiguration()
        let limits: LimitsConfiguration
        let kafka: KafkaChangeLogConfiguration
        let postgres: PostgresRecordStoreConfiguration

        init(_ reader: ConfigurationReader) {
            log = reader.read()
            pipeline.schema = reader.read(\PipelineConfiguration.schema)
            pipeline.partitions = reader.read(\PipelineConfiguration.partitions)
            pipeline.clock = reader.read(\PipelineConfiguration.clock)
            pipeline.pieceBytes = reader.read(\PipelineConfiguration.pieceBytes)
            limits = reader.read()
            kafka = reader.read()
            postgres = reader.read()
        }
    }

    private static func run(_ invocation: Invocation) async throws -> ExitCode {
        let settings = try Settings.load(invocation, except: [dryRun], MigrateSettings.init).settings
        let pipeline = settings.pipeline
        let isDry = invocation.option(dryRun.name) != nil
        return await settings.log.withLogger { logger in
            do {
                let declared = try SchemaFiles.read(
                    pipeline.schema, limits: settings.limits.limits.outcome)
                try await OpenedCluster.withUnprepared(settings.kafka, settings.postgres, logger) { log, tables in
                    let propose = {
                        try History.proposed(pipeline, for: log, shards: settings.postgres.shards.count)
                    }
                    let limits = settings.limits.limits
                    if isDry {
                        try await show(declared, limits, log, tables, propose)
                    } else {
                        try await migrate(declared, limits, log, tables, try propose())
                    }
                }
                return .success
            } catch {
                Output.complain("weir migrate: \(error)")
                return .failure
            }
        }
    }

    private static func migrate(
        _ declared: [Table], _ limits: SyncLimits, _ log: KafkaChangeLog, _ tables: PostgresRecordStore,
        _ proposed: History
    ) async throws {
        do {
            _ = try await ControlTopic.existing(in: log)
        } catch ControlError.noHistory {
            // Databases that refuse the history may have the epoch that these topics had before.
            _ = try await tables.migrationPlans(SchemaHistory().evolved(to: declared), epoch: proposed.epoch)
        }
        // The defaults of columns must fit into rows, too.
        let control = try await ControlTopic.open(in: log, proposed: proposed) { try SizeLimits.check(limits, in: $0) }
        let (entry, plans) = try await tables.publish(declared, control, in: log)
        for plan in plans {
            let count = plan.statements.count
            Output.write("\(plan.database): " + (count == 0 ? "nothing to do" : "\(count) statements"))
        }
        Output.write("Schema version \(entry.version.ordinal) is \(entry.version.hash).")
    }

    private static func show(
        _ declared: [Table], _ limits: SyncLimits, _ log: KafkaChangeLog, _ tables: PostgresRecordStore,
        _ propose: () throws -> History
    ) async throws {
        let plans: [MigrationPlan]
        do {
            let control = try await ControlTopic.existing(in: log)
            try SizeLimits.check(limits, in: control.history)
            plans = try await tables.migrationPlans(
                control.schemas.evolved(to: declared), epoch: control.history.epoch)
        } catch ControlError.noHistory {
            let proposed = try propose()
            try SizeLimits.check(limits, in: proposed)
            plans = try await tables.migrationPlans(SchemaHistory().evolved(to: declared), epoch: proposed.epoch)
        }
        for plan in plans { Output.write(plan.script) }
    }
}
