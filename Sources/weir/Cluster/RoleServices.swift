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
        stages = Stages(
            settings: settings.stages, log: parts.log, control: parts.control, metrics: monitoring.metrics,
            logger: logger)
        monitoring.metrics.collectLag(of: parts.log, partitions: parts.control.history.partitions)
        monitoring.readiness.addProbe("kafka") { [log = parts.log] in
            do throws(ChangeLogError) {
                _ = try await log.range(of: TopicPartition(.control, 0))
                return nil
            } catch {
                return "\(error)"
            }
        }
        guard let tables = parts.tables else { return }
        monitoring.readiness.addProbe("postgres") { [shards = settings.postgres.shards.indices] in
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

    /// Learns of schema versions; the tables come first.
    private var control: ServiceGroup.Member {
        .init(
            "control",
            CancelledService { [parts, logger] in
                try await parts.control.follow(parts.log, logger: logger.labeled("control")) { schemas in
                    try await parts.tables?.prepare(schemas, epoch: parts.control.history.epoch)
                }
            })
    }

    /// Those of one role.
    func of(_ role: ClusterRole) throws -> [ServiceGroup.Member] {
        switch role {
        case .gateway: try gateway()
        case .fanout: try fanOut()
        case .ingest: [control, retention(of: [.uploads, .deadLetters]), stage(.ingest, stages.ingest().run)]
        case .ordering: [control, retention(of: [.ordered]), ordering]
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

    private var ordering: ServiceGroup.Member {
        let failures = RecentFailures(memory: settings.stages.ordering.retryDelay + .seconds(5))
        monitoring.readiness.addProbe("partitions") { failures.reason }
        return stage(.ordering, stages.ordering(store: tables) { failures.note($0, $1) }.run)
    }

    /// A fan-out, and what serves it to gateways: from before its streams are open, and not a moment longer than they are.
    private func fanOut() throws -> [ServiceGroup.Member] {
        let history = parts.control.history
        let served = try settings.stages.fanOut.partitions.numbers(in: history)
        let watch = FanOutWatch(
            partitions: served, logger: logger.labeled("fanout"), condition: monitoring.conditions.streams())
        let fanOut = stages.fanOut(of: served, store: tables, observer: watch)
        let server = try FanOutServer(
            settings.server, link: settings.link, serving: fanOut,
            description: LinkDescription(epoch: history.epoch, partitions: history.partitions, ready: []),
            logger: logger.labeled("link"), metrics: LinkMetrics(monitoring.metrics))
        watch.tell(passed: { server.passed($0) }, ready: { server.setReady($0) })
        return [
            control, .init("fanout", CancelledService(fanOut.run)), .init("link", CancelledService(server.run)),
        ]
    }

    /// A gateway, and its link to the fan-outs.
    private func gateway() throws -> [ServiceGroup.Member] {
        let backlog = stages.backlog()
        let condition = monitoring.conditions.fanOuts()
        let history = parts.control.history
        let link = try RemoteFanOut(
            settings.remote, link: settings.link, epoch: history.epoch, partitions: history.partitions,
            logger: logger.labeled("link"), metrics: LinkMetrics(monitoring.metrics),
            passed: { backlog.passed($0) },
            unserved: { unserved in
                guard !unserved.isEmpty else { return condition.setReady() }
                let numbers = unserved.sorted().map(String.init).joined(separator: ", ")
                condition.setUnready("no fan-out serves these partitions: \(numbers)")
            })
        let gateway = stages.gateway(link: link, backlog: backlog)
        return [
            control, .init("link", CancelledService(link.run)),
            .init(
                "gateway",
                GatewayRole(gateway: gateway, condition: monitoring.conditions.gateway(), started: noteReady) {}),
        ]
    }

    /// Those of all roles, whose gateway asks the fan-out within the process.
    func all() -> [ServiceGroup.Member] {
        let backlog = stages.backlog()
        let watch = FanOutWatch(
            partitions: partitions, logger: logger.labeled("fanout"), condition: monitoring.conditions.streams())
        watch.tell(passed: { backlog.passed($0) })
        let fanOut = stages.fanOut(of: partitions, store: tables, observer: watch)
        let gateway = stages.gateway(link: fanOut, backlog: backlog)
        return [
            control,
            retention(of: Topic.prunable),
            .init("fanout", CancelledService(fanOut.run)),
            ordering,
            stage(.ingest, stages.ingest { backlog.refused($0) }.run),
            .init(
                "gateway",
                GatewayRole(gateway: gateway, condition: monitoring.conditions.gateway(), started: noteReady) {
                    try await watch.untilReady()
                }, startLimit: .seconds(86_400)),
        ]
    }

    private var tables: PostgresRecordStore {
        guard let tables = parts.tables else { preconditionFailure("the role was opened without its tables") }
        return tables
    }

    private var noteReady: @Sendable (HTTPPeer) -> Void {
        { [logger, settings] in logger.noteReady(at: $0, settings.stages.gateway.server, data: nil) }
    }

    /// A stage that begins again when it fails.
    private func stage(_ role: ClusterRole, _ run: @escaping @Sendable () async throws -> Void) -> ServiceGroup.Member {
        let attempts = Attempts(
            what: "The stage \(role.rawValue)", condition: monitoring.conditions.stage(role), logger: logger)
        return .init(role.rawValue, CancelledService { try await attempts.keep(run) })
    }
}
