import ChangeLog
import Control
import FanOut
import Gateway
import HTTP
import Ingest
import KafkaChangeLog
import LinkWire
import Metrics
import NetworkLink
import Observability
import Operations
import Ordering
import PartitionSupervision
import PostgresRecordStore
import RecordStore
import ServiceLifecycle
import SyncModel

/// The services of a process on Kafka and Postgres.
struct RoleServices: Sendable {
    private let settings: ClusterSettings
    private let parts: ClusterParts
    private let monitoring: Monitoring
    private let logger: Logger
    private let stages: Stages<KafkaChangeLog>

    init(settings: ClusterSettings, parts: ClusterParts, monitoring: Monitoring, logger: Logger) {
        self.settings = settings
        self.parts = parts
        self.monitoring = monitoring
        self.logger = logger
        stages = Stages(log: parts.log, control: parts.control, metrics: monitoring.metrics, logger: logger)
        monitoring.metrics.collectLag(of: parts.log, partitions: parts.control.history.partitions)
        monitoring.readiness.addProbe("kafka") { [log = parts.log] in
            do throws(ChangeLogError) {
                _ = try await log.range(of: TopicPartition(.control, 0))
                return nil
            } catch {
                return "\(error)"
            }
        }
        guard let tables = parts.tables, let shards = settings.postgres?.shards.indices else { return }
        monitoring.readiness.addProbe("postgres") {
            do throws(RecordStoreError) {
                // Partition n lives in database n, as far as there are databases.
                for shard in shards { _ = try await tables.position(of: shard) }
                return nil
            } catch {
                return "\(error)"
            }
        }
    }

    private var partitions: [Int] { Array(0..<parts.control.history.partitions) }

    /// Learns of schema versions, and looks after the topics that the process works with.
    private func control(_ topics: [Topic]) -> ServiceGroup.Member {
        let watch = EpochMonitor(
            parts: parts, topics: topics, interval: settings.kafka.checkInterval,
            condition: monitoring.conditions.history(), logger: logger.labeled("control"))
        return .init("control", CancelledService(watch.run))
    }

    /// Those of the process's work.
    func members() throws -> [ServiceGroup.Member] {
        switch settings.work {
        case .gateway(let settings): try gateway(settings)
        case .fanOut(let settings): try fanOut(settings)
        case .ingest(let settings, let limits):
            [
                control(ClusterRole.ingest.topics), retention(of: [.uploads, .deadLetters]),
                stage(.ingest, stages.ingest(settings, limits).run),
            ]
        case .ordering(let settings):
            [control(ClusterRole.ordering.topics), retention(of: [.ordered]), ordering(settings)]
        case .all(let settings, _): all(settings)
        }
    }

    /// Each topic's records are removed by the role that reads or writes the topic.
    private func retention(of topics: [Topic]) -> ServiceGroup.Member {
        let count = partitions.count
        return .init(
            "retention",
            Retention(
                log: parts.log, topics: topics, keep: settings.kafka.keep,
                floors: { [tables = parts.tables] topic in
                    try await tables?.floors(of: topic, partitions: count) ?? [:]
                }, logger: logger))
    }

    private func ordering(_ settings: OrderingConfiguration) -> ServiceGroup.Member {
        let failures = RecentFailures(memory: settings.retryDelay + .seconds(5))
        monitoring.readiness.addProbe("partitions") { failures.reason }
        return stage(.ordering, stages.ordering(settings, store: tables) { failures.note($0, $1) }.run)
    }

    /// A fan-out, and what serves it to gateways: from before its streams are open, and not a moment longer than they are.
    private func fanOut(_ settings: ClusterSettings.FanOutSettings) throws -> [ServiceGroup.Member] {
        let history = parts.control.history
        let served = try settings.fanOut.partitions.numbers(in: history)
        let watch = FanOutWatch(
            partitions: served, logger: logger.labeled("fanout"), condition: monitoring.conditions.streams())
        let fanOut = stages.fanOut(settings.fanOut, of: served, store: tables, observer: watch)
        let server = try FanOutServer(
            settings.server, link: settings.link, serving: fanOut,
            description: LinkDescription(epoch: history.epoch, partitions: history.partitions, ready: []),
            logger: logger.labeled("link"), metrics: LinkMetrics(monitoring.metrics))
        watch.tell(passed: { server.passed($0) }, ready: { server.setReady($0) })
        return [
            control(ClusterRole.fanout.topics), .init("fanout", CancelledService(fanOut.run)),
            .init("link", CancelledService(server.run)),
        ]
    }

    /// A gateway, and its link to the fan-outs.
    private func gateway(_ settings: ClusterSettings.GatewaySettings) throws -> [ServiceGroup.Member] {
        let backlog = stages.backlog(settings.gateway)
        let condition = monitoring.conditions.fanOuts()
        let history = parts.control.history
        let link = try RemoteFanOut(
            settings.remote, link: settings.link, epoch: history.epoch, partitions: history.partitions,
            logger: logger.labeled("link"), metrics: LinkMetrics(monitoring.metrics),
            passed: { [log = parts.log] in note(passed: $0, backlog, log) },
            unserved: { unserved in
                guard !unserved.isEmpty else { return condition.setReady() }
                let numbers = unserved.sorted().map(String.init).joined(separator: ", ")
                condition.setUnready("no fan-out serves these partitions: \(numbers)")
            })
        let gateway = stages.gateway(settings.gateway, settings.limits, link: link, backlog: backlog)
        monitoring.readiness.addProbe("uploads") { gateway.uploadFailure }
        return [
            control(ClusterRole.gateway.topics), .init("link", CancelledService(link.run)),
            .init(
                "gateway",
                GatewayRole(
                    gateway: gateway, condition: monitoring.conditions.gateway(), started: noteReady(settings.gateway)
                ) {}),
        ]
    }

    /// Those of all roles, whose gateway asks the fan-out within the process.
    private func all(_ settings: StageSettings) -> [ServiceGroup.Member] {
        let backlog = stages.backlog(settings.gateway)
        let watch = FanOutWatch(
            partitions: partitions, logger: logger.labeled("fanout"), condition: monitoring.conditions.streams())
        watch.tell(passed: { [log = parts.log] in note(passed: $0, backlog, log) })
        let fanOut = stages.fanOut(settings.fanOut, of: partitions, store: tables, observer: watch)
        let gateway = stages.gateway(settings.gateway, settings.limits, link: fanOut, backlog: backlog)
        monitoring.readiness.addProbe("uploads") { gateway.uploadFailure }
        return [
            control([.uploads, .changes, .ordered]),
            retention(of: Topic.prunable),
            .init("fanout", CancelledService(fanOut.run)),
            ordering(settings.ordering),
            stage(.ingest, stages.ingest(settings.ingest, settings.limits) { backlog.refused($0) }.run),
            .init(
                "gateway",
                GatewayRole(
                    gateway: gateway, condition: monitoring.conditions.gateway(), started: noteReady(settings.gateway)
                ) {
                    try await watch.untilReady()
                }, startLimit: .seconds(86_400)),
        ]
    }

    /// Notes up to where uploads can be pulled: one that the log would put there would count as seen.
    private func note(passed upload: UploadReference, _ backlog: UploadBacklog, _ log: KafkaChangeLog) {
        log.noteRecord(at: upload.offset, of: TopicPartition(.uploads, upload.partition))
        backlog.passed(upload)
    }

    private var tables: PostgresRecordStore {
        guard let tables = parts.tables else { preconditionFailure("the role was opened without its tables") }
        return tables
    }

    private func noteReady(_ settings: GatewayConfiguration) -> @Sendable (HTTPPeer) -> Void {
        { [logger] in logger.noteReady(at: $0, settings.server, data: nil) }
    }

    /// A stage that begins again when it fails, or when its topics are not what they were: it looks at them when it begins.
    private func stage(_ role: ClusterRole, _ run: @escaping @Sendable () async throws -> Void) -> ServiceGroup.Member {
        let attempts = ReadinessRetry(
            what: "The stage \(role.rawValue)", condition: monitoring.conditions.stage(role), logger: logger)
        let (log, topics) = (parts.log, role.topics)
        return .init(
            role.rawValue,
            CancelledService {
                try await attempts.keep {
                    if let fault = log.fault(of: topics) { throw fault }
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask(operation: run)
                        group.addTask { if let loss = await log.nextLoss(of: topics) { throw loss } }
                        defer { group.cancelAll() }
                        try await group.next()
                    }
                }
            })
    }
}
