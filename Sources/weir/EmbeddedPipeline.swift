import AsyncPrimitives
import ChangeLog
import Control
import FanOut
import Gateway
import HTTP
import Ingest
import Metrics
import Observability
import Operations
import Ordering
import PartitionSupervision
import SQLiteChangeLog
import SQLiteRecordStore
import ServiceLifecycle
import SyncModel

/// All roles in one process, on SQLite files in one folder.
struct EmbeddedPipeline: Sendable {
    private let settings: EmbeddedSettings
    private let logger: Logger
    private let monitoring: Monitoring
    private let streams: ReadinessCondition
    private let listening: ReadinessCondition
    private let folder: DataFolder
    private let log: SQLiteChangeLog
    private let store: SQLiteRecordStore
    private let control: ControlTopic

    /// Why these settings are none for all roles in one process.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Opens log and tables, agrees on the history and the schema version.
    static func open(
        _ settings: EmbeddedSettings, logger: Logger, monitoring: Monitoring
    ) async throws -> EmbeddedPipeline {
        let conditions = monitoring.conditions
        let (storage, streams, listening) = (conditions.storage(), conditions.streams(), conditions.gateway())
        let tables = try SchemaFiles.read(
            settings.pipeline.schema, maximumValueBytes: settings.stages.limits.limits.maxValueBytes)
        let folder = try DataFolder(path: settings.pipeline.data)
        try DataFolder.refuse(tables: settings.store.path, withoutLog: settings.changeLog.path)
        let log = try await SQLiteChangeLog(
            settings.changeLog, metrics: SQLiteLogMetrics(monitoring.metrics))
        do {
            let proposed = History.new(settings.pipeline, partitions: settings.changeLog.partitions)
            let control = try await ControlTopic.open(in: log, proposed: proposed)
            let served = try settings.stages.fanOut.partitions.numbers(in: control.history)
            guard served.count == control.history.partitions else {
                let named = settings.stages.fanOut.partitions
                throw Failure(
                    description: "fanout.partitions is \(named); a process with all roles has the only fan-out, which "
                        + "serves all partitions: leave the key out")
            }
            let entry = try await control.register(tables, in: log)
            logger.info(
                "Schema", [.version: .integer(entry.version.ordinal), .schemaVersion: .string(entry.version.hash)])
            let store = try await SQLiteRecordStore.open(
                settings.store, metrics: SQLiteStoreMetrics(monitoring.metrics))
            do {
                try await store.prepare(control.schemas, epoch: control.history.epoch)
            } catch {
                await store.close()
                throw error
            }
            storage.setReady()
            return EmbeddedPipeline(
                settings: settings, logger: logger, monitoring: monitoring, streams: streams, listening: listening,
                folder: folder, log: log, store: store, control: control)
        } catch {
            try await log.close()
            throw error
        }
    }

    /// Runs all roles until the group is asked to stop, then closes log and tables.
    func run(_ group: (ServiceGroup) -> Void, started: @escaping @Sendable (HTTPPeer) -> Void) async throws {
        let metrics = monitoring.metrics
        monitoring.liveness.add(Watchdog("log") { [log] in await log.beat() })
        monitoring.liveness.add(Watchdog("tables") { [store] in await store.beat() })
        let partitions = control.history.partitions
        let stages = Stages(log: log, control: control, metrics: metrics, logger: logger)
        let own = settings.stages
        let backlog = stages.backlog(own.gateway)
        let watch = FanOutWatch(
            partitions: Array(0..<partitions), logger: logger.labeled("fanout"), condition: streams)
        watch.tell(passed: { backlog.passed($0) })
        let fanOut = stages.fanOut(own.fanOut, of: Array(0..<partitions), store: store, observer: watch)
        let ordering = stages.ordering(own.ordering, store: store)
        let ingest = stages.ingest(own.ingest, own.limits) { backlog.refused($0) }
        let gateway = stages.gateway(own.gateway, own.limits, link: fanOut, backlog: backlog)
        metrics.collect { [log] samples in samples.set(.logQueueBytes, log.queuedBytes) }
        metrics.collectLag(of: log, partitions: partitions)
        let retention = Retention(
            log: log, topics: Topic.prunable, keep: settings.changeLog.keep,
            floors: { [store] in try await store.floors(of: $0, partitions: partitions) }, logger: logger)
        let services = ServiceGroup(
            [
                .init("retention", retention),
                .init("fanout", CancelledService(fanOut.run)),
                .init("ordering", CancelledService(ordering.run)),
                .init("ingest", CancelledService(ingest.run)),
                .init(
                    "gateway",
                    GatewayRole(gateway: gateway, condition: listening, started: started) {
                        try await watch.untilReady()
                    }, startLimit: .seconds(3600)),
            ], logger: logger)
        group(services)
        let result = await Result.capturing { try await services.run() }
        await store.close()
        try await log.close()
        try result.get()
    }
}
