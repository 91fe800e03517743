import AsyncPrimitives
import ChangeLog
import Control
import DeviceRegistry
import EmbeddedPipeline
import KafkaChangeLog
import Observability
import OwnerFileStore
import PostgresDeviceRegistry
import PostgresOwnerFileStore
import PostgresRecordStore
import RecordStore
import ServiceLifecycle
import SyncModel
import Verification

/// The log in Kafka, and the tables in Postgres where a role needs them.
struct ClusterBackend: Backend {
    let log: KafkaChangeLog
    let control: ControlTopic
    private let optionalTables: PostgresRecordStore?
    private let optionalDevices: PostgresDeviceRegistry?
    let files: (any OwnerFileStore)?
    private let settings: ClusterSettings

    let startLimit: Duration = .seconds(86_400)
    let reportsFailures = true

    var keep: Duration { settings.kafka.keep }

    var tables: PostgresRecordStore {
        guard let optionalTables else { preconditionFailure("the role was opened without its tables") }
        return optionalTables
    }

    var devices: any DeviceRegistry {
        guard let optionalDevices else { preconditionFailure("the role was opened without the registry of devices") }
        return optionalDevices
    }

    /// What a process with all roles creates in empty topics; others wait for `weir migrate`.
    struct Proposal: Sendable {
        let pipeline: PipelineConfiguration
        let limits: LimitsConfiguration
    }

    /// Opens log and tables, and retries until brokers and databases answer.
    ///
    /// - Parameter condition: says why they are not open yet.
    /// - Throws: `CancellationError`, `ControlError` for another epoch than the configured one.
    static func open(
        _ settings: ClusterSettings, proposing proposal: Proposal? = nil, condition: ReadinessCondition, logger: Logger
    ) async throws -> ClusterBackend {
        func retrying(_ what: String) -> ReadinessRetry {
            ReadinessRetry(what: what, condition: condition, logger: logger)
        }
        let declared = try proposal.map { proposal in
            try SchemaFiles.read(proposal.pipeline.schema, limits: proposal.limits.limits.outcome)
        }
        let log = try await retrying("Opening the log in Kafka").open {
            try await KafkaChangeLog(settings.kafka, logger: logger.labeled("kafka"))
        }
        do {
            let control = try await retrying("Reading the topic control").open {
                try await Self.control(settings, proposal, log)
            }
            let devices = try await Self.devices(settings, control.history)
            let files: (any OwnerFileStore)?
            do {
                files = try await Self.files(settings, control.history)
            } catch {
                await devices?.close()
                throw error
            }
            guard let postgres = settings.postgres else {
                return ClusterBackend(
                    log: log, control: control, optionalTables: nil, optionalDevices: devices, files: files,
                    settings: settings)
            }
            let tables = try await PostgresRecordStore.open(postgres, logger: logger.labeled("postgres"))
            do {
                if settings.waitsForTables {
                    try await retrying("Opening the tables in Postgres").open {
                        if let declared { try await publish(declared, control, postgres, tables, log) }
                        try await tables.prepare(control.schemas, epoch: control.history.epoch)
                    }
                } else {
                    try tables.prepareOnUse(control.schemas, epoch: control.history.epoch)
                }
            } catch {
                await tables.close()
                await files?.close()
                await devices?.close()
                throw error
            }
            return ClusterBackend(
                log: log, control: control, optionalTables: tables, optionalDevices: devices, files: files,
                settings: settings)
        } catch {
            await log.close()
            throw error
        }
    }

    private static func devices(
        _ settings: ClusterSettings, _ history: History
    ) async throws -> PostgresDeviceRegistry? {
        guard let registry = settings.devices else { return nil }
        guard registry.postgres.shards.count == history.shards else {
            throw ControlError.otherShardCount(recorded: history.shards, configured: registry.postgres.shards.count)
        }
        return try await .open(
            registry.postgres, partitions: history.partitions, maximumPerCaller: registry.maximumPerCaller)
    }

    /// In the databases of the registry.
    private static func files(
        _ settings: ClusterSettings, _ history: History
    ) async throws -> (any OwnerFileStore)? {
        guard let limits = settings.files, let registry = settings.devices else { return nil }
        return try await PostgresOwnerFileStore.open(
            registry.postgres, epoch: history.epoch, partitions: history.partitions, limits: limits)
    }

    private static func control(
        _ settings: ClusterSettings, _ proposal: Proposal?, _ log: KafkaChangeLog
    ) async throws -> ControlTopic {
        let shards = settings.postgres?.shards.count
        guard let proposal, let shards, settings.postgres?.migratesAtStart == true else {
            let control = try await ControlTopic.existing(in: log, shards: shards)
            if let proposal { try SizeLimits.check(proposal.limits.limits, in: control.history) }
            return control
        }
        return try await ControlTopic.open(
            in: log, proposed: History.proposed(proposal.pipeline, for: log, shards: shards)
        ) { try SizeLimits.check(proposal.limits.limits, in: $0) }
    }

    private static func publish(
        _ declared: [Table], _ control: ControlTopic, _ postgres: PostgresRecordStoreConfiguration,
        _ tables: PostgresRecordStore, _ log: KafkaChangeLog
    ) async throws {
        if postgres.migratesAtStart {
            _ = try await tables.publish(declared, control, in: log)
            return
        }
        try await control.register(declared, in: log) { _, _ in
            throw RecordStoreError(
                .incompatibleTables,
                message:
                    "the schema file has a version that is not published, and postgres.migrate-at-start is false; run "
                    + "`weir migrate`, which shows its statements with --dry-run")
        }
    }

    func addMonitoring(to monitoring: Monitoring) {
        monitoring.readiness.addProbe("kafka") { [log] in
            do throws(ChangeLogError) {
                _ = try await log.range(of: TopicPartition(.control, 0))
                return nil
            } catch {
                return "\(error)"
            }
        }
        guard settings.waitsForTables, let optionalTables, let shards = settings.postgres?.shards.indices else {
            return
        }
        monitoring.readiness.addProbe("postgres") {
            do throws(RecordStoreError) {
                // Partition n is in database n, as far as there are databases.
                for shard in shards { _ = try await optionalTables.position(of: shard) }
                return nil
            } catch {
                return "\(error)"
            }
        }
    }

    /// Follows `control`, and checks the topics.
    func services(for topics: [Topic], _ monitoring: Monitoring, _ logger: Logger) -> [ServiceGroup.Member] {
        let monitor = EpochMonitor(
            log: log, control: control, topics: topics,
            interval: settings.kafka.checkInterval, condition: monitoring.conditions[.history],
            logger: logger.labeled("control")
        ) { [optionalTables, settings, epoch = control.history.epoch] schemas in
            if settings.waitsForTables {
                // The tables have a version before stages use it.
                try await optionalTables?.prepare(schemas, epoch: epoch)
            } else {
                try optionalTables?.prepareOnUse(schemas, epoch: epoch)
            }
        }
        return [.init("control", CancelledService(monitor.run))]
    }

    /// Restarts the stage when it fails, or when its topics lost records: a stage compares them with what it knows when it
    /// starts.
    func service(
        of role: Role, _ monitoring: Monitoring, _ logger: Logger, run: @escaping @Sendable () async throws -> Void
    ) -> CancelledService {
        let retry = ReadinessRetry(
            what: "The stage \(role.rawValue)", condition: monitoring.conditions[.stage(role)], logger: logger)
        let topics = role.topics
        return CancelledService { [log] in
            try await retry.keep {
                if let fault = log.fault(of: topics) { throw fault }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask(operation: run)
                    group.addTask { if let loss = await log.nextLoss(of: topics) { throw loss } }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        }
    }

    /// A record that the log appended at a lower offset later would count as seen.
    func recordPassed(_ upload: UploadReference) {
        log.recordOffset(upload.offset, of: TopicPartition(.uploads, upload.partition))
    }

    func close() async {
        await files?.close()
        await optionalDevices?.close()
        await optionalTables?.close()
        await log.close()
    }
}

extension ControlTopic {
    /// The history that a log has.
    ///
    /// - Parameter shards: how many databases it must be spread over; `nil` where the caller uses none.
    static func existing(in log: KafkaChangeLog, shards: Int?) async throws -> ControlTopic {
        let control = try await existing(in: log)
        let history = control.history
        guard history.partitions == log.partitionCount else {
            throw ControlError.otherPartitionCount(recorded: history.partitions, configured: log.partitionCount)
        }
        guard history.recordSize <= log.maximumRecordSize else {
            throw ControlError.recordsTooLarge(recorded: history.recordSize, configured: log.maximumRecordSize)
        }
        if let shards, history.shards != shards {
            throw ControlError.otherShardCount(recorded: history.shards, configured: shards)
        }
        return control
    }
}

extension PostgresRecordStore {
    /// Makes the declared tables the newest schema version, unless they are it already: makes or extends the tables of every
    /// database, and publishes the version before that is committed.
    ///
    /// A process that ends between the two leaves a version without its tables, as workers see it; publishing again makes
    /// them.
    ///
    /// - Returns: the version, and what was done to each database.
    func publish(
        _ declared: [Table], _ control: ControlTopic, in log: some ChangeLog
    ) async throws -> (SchemaHistory.Entry, [MigrationPlan]) {
        let epoch = control.history.epoch
        var plans: [MigrationPlan]?
        let entry = try await control.register(declared, in: log) { schemas, write in
            plans = try await migrate(schemas, epoch: epoch, publishing: write)
        }
        if let plans { return (entry, plans) }
        return (entry, try await migrate(control.schemas, epoch: epoch))
    }
}

/// Log, history and tables of a cluster for a command that ends by itself; what cannot be opened is an error at once.
struct OpenedCluster: Sendable {
    /// Retries, so that an outage of the brokers does not end what takes hours.
    let log: RetryingLog<KafkaChangeLog>
    let control: ControlTopic
    let tables: PostgresRecordStore

    /// Opens them for a body and closes them afterwards.
    ///
    /// - Parameter isReadOnly: whether the tables are only read; they are made where they are missing otherwise.
    static func with<Value: Sendable>(
        _ settings: ClusterSettings, isReadOnly: Bool, _ logger: Logger,
        _ body: (OpenedCluster) async throws -> Value
    ) async throws -> Value {
        guard var postgres = settings.postgres else { preconditionFailure("the command reads no tables") }
        postgres.isReadOnly = isReadOnly
        postgres.migratesAtStart = !isReadOnly
        return try await withUnprepared(settings.kafka, postgres, logger) { log, tables in
            let control = try await ControlTopic.existing(in: log, shards: postgres.shards.count)
            try await tables.prepare(control.schemas, epoch: control.history.epoch)
            let retrying = RetryingLog(log, logger: logger.labeled("kafka"))
            return try await body(OpenedCluster(log: retrying, control: control, tables: tables))
        }
    }

    /// Opens the log and the databases for a body, whatever they hold, and closes them afterwards.
    static func withUnprepared<Value: Sendable>(
        _ kafka: KafkaChangeLogConfiguration, _ postgres: PostgresRecordStoreConfiguration, _ logger: Logger,
        _ body: (KafkaChangeLog, PostgresRecordStore) async throws -> Value
    ) async throws -> Value {
        let log = try await KafkaChangeLog(kafka, logger: logger.labeled("kafka"))
        let result = await Result.capturing {
            let tables = try await PostgresRecordStore.open(postgres, logger: logger.labeled("postgres"))
            let result = await Result.capturing { try await body(log, tables) }
            await tables.close()
            return try result.get()
        }
        await log.close()
        return try result.get()
    }
}
