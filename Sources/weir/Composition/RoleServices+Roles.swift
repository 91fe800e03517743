import ChangeLog
import Control
import EmbeddedPipeline
import FanOut
import Gateway
import Ingest
import NetworkLink
import Observability
import Operations
import Ordering
import ServiceLifecycle
import SyncModel

/// The services of a process with one role.
extension RoleServices {
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
                condition.setUnready("no fan-out serves these partitions: \(partitionList(unserved))")
            })
        return backend.services(for: Role.gateway.topics, monitoring, logger) + [
            .init("link", CancelledService(fanOuts.run))
        ] + (try gateway(settings, limits, authentication, faces, link: fanOuts, backlog) {})
    }
}
