import AsyncPrimitives
import Configuration
import FanOutLink
import Observability
import SyncModel
import Synchronization
import ZeroMQ

/// Serves a fan-out to gateways in other processes.
///
/// Every gateway has one connection; its requests run concurrently, each in a task of its own. The process that runs the fan-out
/// reports which partitions are ready, see ``setReady(_:)``.
package final class FanOutServer: Sendable {
    struct Dependencies: Sendable {
        let configuration: FanOutServerConfiguration
        let link: LinkConfiguration
        let fanOut: any FanOutLink
        let logger: Logger
        let metrics: LinkMetrics
    }

    private let dependencies: Dependencies
    private let clock: LinkClock
    private let description: Mutex<LinkDescription>
    private let inbox: ServerInbox
    private let lifecycle: LinkLifecycle
    private let listening = Promise<Result<NetworkAddress, LinkProblem>>()
    private let boundAddress = Mutex<NetworkAddress?>(nil)

    /// Creates a server, which ``run()`` or ``start()`` starts.
    ///
    /// - Parameters:
    ///   - fanOut: what is served.
    ///   - description: the epoch, and the partitions that are ready at first.
    ///   - clock: measures heartbeats.
    /// - Throws: ``LinkProblem`` for an address that is not loopback, without a key.
    package init(
        _ configuration: FanOutServerConfiguration, link: LinkConfiguration, serving fanOut: any FanOutLink,
        description: LinkDescription, logger: Logger, metrics: LinkMetrics = LinkMetrics(),
        clock: any Clock<Duration> = ContinuousClock()
    ) throws(LinkProblem) {
        configuration.requirePositiveBounds()
        link.requirePositiveBounds()
        try configuration.address.checkProtection(link.key)
        dependencies = Dependencies(
            configuration: configuration, link: link, fanOut: fanOut, logger: logger, metrics: metrics)
        self.clock = LinkClock(clock)
        self.description = Mutex(description)
        do { inbox = try ServerInbox() } catch { throw .system("\(error)") }
        lifecycle = LinkLifecycle(threadName: "weir-link-serve") { [inbox] in inbox.stop() }
    }

    /// The address that the server listens at; `nil` before ``start()``.
    package var address: NetworkAddress? { boundAddress.withLock { $0 } }

    /// Begins to listen; must be called only once.
    ///
    /// - Returns: the address, with the port that the system chose for port 0.
    /// - Throws: ``LinkProblem`` when it cannot listen there.
    @discardableResult
    package func start() async throws(LinkProblem) -> NetworkAddress {
        try lifecycle.start {
            clock.heartbeat(every: dependencies.link.heartbeat) { [inbox] in inbox.heartbeat() }
        } serving: {
            self.serve()
        }
        let address = try await listening.value().get()
        boundAddress.withLock { $0 = address }
        dependencies.logger.info("Listening for gateways", [.address: .text(address)])
        return address
    }

    /// Serves until ``stop()`` is called or the task is cancelled; starts first if that was not done.
    ///
    /// - Throws: ``LinkProblem`` when it cannot listen, or libzmq fails.
    package func run() async throws {
        try await lifecycle.run { () async throws(LinkProblem) in try await start() }
    }

    /// Closes every connection, cancels all requests, and waits for the thread to end.
    package func stop() async { await lifecycle.stop() }

    /// Sets the partitions that are ready, and notifies all gateways.
    package func setReady(_ ready: Set<Int>) {
        // Under the lock, so that the newest description is enqueued last.
        description.withLock { description in
            description.ready = ready
            inbox.describe(description)
        }
    }

    /// Notifies the gateways that want to know what a stream has applied.
    package func passed(_ report: StreamReport) { inbox.passed(report) }

    private func serve() -> LinkProblem? {
        let configuration = dependencies.configuration
        let sockets: ServerSockets
        do {
            sockets = try ServerSockets(configuration, dependencies.link)
        } catch {
            let problem = LinkProblem.system("the link cannot listen at \(configuration.address): \(error)")
            listening.fulfil(.failure(problem))
            return problem
        }
        defer { sockets.close() }
        listening.fulfil(.success(sockets.address))
        do {
            try ServerLoop(sockets, inbox, description.withLock { $0 }, dependencies).run()
            return nil
        } catch {
            return .system("the link failed: \(error)")
        }
    }
}
