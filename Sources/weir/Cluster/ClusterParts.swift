import ChangeLog
import Control
import KafkaChangeLog
import Observability
import PostgresRecordStore
import ServiceLifecycle
import SyncModel

/// What a process on Kafka and Postgres works with: the log, the history, and the tables where a role needs them.
struct ClusterParts: Sendable {
    let log: KafkaChangeLog
    let control: ControlTopic
    let tables: PostgresRecordStore?

    /// Opens them, as often as it takes for brokers and databases to answer.
    ///
    /// - Parameters:
    ///   - own: the schema and history to begin with, for a process that has all roles; others wait for `weir migrate`.
    ///   - condition: says why they are not open yet.
    /// - Throws: `CancellationError`, `ControlError` for another history than the one that is meant.
    static func open(
        _ settings: ClusterSettings, usesTables: Bool, own: PipelineConfiguration? = nil, condition: ReadinessCondition,
        logger: Logger
    ) async throws -> ClusterParts {
        let log = try await Attempts(what: "Opening the log in Kafka", condition: condition, logger: logger).open {
            try await KafkaChangeLog(settings.kafka, logger: logger.labeled("kafka"))
        }
        do {
            let control = try await Attempts(what: "Reading the topic control", condition: condition, logger: logger)
                .open { try await Self.control(settings, log, own, usesTables: usesTables) }
            guard usesTables else { return ClusterParts(log: log, control: control, tables: nil) }
            let tables = try await PostgresRecordStore.open(settings.postgres, logger: logger.labeled("postgres"))
            do {
                try await Attempts(what: "Opening the tables in Postgres", condition: condition, logger: logger).open {
                    try await tables.prepare(control.schemas, epoch: control.history.epoch)
                }
            } catch {
                await tables.close()
                throw error
            }
            return ClusterParts(log: log, control: control, tables: tables)
        } catch {
            await log.close()
            throw error
        }
    }

    func close() async {
        await tables?.close()
        await log.close()
    }

    static func control(
        _ settings: ClusterSettings, _ log: KafkaChangeLog, _ own: PipelineConfiguration? = nil, usesTables: Bool
    ) async throws -> ControlTopic {
        guard let own else {
            let control = try await ControlTopic.existing(in: log)
            let history = control.history
            guard history.partitions == log.partitionCount else {
                throw ControlError.otherPartitionCount(recorded: history.partitions, configured: log.partitionCount)
            }
            guard !usesTables || history.shards == settings.postgres.shards.count else {
                throw ControlError.otherShardCount(
                    recorded: history.shards, configured: settings.postgres.shards.count)
            }
            return control
        }
        let tables = try SchemaFiles.read(own.schema, maximumValueBytes: settings.stages.limits.limits.maxValueBytes)
        let proposed = try History.proposed(own, for: log, shards: settings.postgres.shards.count)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(tables, in: log)
        return control
    }
}
