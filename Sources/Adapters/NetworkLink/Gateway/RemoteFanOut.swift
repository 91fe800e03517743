import AsyncPrimitives
import Configuration
import FanOutLink
import Metrics
import Observability
import SyncModel
import SyncWire
import Synchronization
import ZeroMQ

/// A gateway's link to fan-outs in other processes.
///
/// It keeps a connection with each configured fan-out, learns which partitions each serves, and sends the requests for an owner
/// to a fan-out that serves its partition. If that one cannot respond, another one that serves it is tried within the same time.
package final class RemoteFanOut: Sendable {
    struct Dependencies: Sendable {
        let configuration: RemoteFanOutConfiguration
        let link: LinkConfiguration
        let epoch: String
        let logger: Logger
        let metrics: LinkMetrics
        let clock: LinkClock
        let passed: (@Sendable (StreamReport) -> Void)?
        let unserved: (@Sendable (Set<Int>) -> Void)?
    }

    let dependencies: Dependencies
    let connections: ConnectionState
    private let lifecycle: LinkLifecycle

    /// Creates a link, which ``run()`` or ``start()`` connects.
    ///
    /// - Parameters:
    ///   - epoch: a fan-out with a different epoch is rejected.
    ///   - partitions: the number of partitions of the epoch.
    ///   - passed: called with what each stream has applied. It runs on the link's thread and must return quickly.
    ///   - unserved: called with the partitions that no fan-out serves whenever they change, on the same thread.
    /// - Throws: ``LinkProblem`` for an address that is not loopback, without a key.
    package init(
        _ configuration: RemoteFanOutConfiguration, link: LinkConfiguration, epoch: String, partitions: Int,
        logger: Logger, metrics: LinkMetrics = LinkMetrics(), clock: any Clock<Duration> = ContinuousClock(),
        passed: (@Sendable (StreamReport) -> Void)? = nil,
        unserved: (@Sendable (Set<Int>) -> Void)? = nil
    ) throws(LinkProblem) {
        configuration.requirePositiveBounds()
        link.requirePositiveBounds()
        for address in configuration.fanOuts { try address.checkProtection(link.key) }
        dependencies = Dependencies(
            configuration: configuration, link: link, epoch: epoch, logger: logger, metrics: metrics,
            clock: LinkClock(clock), passed: passed, unserved: unserved)
        do {
            connections = try ConnectionState(
                addresses: configuration.fanOuts.map(\.description), partitions: partitions)
        } catch {
            throw .system("\(error)")
        }
        lifecycle = LinkLifecycle(threadName: "weir-link-ask") { [connections] in
            connections.change { $0.isStopping = true }
        }
    }

    /// The partitions that no fan-out serves now: pulls of their owners fail with ``FanOutError/notReady(_:)``.
    package var unservedPartitions: Set<Int> { connections.state.withLock { $0.unserved } }

    /// Begins to connect; must be called only once.
    package func start() async throws(LinkProblem) {
        let context: ZeroMQContext
        do { context = try ZeroMQContext() } catch { throw .system("\(error)") }
        try lifecycle.start {
            dependencies.clock.heartbeat(every: dependencies.link.heartbeat) { [connections] in
                connections.change { $0.heartbeats += 1 }
            }
        } serving: {
            self.serve(context)
        }
    }

    /// Keeps the connections until ``stop()`` is called or the task is cancelled; starts first if that was not done.
    ///
    /// - Throws: ``LinkProblem`` when libzmq fails.
    package func run() async throws {
        try await lifecycle.run { () async throws(LinkProblem) in try await start() }
    }

    /// Closes the connections, fails every call with ``FanOutError/closed``, and waits for the thread to end.
    package func stop() async { await lifecycle.stop() }

    private func serve(_ context: ZeroMQContext) -> LinkProblem? {
        defer { context.close() }
        defer { connections.close() }
        do {
            try ClientLoop(context, connections, dependencies).run()
            return nil
        } catch {
            return .system("the link failed: \(error)")
        }
    }

    // MARK: Requests

    /// Why a request has no response.
    enum Failure: Error {
        /// The fan-out's own failure.
        case failed(FanOutError)
        /// The fan-out is not connected, or the connection was lost.
        case lost(String)
    }

    static let unexpectedResponse = "the fan-out sent a response of another kind"

    /// Sends a request to a fan-out and waits for the response.
    func send(_ request: LinkRequest, to fanOut: Int, within limit: Duration) async throws(Failure) -> LinkResponse {
        let metrics = dependencies.metrics
        let watch = Stopwatch()
        let waiter = Promise<ConnectionState.Completion>()
        let number = try enqueue(request, to: fanOut, within: limit, waiter)
        let completion = await waiter.value(cancelled: .cancelled)
        metrics.roundTrips.record(watch.nanoseconds)
        switch completion {
        case .response(.failure(let error)):
            metrics.failed.add()
            throw .failed(error)
        case .response(let response):
            metrics.answered.add()
            return response
        case .lost(let reason):
            metrics.lost.add()
            throw .lost(reason)
        case .cancelled:
            connections.change { state in
                if let request = state.pending[number] { connections.cancel(number, request, &state) }
            }
            throw .failed(.closed)
        }
    }

    private func enqueue(
        _ request: LinkRequest, to fanOut: Int, within limit: Duration,
        _ waiter: Promise<ConnectionState.Completion>
    ) throws(Failure) -> Int64 {
        let configuration = dependencies.configuration
        let number = connections.state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let bytes = GatewayMessage.request(number: number, within: limit, request).encode()
        guard bytes.count <= dependencies.link.maximumMessageBytes else {
            throw .failed(.notReady("the request is larger than link.max-message-bytes"))
        }
        let deadline = dependencies.clock.now() + limit + configuration.answerTimeout
        let failure: Failure? = connections.change { state in
            if state.isStopping { return .failed(.closed) }
            guard let connection = state.fanOuts[fanOut].connection else {
                return .lost("the fan-out is not connected")
            }
            guard state.fanOuts[fanOut].pendingCount < configuration.maximumRequests else {
                return .failed(.notReady("too many requests to one fan-out are in flight"))
            }
            state.fanOuts[fanOut].pendingCount += 1
            state.pending[number] = .init(fanOut: fanOut, deadline: deadline, waiter: waiter)
            state.outgoing.append(.init(fanOut: fanOut, connection: connection, bytes: bytes))
            return nil
        }
        if let failure { throw failure }
        return number
    }
}
