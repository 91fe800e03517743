import AsyncPrimitives
import Configuration
import FanOutLink
import LinkWire
import Observability
import SyncModel
import Synchronization
import ZeroMQ

/// Serves a fan-out to gateways that are other processes.
///
/// What is served is a ``FanOutLink`` and its description, which whoever runs the fan-out keeps up to date. Every gateway has
/// one connection; its questions run side by side, each a task of its own.
package final class FanOutServer: Sendable {
    private let configuration: FanOutServerConfiguration
    private let link: LinkConfiguration
    private let fanOut: any FanOutLink
    private let description: Mutex<LinkDescription>
    private let logger: Logger
    private let metrics: LinkMetrics
    private let time: LinkTime
    private let inbox: ServerInbox
    private let life: LinkLifecycle
    private let listening = Promise<Result<NetworkAddress, LinkProblem>>()
    private let place = Mutex<NetworkAddress?>(nil)

    /// Makes a server; ``run()`` or ``start()`` sets it to work.
    ///
    /// - Parameters:
    ///   - configuration: where it listens, and its bounds.
    ///   - link: what it shares with the gateways.
    ///   - fanOut: what answers.
    ///   - description: the history, and which partitions are ready at first; see ``describe(_:)``.
    ///   - logger: told of gateways that come, go and are refused.
    ///   - metrics: what is counted.
    ///   - clock: measures beats.
    /// - Throws: ``LinkProblem`` for an address beyond this machine without a key.
    package init(
        _ configuration: FanOutServerConfiguration, link: LinkConfiguration, serving fanOut: any FanOutLink,
        description: LinkDescription, logger: Logger, metrics: LinkMetrics = LinkMetrics(),
        clock: any Clock<Duration> = ContinuousClock()
    ) throws(LinkProblem) {
        try configuration.address.checkProtection(link.key)
        configuration.requirePositiveBounds()
        link.requirePositiveBounds()
        self.configuration = configuration
        self.link = link
        self.fanOut = fanOut
        self.description = Mutex(description)
        self.logger = logger
        self.metrics = metrics
        time = LinkTime(clock)
        do { inbox = try ServerInbox() } catch { throw .system("\(error)") }
        life = LinkLifecycle(name: "weir-link-serve") { [inbox] in inbox.stop() }
    }

    /// Where it listens; `nil` before ``start()``.
    package var address: NetworkAddress? { place.withLock { $0 } }

    /// Begins to listen; to be called once.
    ///
    /// - Returns: where, with the port that the system chose for port 0.
    /// - Throws: ``LinkProblem`` when it cannot listen there.
    @discardableResult
    package func start() async throws(LinkProblem) -> NetworkAddress {
        try life.start {
            time.beat(every: link.heartbeat) { [inbox] in inbox.beat() }
        } serving: {
            self.serve()
        }
        let address = try await listening.value().get()
        place.withLock { $0 = address }
        logger.info("The link's server listens", [.address: .text(address)])
        return address
    }

    /// Serves until ``stop()`` is called or the task is cancelled; starts first where nobody did.
    ///
    /// - Throws: ``LinkProblem`` when it cannot listen, or libzmq fails.
    package func run() async throws {
        try await life.run { () async throws(LinkProblem) in try await start() }
    }

    /// Ends every connection and all that gateways wait for, and returns when the server has ended.
    package func stop() async { await life.stop() }

    /// What is served has changed: gateways are told.
    ///
    /// - Parameter ready: the partitions that answer now.
    package func setReady(_ ready: Set<Int>) {
        // Under the lock, so that the newest description is the last one told.
        description.withLock { description in
            description.ready = ready
            inbox.describe(description)
        }
    }

    /// Everything in the upload's partition up to it can be pulled: gateways that asked are told.
    package func passed(_ upload: UploadReference) { inbox.passed(upload) }

    private func serve() -> LinkProblem? {
        let sockets: ServerSockets
        do {
            sockets = try ServerSockets(configuration, link)
        } catch {
            let problem = LinkProblem.system("the link cannot listen at \(configuration.address): \(error)")
            listening.fulfil(.failure(problem))
            return problem
        }
        defer { sockets.close() }
        listening.fulfil(.success(sockets.address))
        let loop = ServerLoop(
            sockets: sockets, inbox: inbox, fanOut: fanOut, description: description.withLock { $0 },
            configuration: configuration, link: link, logger: logger, metrics: metrics)
        do {
            try loop.run()
            return nil
        } catch {
            return .system("the link failed: \(error)")
        }
    }
}
