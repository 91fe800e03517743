import ChangeLog
import Control
import Digest
import FanOut
import Gateway
import HTTP
import Ingest
import Metrics
import Observability
import Operations
import Ordering
import SQLiteChangeLog
import SQLiteRecordStore
import ServiceLifecycle
import SyncModel

/// All roles in one process, on SQLite files in one folder.
struct EmbeddedPipeline: Sendable {
    private let settings: RunSettings
    private let logger: Logger
    private let monitoring: Monitoring
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
        _ settings: RunSettings, logger: Logger, monitoring: Monitoring
    ) async throws -> EmbeddedPipeline {
        let tables = try SchemaFiles.read(
            settings.pipeline.schema, maximumValueBytes: settings.limits.limits.maxValueBytes)
        let folder = try DataFolder(path: settings.pipeline.data)
        try DataFolder.refuse(tables: settings.store.path, withoutLog: settings.changeLog.path)
        let log = try await SQLiteChangeLog(
            settings.changeLog, metrics: SQLiteLogMetrics(monitoring.metrics))
        do {
            let proposed = History(
                epoch: epoch(), partitions: settings.pipeline.partitions, clock: settings.pipeline.clock,
                pieceSize: settings.pipeline.pieceBytes)
            let control = try await ControlTopic.open(in: log, proposed: proposed)
            let served = try settings.fanOut.partitions.numbers(in: control.history)
            guard served.count == control.history.partitions else {
                throw Failure(
                    description: "fanout.partitions is \(settings.fanOut.partitions); a process with all roles has the "
                        + "only fan-out and serves all partitions: leave the key out")
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
            return EmbeddedPipeline(
                settings: settings, logger: logger, monitoring: monitoring, folder: folder, log: log, store: store,
                control: control)
        } catch {
            try await log.close()
            throw error
        }
    }

    /// Runs all roles until the group is asked to stop, then closes log and tables.
    func run(_ group: (ServiceGroup) -> Void, started: @escaping @Sendable (HTTPPeer) -> Void) async throws {
        let metrics = monitoring.metrics
        monitoring.liveness.add(Pulse("log") { [log] in await log.beat() })
        monitoring.liveness.add(Pulse("tables") { [store] in await store.beat() })
        monitoring.storage.setReady()
        let schemas: @Sendable () -> SchemaHistory = { [control] in control.schemas }
        let history = control.history
        let backlog = UploadBacklog(partitions: history.partitions, maximumLag: settings.gateway.maxLag)
        let watch = FanOutWatch(
            partitions: history.partitions, backlog: backlog, logger: logger.labeled("fanout"),
            condition: monitoring.streams)
        let fanOut = FanOut(
            configuration: settings.fanOut, history: history, partitions: Array(0..<history.partitions), log: log,
            store: store, schemas: schemas, observer: watch, metrics: FanOutMetrics(metrics))
        let ordering = OrderingService(
            log: log, store: store, history: history, schemas: schemas, configuration: settings.ordering,
            logger: logger.labeled("ordering"), metrics: OrderingMetrics(metrics))
        let ingestLogger = logger.labeled("ingest")
        let ingestMetrics = IngestMetrics(metrics, partitions: history.partitions)
        let ingest = IngestService(
            log: log, history: history, limits: settings.limits.limits, configuration: settings.ingest, schemas: schemas
        ) { event in
            if case .recordRefused(let upload, _) = event { backlog.refused(upload) }
            event.write(to: ingestLogger)
            ingestMetrics.note(event)
        }
        let gateway = GatewayService(
            log: log, link: fanOut, authenticator: NoAuthentication(), history: history, schemas: schemas,
            limits: settings.limits.limits, configuration: settings.gateway, backlog: backlog,
            logger: logger.labeled("gateway"), metrics: GatewayMetrics(metrics))
        metrics.collect { [gateway] in gateway.counters }
        metrics.collect { [log] samples in samples.set(.logQueueBytes, log.queuedBytes) }
        metrics.collectLag(of: log, partitions: history.partitions)
        let services = ServiceGroup(
            [
                .init("retention", Retention(log: log, keep: settings.changeLog.keep, logger: logger)),
                .init("fanout", FanOutService(fanOut: fanOut, watch: watch), startLimit: .seconds(3600)),
                .init("ordering", CancelledService(ordering.run)),
                .init("ingest", CancelledService(ingest.run)),
                .init("gateway", GatewayRole(gateway: gateway, condition: monitoring.gateway, started: started)),
            ], logger: logger)
        group(services)
        let result = await Result.capturing { try await services.run() }
        await store.close()
        try await log.close()
        try result.get()
    }

    /// The id of a new history: 16 random bytes in hexadecimal.
    private static func epoch() -> String {
        var random = SystemRandomNumberGenerator()
        return hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }
}
