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
package struct EmbeddedBackend: Backend {
    package let log: SQLiteChangeLog
    package let control: ControlTopic
    package let tables: SQLiteRecordStore
    package let devices: any DeviceRegistry
    package let files: (any OwnerFileStore)?
    package let keep: Duration
    private let folder: DataFolder

    package let startLimit: Duration = .seconds(3600)
    package let reportsFailures = false

    /// Why the settings do not fit a process with all roles.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Opens log and tables, creates the history in an empty log and registers the schema version.
    ///
    /// - Parameter declared: the tables of the newest schema version.
    package static func open(
        _ settings: EmbeddedSettings, _ pipeline: PipelineConfiguration, _ stages: StageSettings,
        declaring declared: [Table], logger: Logger, monitoring: Monitoring
    ) async throws -> EmbeddedBackend {
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

    package func addMonitoring(to monitoring: Monitoring) {
        monitoring.liveness.add(Watchdog("log") { [log] in await log.beat() })
        monitoring.liveness.add(Watchdog("tables") { [tables] in await tables.beat() })
        monitoring.metrics.collect { [log] samples in samples.set(.logQueueBytes, log.queuedBytes) }
    }

    package func services(for topics: [Topic], _ monitoring: Monitoring, _ logger: Logger) -> [ServiceGroup.Member] {
        []
    }

    package func service(
        of role: Role, _ monitoring: Monitoring, _ logger: Logger, run: @escaping @Sendable () async throws -> Void
    ) -> CancelledService {
        CancelledService(run)
    }

    package func recordPassed(_ upload: UploadReference) {}

    package func close() async throws {
        await files?.close()
        await devices.close()
        await tables.close()
        try await log.close()
        folder.unlock()
    }
}
