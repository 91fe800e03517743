import ChangeLog
import Control
import Digest
import FanOut
import FanOutLink
import Gateway
import Ingest
import Metrics
import Observability
import Ordering
import RecordStore
import SyncModel

/// The settings of all stages, whatever log and tables they have.
struct StageSettings: Sendable {
    var limits: LimitsConfiguration
    var gateway: GatewayConfiguration
    var ingest: IngestConfiguration
    var ordering: OrderingConfiguration
    var fanOut: FanOutConfiguration
}

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

    /// - Parameter hasFailed: told of each partition that something keeps from being ordered, each time.
    func ordering<Store: RecordStore>(
        _ settings: OrderingConfiguration, store: Store,
        hasFailed: @escaping @Sendable (Int, any Error) -> Void = { _, _ in }
    ) -> OrderingService<Log, Store> {
        OrderingService(
            log: log, store: store, history: history, schemas: schemas, schemaWait: schemaWait,
            configuration: settings, logger: logger.labeled("ordering"), metrics: OrderingMetrics(metrics),
            hasFailed: hasFailed)
    }

    /// - Parameter refused: told of each record of `uploads` that was refused as a whole.
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
        let logger = logger.labeled("gateway")
        let handler = GatewayHandler(
            log: log, link: link, authenticator: NoAuthentication(), history: history, schemas: schemas,
            limits: limits.limits, configuration: settings, backlog: backlog, logger: logger,
            metrics: GatewayMetrics(metrics))
        let gateway = GatewayService(handler, logger: logger)
        metrics.collect { [gateway] in gateway.counters }
        return gateway
    }

    /// The uploads that wait, as the gateway watches them.
    func backlog(_ settings: GatewayConfiguration) -> UploadBacklog {
        UploadBacklog(partitions: history.partitions, maximumLag: settings.maxLag)
    }
}

extension History {
    /// Proposes a new history, with an id of its own: 16 random bytes in hexadecimal.
    static func new(_ pipeline: PipelineConfiguration, partitions: Int, shards: Int = 1) -> History {
        var random = SystemRandomNumberGenerator()
        let epoch = hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        return History(
            epoch: epoch, partitions: partitions, clock: pipeline.clock, pieceSize: pipeline.pieceBytes,
            shards: shards)
    }

    /// Proposes a history for topics that exist.
    ///
    /// - Throws: where the settings name another number of partitions than the topics have.
    static func proposed(
        _ pipeline: PipelineConfiguration, for log: some ChangeLog, shards: Int
    ) throws(ControlError) -> History {
        if let partitions = pipeline.partitions, partitions != log.partitionCount {
            throw .otherPartitionCount(recorded: log.partitionCount, configured: partitions)
        }
        return new(pipeline, partitions: log.partitionCount, shards: shards)
    }
}
