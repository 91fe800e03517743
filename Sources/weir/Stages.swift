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
import PartitionSupervision
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
    private var history: History { control.history }

    private func context(_ label: String) -> StageContext<Log> {
        StageContext(log: log, history: history, schemas: control.known, logger: logger.labeled(label))
    }

    func fanOut<Store: RecordStore>(
        _ settings: FanOutConfiguration, of partitions: [Int], store: Store, observer: some FanOutObserver
    ) -> FanOut<Log, Store> {
        FanOut(
            context("fanout"), partitions: partitions, store: store, configuration: settings, observer: observer,
            metrics: FanOutMetrics(metrics))
    }

    /// - Parameter hasFailed: told of each partition that something keeps from being ordered, each time.
    func ordering<Store: RecordStore>(
        _ settings: OrderingConfiguration, store: Store,
        hasFailed: @escaping @Sendable (Int, any Error) -> Void = { _, _ in }
    ) -> OrderingService<Log, Store> {
        OrderingService(
            context("ordering"), store: store, configuration: settings, metrics: OrderingMetrics(metrics),
            hasFailed: hasFailed)
    }

    /// - Parameter refused: told of each record of `uploads` that was refused as a whole.
    func ingest(
        _ settings: IngestConfiguration, _ limits: LimitsConfiguration,
        refused: @escaping @Sendable (UploadReference) -> Void = { _ in }
    ) -> IngestService<Log> {
        IngestService(
            context("ingest"), limits: limits.limits, configuration: settings,
            metrics: IngestMetrics(metrics, partitions: history.partitions)
        ) { event in
            if case .recordRefused(let upload, _) = event { refused(upload) }
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
