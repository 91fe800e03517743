import ChangeLog
import Control
import FanOut
import FanOutLink
import Gateway
import HTTP
import Ingest
import Observability
import Operations
import Ordering
import PartitionSupervision
import ServiceLifecycle
import SyncModel

/// The services of a process on one backend.
package struct RoleServices<B: Backend>: Sendable {
    package let backend: B
    package let monitoring: Monitoring
    package let logger: Logger
    package let stages: Stages<B.Log>

    package init(_ backend: B, _ monitoring: Monitoring, _ logger: Logger) {
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
    /// - Parameters:
    ///   - data: the folder to name in the log when requests can be sent.
    ///   - entrance: how requests reach the gateway.
    package func all(
        _ settings: StageSettings, data: String?, entrance: Entrance = .http()
    ) throws -> [ServiceGroup.Member] {
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
                data: data, entrance: entrance, startLimit: backend.startLimit
            ) { try await streams.untilReady() })
    }

    package func gateway(
        _ settings: GatewayConfiguration, _ limits: LimitsConfiguration,
        _ authentication: AuthenticationConfiguration, _ faces: GatewayFaces, link: some FanOutLink,
        _ backlog: UploadBacklog, data: String? = nil, entrance: Entrance = .http(),
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
            gateway: gateway, entrance: entrance, condition: monitoring.conditions[.gateway],
            scheme: settings.server.tls == nil ? "http" : "https", data: data, logger: logger, canServe: canServe)
        return authentication.services + [.init("gateway", runner, startLimit: startLimit)]
    }

    package func stage(ordering settings: OrderingConfiguration) -> ServiceGroup.Member {
        stage(.ordering, stages.ordering(settings, store: backend.tables).run)
    }

    package func stage(_ role: Role, _ run: @escaping @Sendable () async throws -> Void) -> ServiceGroup.Member {
        .init(role.rawValue, backend.service(of: role, monitoring, logger, run: run))
    }

    package func fanOutMonitor(of partitions: [Int]) -> FanOutMonitor {
        FanOutMonitor(
            partitions: partitions, logger: logger.labeled("fanout"), condition: monitoring.conditions[.streams])
    }

    package func retention(
        of topics: [Topic], floors: @escaping @Sendable (Topic) async throws -> [Int: Int64]
    ) -> ServiceGroup.Member {
        .init(
            "retention",
            Retention(log: backend.log, topics: topics, keep: backend.keep, floors: floors, logger: logger))
    }

    /// The offsets of a topic, by partition, from which on retention keeps records.
    package var floors: @Sendable (Topic) async throws -> [Int: Int64] {
        { [backend] topic in
            switch topic {
            case .uploads: try await backend.log.uploadFloors(backend.control.history)
            case .ordered: try await backend.tables.orderedFloors(partitions: backend.partitions.count)
            case .changes, .control, .deadLetters: [:]
            }
        }
    }

    package func recordPassed(_ report: StreamReport, _ backlog: UploadBacklog) {
        if let upload = report.passed { backend.recordPassed(upload) }
        backlog.passed(report)
    }
}

/// Why a face cannot serve the schema.
private struct FaceProblem: Error, CustomStringConvertible {
    let description: String
}
