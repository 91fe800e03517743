import ChangeLog
import Control
import FanOut
import FanOutLink
import Gateway
import Ingest
import Metrics
import Observability
import Ordering
import RecordStore
import SyncModel

/// Makes the stages of one process over its log and one history.
struct Stages<Log: ChangeLog>: Sendable {
    let log: Log
    let control: ControlTopic
    let metrics: MetricRegistry
    let logger: Logger

    private var schemas: @Sendable () -> SchemaHistory { { [control] in control.schemas } }
    private var schemaWait: SchemaWait { { [control] in try await control.known.wait(until: $0) } }
    private var history: History { control.history }

    func fanOut<Store: RecordStore>(
        _ settings: FanOutConfiguration, of partitions: [Int], store: Store, observer: some FanOutObserver
    ) -> FanOut<Log, Store> {
        FanOut(
            configuration: settings, history: history, partitions: partitions, log: log, store: store,
            schemas: schemas, schemaWait: schemaWait, observer: observer, metrics: FanOutMetrics(metrics))
    }

    /// - Parameter hasFailed: called for each failure that stops a partition from being ordered.
    func ordering<Store: RecordStore>(
        _ settings: OrderingConfiguration, store: Store,
        hasFailed: @escaping @Sendable (Int, any Error) -> Void = { _, _ in }
    ) -> OrderingService<Log, Store> {
        OrderingService(
            log: log, store: store, history: history, schemas: schemas, schemaWait: schemaWait,
            configuration: settings, logger: logger.labeled("ordering"), metrics: OrderingMetrics(metrics),
            hasFailed: hasFailed)
    }

    /// - Parameter refused: called for each record of `uploads` that was refused as a whole.
    func ingest(
        _ settings: IngestConfiguration, _ limits: LimitsConfiguration,
        refused: @escaping @Sendable (UploadReference) -> Void = { _ in }
    ) -> IngestService<Log> {
        let logger = logger.labeled("ingest")
        let metrics = IngestMetrics(metrics, partitions: history.partitions)
        return IngestService(
            log: log, history: history, limits: limits.limits, configuration: settings, schemas: schemas,
            schemaWait: schemaWait
        ) { event in
            if case .recordRefused(let upload, _) = event { refused(upload) }
            event.write(to: logger)
            metrics.note(event)
        }
    }

    func gateway<Link: FanOutLink>(
        _ settings: GatewayConfiguration, _ limits: LimitsConfiguration, link: Link, backlog: UploadBacklog
    ) -> GatewayService<Log, Link, NoAuthentication> {
        let gateway = GatewayService(
            log: log, link: link, authenticator: NoAuthentication(), history: history, schemas: schemas,
            limits: limits.limits, configuration: settings, backlog: backlog,
            logger: logger.labeled("gateway"), metrics: GatewayMetrics(metrics))
        metrics.collect { [gateway] in gateway.counters }
        return gateway
    }

    func backlog(_ settings: GatewayConfiguration) -> UploadBacklog {
        UploadBacklog(partitions: history.partitions, maximumLag: settings.maxLag)
    }
}
