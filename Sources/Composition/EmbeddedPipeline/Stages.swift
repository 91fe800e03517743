import ChangeLog
import Control
import DeviceRegistry
import FanOut
import FanOutLink
import Gateway
import Ingest
import Metrics
import Observability
import Ordering
import OwnerFileStore
import PartitionSupervision
import RecordStore
import SyncModel

/// Makes the stages of one process over its log and one history.
package struct Stages<Log: ChangeLog>: Sendable {
    package let log: Log
    package let control: ControlTopic
    package let metrics: MetricRegistry
    /// The failures that keep partitions of any stage from being worked on.
    package let failures = PartitionFailures()
    package let logger: Logger

    private var schemas: @Sendable () -> SchemaHistory { { [control] in control.schemas } }
    private var history: History { control.history }

    private func context(_ label: String) -> StageContext<Log> {
        StageContext(
            log: log, history: history, schemas: control.known, failures: failures,
            logger: logger.labeled(label))
    }

    package func fanOut<Store: RecordStore>(
        _ settings: FanOutConfiguration, of partitions: [Int], store: Store, observer: some FanOutObserver
    ) -> FanOut<Log, Store> {
        FanOut(
            context("fanout"), partitions: partitions, store: store, configuration: settings, observer: observer,
            metrics: FanOutMetrics(metrics))
    }

    package func ordering<Store: RecordStore>(
        _ settings: OrderingConfiguration, store: Store
    ) -> OrderingService<Log, Store> {
        OrderingService(
            context("ordering"), store: store, configuration: settings, metrics: OrderingMetrics(metrics))
    }

    /// - Parameter refused: called for each record of `uploads` that was refused as a whole.
    package func ingest(
        _ settings: IngestConfiguration, refused: @escaping @Sendable (UploadReference) -> Void = { _ in }
    ) -> IngestService<Log> {
        IngestService(
            context("ingest"), configuration: settings,
            metrics: IngestMetrics(metrics, partitions: history.partitions)
        ) { event in
            if case .recordRefused(let upload, _) = event { refused(upload) }
        }
    }

    func gateway<Link: FanOutLink>(
        _ settings: GatewayConfiguration, _ limits: LimitsConfiguration, _ authenticator: ConfiguredAuthenticator,
        _ faces: GatewayFaces, link: Link, backlog: UploadBacklog, devices: any DeviceRegistry,
        files: (any OwnerFileStore)?
    ) -> GatewayService<Log, Link, ConfiguredAuthenticator> {
        let logger = logger.labeled("gateway")
        let handler = GatewayHandler(
            log: log, link: link, authenticator: authenticator, history: history, schemas: schemas,
            limits: limits.limits, configuration: settings, backlog: backlog, devices: known(by: devices),
            faces: faces, files: files, logger: logger, metrics: GatewayMetrics(metrics))
        control.devices.onChange { [weak handler] in handler?.devicesChanged() }
        let gateway = GatewayService(handler, logger: logger)
        metrics.collect { [gateway] in gateway.counters }
        return gateway
    }

    /// The devices of a registry, and what `control` says of them.
    private func known(by registry: any DeviceRegistry) -> GatewayDevices {
        GatewayDevices(
            registry: registry, isRevoked: { [control] in control.devices.contains($0) },
            revoked: { [control] in control.devices.devices(of: $0) },
            revoke: { [control, log] in
                try await control.decide(DeviceDecision($0, isRevoked: true), in: log)
            })
    }

    package func backlog(_ settings: GatewayConfiguration) -> UploadBacklog {
        UploadBacklog(partitions: history.partitions, maximumLag: settings.maxLag)
    }
}
