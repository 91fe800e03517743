import AsyncPrimitives
import ChangeLog
import Control
import KafkaChangeLog
import Observability
import PostgresRecordStore
import RecordStore
import SyncModel
import Verification

/// Log, history and tables of a cluster for a command that ends by itself, and where they cannot be opened says what is wrong
/// rather than waiting for it to pass.
struct OpenedCluster: Sendable {
    /// A moment without brokers does not end what takes hours.
    let log: RetryingLog<KafkaChangeLog>
    let control: ControlTopic
    let tables: PostgresRecordStore

    /// Opens them for a body, the tables prepared, and closes them afterwards.
    static func with<Value: Sendable>(
        _ settings: OfflineClusterSettings, _ logger: Logger, _ body: (OpenedCluster) async throws -> Value
    ) async throws -> Value {
        let log = try await KafkaChangeLog(settings.kafka, logger: logger.labeled("kafka"))
        let result = await Result.capturing {
            let control = try await ClusterParts.existingControl(in: log, shards: settings.postgres.shards.count)
            let tables = try await PostgresRecordStore.open(settings.postgres, logger: logger.labeled("postgres"))
            let result = await Result.capturing {
                try await tables.prepare(control.schemas, epoch: control.history.epoch)
                let patient = RetryingLog(log, logger: logger.labeled("kafka"))
                return try await body(OpenedCluster(log: patient, control: control, tables: tables))
            }
            await tables.close()
            return try result.get()
        }
        await log.close()
        return try result.get()
    }
}
