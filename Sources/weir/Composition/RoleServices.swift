import ChangeLog
import Control
import FanOut
import FanOutLink
import Gateway
import HTTP
import Ingest
import NetworkLink
import Observability
import Operations
import Ordering
import PartitionSupervision
import ServiceLifecycle
import SyncModel

/// The services of a process on one backend.
struct RoleServices<B: Backend>: Sendable {
    private let backend: B
    private let monitoring: Monitoring
    private let logger: Logger
    private let stages: Stages<B.Log>

    init(_ backend: B, _ monitoring: Monitoring, _ logger: Logger) {
        self.backend = backend
        self.monitoring = monitoring
        self.logger = logger
        stages = Stages(log: backend.log, control: backend.control, metrics: monitoring.metrics, logger: logger)
        monitoring.readiness.addProbe("partitions") { [failures = stages.failures] in failures.reason }
        monitoring.metrics.collectLag(of: backend.log, partitions: backend.partitions.count)
        backend.addMonitoring(to: monitoring)
    }

    /// All roles; the gateway uses the fan-out of the process.
    ///
    /// - Parameter data: the folder to name in the log when requests can be sent.
    func all(_ settings: StageSettings, data: String?) throws -> [ServiceGroup.Member] {
        let backlog = stages.backlog(settings.gateway)
        let streams = fanOutMonitor(of: backend.partitions)
        streams.handle(passed: { recordPassed($0, backlog) })
        let fanOut = stages.fanOut(
            settings.fanOut, of: backend.partitions, store: backend.tables, observer: streams)
        return backend.services(for: [.uploads, .changes, .ordered], monitoring, logger) + [
            retention(of: Topic.prunable, floors: floors),
            .init("fanout", CancelledService(fanOut.run)),
            stage(ordering: settings.ordering),
            stage(.ingest, stages.ingest(settings.ingest) { backlog.refused($0) }.run),
        ]
            + (try gateway(
                settings.gateway, settings.limits, settings.authentication, settings.faces.faces, link: fanOut, backlog,
                data: data,
                startLimit: backend.startLimit
            ) { try await streams.untilReady() })
    }

    // Each topic's records are removed by the role that reads or writes the topic.

    func ingest(_ settings: IngestConfiguration) -> [ServiceGroup.Member] {
        backend.services(for: Role.ingest.topics, monitoring, logger) + [
            retention(of: [.uploads, .deadLetters], floors: floors),
            stage(.ingest, stages.ingest(settings).run),
        ]
    }

    func ordering(_ settings: OrderingConfiguration) -> [ServiceGroup.Member] {
        backend.services(for: Role.ordering.topics, monitoring, logger) + [
            retention(of: [.ordered], floors: floors), stage(ordering: settings),
        ]
    }

    /// A fan-out and the server of its link, which starts before the streams are open.
    func fanOut(
        _ settings: FanOutConfiguration, _ server: FanOutServerConfiguration, _ link: LinkConfiguration
    ) throws -> [ServiceGroup.Member] {
        let history = backend.control.history
        let served = try settings.partitions.numbers(in: history)
        let streams = fanOutMonitor(of: served)
        let fanOut = stages.fanOut(settings, of: served, store: backend.tables, observer: streams)
        let server = try FanOutServer(
            server, link: link, serving: fanOut,
            description: LinkDescription(epoch: history.epoch, partitions: history.partitions, ready: []),
            logger: logger.labeled("link"), metrics: LinkMetrics(monitoring.metrics))
        streams.handle(passed: { server.passed($0) }, ready: { server.setReady($0) })
        return backend.services(for: Role.fanout.topics, monitoring, logger) + [
            .init("fanout", CancelledService(fanOut.run)), .init("link", CancelledService(server.run)),
        ]
    }

    /// A gateway and its link to the fan-outs.
    func gateway(
        _ settings: GatewayConfiguration, _ limits: LimitsConfiguration,
        _ authentication: AuthenticationConfiguration, _ remote: RemoteFanOutConfiguration, _ link: LinkConfiguration,
        _ faces: GatewayFaces
    ) throws -> [ServiceGroup.Member] {
        let backlog = stages.backlog(settings)
        let condition = monitoring.conditions[.fanOuts]
        let history = backend.control.history
        try SizeLimits.check(limits.limits, in: history)
        try SizeLimits.check(settings, limits.limits, link, in: history)
        let fanOuts = try RemoteFanOut(
            remote, link: link, epoch: history.epoch, partitions: history.partitions,
            logger: logger.labeled("link"), metrics: LinkMetrics(monitoring.metrics),
            passed: { recordPassed($0, backlog) },
            unserved: { unserved in
                guard !unserved.isEmpty else { return condition.setReady() }
                condition.setUnready("no fan-out serves these partitions: \(list(unserved))")
            })
        return backend.services(for: Role.gateway.topics, monitoring, logger) + [
            .init("link", CancelledService(fanOuts.run))
        ] + (try gateway(settings, limits, authentication, faces, link: fanOuts, backlog, data: nil) {})
    }

    private func gateway(
        _ settings: GatewayConfiguration, _ limits: LimitsConfiguration,
        _ authentication: AuthenticationConfiguration, _ faces: GatewayFaces, link: some FanOutLink,
        _ backlog: UploadBacklog, data: String?,
        startLimit: Duration = .seconds(60), canServe: @escaping @Sendable () async throws -> Void
    ) throws -> [ServiceGroup.Member] {
        if let schema = backend.control.schemas.newest?.schema, let problem = faces.problem(with: schema) {
            throw FaceProblem(description: problem)
        }
        let authentication = try Authentication(
            authentication, metrics: monitoring.metrics, logger: logger.labeled("gateway"))
        authentication.addProbe(to: monitoring.readiness)
        let gateway = stages.gateway(
            settings, limits, authentication.authenticator, faces, link: link, backlog: backlog,
            devices: backend.devices, files: backend.files)
        monitoring.reloads.add { gateway.checkCertificate() }
        if backend.reportsFailures { monitoring.readiness.addProbe("uploads") { gateway.uploadFailure } }
        let runner = GatewayRunner(
            gateway: gateway, condition: monitoring.conditions[.gateway],
            scheme: settings.server.tls == nil ? "http" : "https", data: data, logger: logger, canServe: canServe)
        return authentication.services + [.init("gateway", runner, startLimit: startLimit)]
    }

    private func stage(ordering settings: OrderingConfiguration) -> ServiceGroup.Member {
        stage(.ordering, stages.ordering(settings, store: backend.tables).run)
    }

    private func stage(_ role: Role, _ run: @escaping @Sendable () async throws -> Void) -> ServiceGroup.Member {
        .init(role.rawValue, backend.service(of: role, monitoring, logger, run: run))
    }

    private func fanOutMonitor(of partitions: [Int]) -> FanOutMonitor {
        FanOutMonitor(
            partitions: partitions, logger: logger.labeled("fanout"), condition: monitoring.conditions[.streams])
    }

    private func retention(
        of topics: [Topic], floors: @escaping @Sendable (Topic) async throws -> [Int: Int64]
    ) -> ServiceGroup.Member {
        .init(
            "retention",
            Retention(log: backend.log, topics: topics, keep: backend.keep, floors: floors, logger: logger))
    }

    /// The offsets of a topic, by partition, from which on retention keeps records.
    private var floors: @Sendable (Topic) async throws -> [Int: Int64] {
        { [backend] topic in
            switch topic {
            case .uploads: try await backend.log.uploadFloors(backend.control.history)
            case .ordered: try await backend.tables.orderedFloors(partitions: backend.partitions.count)
            case .changes, .control, .deadLetters: [:]
            }
        }
    }

    private func recordPassed(_ upload: UploadReference, _ backlog: UploadBacklog) {
        backend.recordPassed(upload)
        backlog.passed(upload)
    }
}

/// Why a face cannot serve the schema.
private struct FaceProblem: Error, CustomStringConvertible {
    let description: String
}
