import AsyncPrimitives
import ChangeLog
import Configuration
import Control
import DeviceRegistry
import FanOut
import Gateway
import Metrics
import Observability
import Operations
import OwnerFileStore
import RecordStore
import SQLiteChangeLog
import SQLiteDeviceRegistry
import SQLiteOwnerFileStore
import SQLiteRecordStore
import ServiceLifecycle
import SyncModel

/// Log and tables in SQLite files of one folder, which is locked.
struct EmbeddedBackend: Backend {
    let log: SQLiteChangeLog
    let control: ControlTopic
    let tables: SQLiteRecordStore
    let devices: any DeviceRegistry
    let files: (any OwnerFileStore)?
    let keep: Duration
    private let folder: DataFolder

    let startLimit: Duration = .seconds(3600)
    let reportsFailures = false

    /// Why the settings do not fit a process with all roles.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Opens log and tables, creates the history in an empty log and registers the schema version.
    static func open(
        _ settings: EmbeddedSettings, _ pipeline: PipelineConfiguration, _ stages: StageSettings, logger: Logger,
        monitoring: Monitoring
    ) async throws -> EmbeddedBackend {
        let declared = try SchemaFiles.read(
            pipeline.schema, limits: stages.limits.limits.outcome)
        let folder = try DataFolder(path: settings.folder)
        try DataFolder.refuse(tables: settings.store.path, withoutLog: settings.changeLog.path)
        var changeLog = settings.changeLog
        if let partitions = pipeline.partitions { changeLog.partitions = partitions }
        let log = try await SQLiteChangeLog(changeLog, metrics: SQLiteLogMetrics(monitoring.metrics))
        do {
            let control = try await ControlTopic.open(
                in: log, proposed: History.new(pipeline, for: log, partitions: changeLog.partitions)
            ) { history in
                try SizeLimits.check(stages.limits.limits, in: history)
                let served = stages.fanOut.partitions
                guard try served.numbers(in: history).count == history.partitions else {
                    throw Failure(
                        description:
                            "fanout.partitions is \(served); a process with all roles has the only fan-out, which serves all "
                            + "partitions: leave the key out")
                }
            }
            let entry = try await control.register(declared, in: log)
            logger.info(
                "Schema", [.version: .integer(entry.version.ordinal), .schemaVersion: .string(entry.version.hash)])
            let tables = try await SQLiteRecordStore.open(
                settings.store, metrics: SQLiteStoreMetrics(monitoring.metrics))
            do {
                try await tables.prepare(control.schemas, epoch: control.history.epoch)
                let devices = try await SQLiteDeviceRegistry.open(
                    path: settings.folder + "/devices.db", maximumPerCaller: stages.gateway.maxDevices)
                do {
                    let files = try await Self.files(settings, stages.faces.files, epoch: control.history.epoch)
                    return EmbeddedBackend(
                        log: log, control: control, tables: tables, devices: devices, files: files,
                        keep: changeLog.keep, folder: folder)
                } catch {
                    await devices.close()
                    throw error
                }
            } catch {
                await tables.close()
                throw error
            }
        } catch {
            try await log.close()
            throw error
        }
    }

    private static func files(
        _ settings: EmbeddedSettings, _ limits: OwnerFileLimits?, epoch: String
    ) async throws -> (any OwnerFileStore)? {
        guard let limits else { return nil }
        return try await SQLiteOwnerFileStore.open(
            path: settings.folder + "/files.db", epoch: epoch, limits: limits)
    }

    func addMonitoring(to monitoring: Monitoring) {
        monitoring.liveness.add(Watchdog("log") { [log] in await log.beat() })
        monitoring.liveness.add(Watchdog("tables") { [tables] in await tables.beat() })
        monitoring.metrics.collect { [log] samples in samples.set(.logQueueBytes, log.queuedBytes) }
    }

    func services(for topics: [Topic], _ monitoring: Monitoring, _ logger: Logger) -> [ServiceGroup.Member] { [] }

    func service(
        of role: Role, _ monitoring: Monitoring, _ logger: Logger, run: @escaping @Sendable () async throws -> Void
    ) -> CancelledService {
        CancelledService(run)
    }

    func recordPassed(_ upload: UploadReference) {}

    func close() async throws {
        await files?.close()
        await devices.close()
        await tables.close()
        try await log.close()
    }
}

/// A data folder whose process has stopped, for commands that work on its log: locked, so that no process starts
/// meanwhile.
struct StoppedFolder: Sendable {
    let log: SQLiteChangeLog
    let control: ControlTopic
    let settings: EmbeddedSettings
    private let folder: DataFolder

    /// Opens the log for a body, and closes it afterwards.
    static func with<Value: Sendable>(
        _ settings: EmbeddedSettings, _ body: (StoppedFolder) async throws -> Value
    ) async throws -> Value {
        let folder = try DataFolder(existing: settings.folder)
        let log = try await SQLiteChangeLog(settings.changeLog)
        let result = await Result.capturing {
            let control = try await ControlTopic.existing(in: log)
            return try await body(StoppedFolder(log: log, control: control, settings: settings, folder: folder))
        }
        try await log.close()
        return try result.get()
    }

    /// Opens tables of the log's history for a body, and closes them afterwards.
    func withTables<Value: Sendable>(
        at path: String, _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        try await SQLiteRecordStore.with(settings.store.with(\.path, path), control, body)
    }
}

extension SQLiteRecordStore {
    /// Opens and prepares tables for a body, and closes them afterwards.
    static func with<Value: Sendable>(
        _ configuration: SQLiteRecordStoreConfiguration, _ control: ControlTopic,
        _ body: (SQLiteRecordStore) async throws -> Value
    ) async throws -> Value {
        let tables = try await open(configuration)
        let result = await Result.capturing {
            try await tables.prepare(control.schemas, epoch: control.history.epoch)
            return try await body(tables)
        }
        await tables.close()
        return try result.get()
    }
}
