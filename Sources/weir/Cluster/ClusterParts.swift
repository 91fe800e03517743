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
    /// A process with all roles has a schema and a history to begin with; others wait for `weir migrate`.
    ///
    /// - Parameter condition: says why they are not open yet.
    /// - Throws: `CancellationError`, `ControlError` for another history than the one that is meant.
    static func open(
        _ settings: ClusterSettings, condition: ReadinessCondition, logger: Logger
    ) async throws -> ClusterParts {
        let log = try await ReadinessRetry(what: "Opening the log in Kafka", condition: condition, logger: logger).open
        {
            try await KafkaChangeLog(settings.kafka, logger: logger.labeled("kafka"))
        }
        do {
            let control = try await ReadinessRetry(
                what: "Reading the topic control", condition: condition, logger: logger
            )
            .open { try await Self.control(settings, log) }
            guard let postgres = settings.postgres else {
                return ClusterParts(log: log, control: control, tables: nil)
            }
            let tables = try await PostgresRecordStore.open(postgres, logger: logger.labeled("postgres"))
            do {
                try await ReadinessRetry(what: "Opening the tables in Postgres", condition: condition, logger: logger)
                    .open {
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

    private static func control(_ settings: ClusterSettings, _ log: KafkaChangeLog) async throws -> ControlTopic {
        let shards = settings.postgres?.shards.count
        guard case .all(let stages, let own) = settings.work, let shards else {
            return try await existingControl(in: log, shards: shards)
        }
        let tables = try SchemaFiles.read(own.schema, maximumValueBytes: stages.limits.limits.maxValueBytes)
        let proposed = try History.proposed(own, for: log, shards: shards)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(tables, in: log)
        return control
    }

    /// The history that a log has.
    ///
    /// - Parameter shards: how many databases it must be spread over; `nil` where that is none of the caller's business.
    static func existingControl(in log: KafkaChangeLog, shards: Int?) async throws -> ControlTopic {
        let control = try await ControlTopic.existing(in: log)
        let history = control.history
        guard history.partitions == log.partitionCount else {
            throw ControlError.otherPartitionCount(recorded: history.partitions, configured: log.partitionCount)
        }
        if let shards, history.shards != shards {
            throw ControlError.otherShardCount(recorded: history.shards, configured: shards)
        }
        return control
    }
}
