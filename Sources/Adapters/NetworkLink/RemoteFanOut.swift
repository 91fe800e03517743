import AsyncPrimitives
import Configuration
import FanOutLink
import LinkWire
import Metrics
import Observability
import SyncModel
import SyncWire
import Synchronization
import ZeroMQ

/// Fan-outs that are other processes, as one: a gateway's link to them.
///
/// It keeps a connection with each fan-out that the configuration names, learns what they serve, and asks for each owner one that
/// serves its partition. Where one cannot answer, another that can is asked within the same time.
package final class RemoteFanOut: Sendable {
    let configuration: RemoteFanOutConfiguration
    let board: LinkState
    let time: LinkTime
    let metrics: LinkMetrics
    private let link: LinkConfiguration
    private let epoch: String
    private let events: ClientLoop.Events
    private let logger: Logger
    private let life: LinkLifecycle

    /// Makes a link; ``run()`` or ``start()`` sets it to work.
    ///
    /// - Parameters:
    ///   - configuration: whom to ask, and bounds.
    ///   - link: what it shares with the fan-outs.
    ///   - epoch: the history; fan-outs of another one are not asked.
    ///   - partitions: how many the history has.
    ///   - logger: told of fan-outs that come, go and are refused.
    ///   - metrics: what is counted.
    ///   - clock: measures beats and answers.
    ///   - passed: told that everything in an upload's partition up to it can be pulled, on the link's own thread: it must
    ///     only note the fact.
    ///   - unserved: told the partitions that nobody serves whenever they change, on the same thread.
    /// - Throws: ``LinkProblem`` for an address beyond this machine without a key.
    package init(
        _ configuration: RemoteFanOutConfiguration, link: LinkConfiguration, epoch: String, partitions: Int,
        logger: Logger, metrics: LinkMetrics = LinkMetrics(), clock: any Clock<Duration> = ContinuousClock(),
        passed: (@Sendable (UploadReference) -> Void)? = nil,
        unserved: (@Sendable (Set<Int>) -> Void)? = nil
    ) throws(LinkProblem) {
        for address in configuration.fanOuts { try address.checkProtection(link.key) }
        configuration.requirePositiveBounds()
        link.requirePositiveBounds()
        self.configuration = configuration
        self.link = link
        self.epoch = epoch
        self.logger = logger
        self.metrics = metrics
        time = LinkTime(clock)
        events = ClientLoop.Events(passed: passed, unserved: unserved)
        do {
            board = try LinkState(addresses: configuration.fanOuts.map(\.description), partitions: partitions)
        } catch {
            throw .system("\(error)")
        }
        life = LinkLifecycle(name: "weir-link-ask") { [board] in board.change { $0.isStopping = true } }
    }

    /// The partitions that no fan-out serves now: pulls of their owners are answered ``FanOutError/notReady(_:)``.
    package var unservedPartitions: Set<Int> { board.state.withLock { $0.unserved } }

    /// Begins to connect; to be called once.
    package func start() async throws(LinkProblem) {
        let context: ZeroMQContext
        do { context = try ZeroMQContext() } catch { throw .system("\(error)") }
        try life.start {
            time.beat(every: link.heartbeat) { [board] in board.change { $0.beats += 1 } }
        } serving: {
            self.serve(context)
        }
    }

    /// Keeps the connections until ``stop()`` is called or the task is cancelled; starts first where nobody did.
    ///
    /// - Throws: ``LinkProblem`` when libzmq fails.
    package func run() async throws {
        try await life.run { () async throws(LinkProblem) in try await start() }
    }

    /// Closes the connections, ends every call with ``FanOutError/closed``, and returns when all is done.
    package func stop() async { await life.stop() }

    private func serve(_ context: ZeroMQContext) -> LinkProblem? {
        defer { context.close() }
        defer { board.close() }
        let loop = ClientLoop(
            context: context, board: board, configuration: configuration, link: link, epoch: epoch, events: events,
            logger: logger, metrics: metrics, now: time.now)
        do {
            try loop.run()
            return nil
        } catch {
            return .system("the link failed: \(error)")
        }
    }

    // MARK: Questions

    /// Why a question has no answer.
    enum Failure: Error {
        /// The fan-out says why.
        case failed(FanOutError)
        /// It cannot be asked, or the connection went.
        case lost(String)
    }

    /// Puts a question to a fan-out and waits for the answer.
    func ask(
        _ question: LinkQuery, of fanOut: Int, within limit: Duration
    ) async throws(Failure) -> LinkAnswer {
        let watch = Stopwatch()
        let waiter = Promise<LinkState.Reply>()
        let number = try begin(question, of: fanOut, within: limit, waiter)
        let reply = await waiter.value(cancelled: .cancelled)
        metrics.roundTrips.record(watch.nanoseconds)
        switch reply {
        case .answer(.failure(let error)):
            metrics.failed.add()
            throw .failed(error)
        case .answer(let answer):
            metrics.answered.add()
            return answer
        case .lost(let reason):
            metrics.lost.add()
            throw .lost(reason)
        case .cancelled:
            board.change { state in
                if let question = state.questions[number] { board.end(number, question, &state) }
            }
            throw .failed(.closed)
        }
    }

    private func begin(
        _ question: LinkQuery, of fanOut: Int, within limit: Duration, _ waiter: Promise<LinkState.Reply>
    ) throws(Failure) -> Int64 {
        let number = board.state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let bytes = LinkRequest.ask(number: number, within: limit, question).encode()
        guard bytes.count <= link.maximumMessageBytes else {
            throw .failed(.notReady("the question is larger than link.max-message-bytes"))
        }
        let deadline = time.now() + limit + configuration.answerTimeout
        let failure: Failure? = board.change { state in
            if state.isStopping { return .failed(.closed) }
            guard let connection = state.fanOuts[fanOut].connection else { return .lost("it is not connected") }
            guard state.fanOuts[fanOut].underWay < configuration.maximumRequests else {
                return .failed(.notReady("too many questions are under way with a fan-out"))
            }
            state.fanOuts[fanOut].underWay += 1
            state.questions[number] = LinkState.Question(fanOut: fanOut, deadline: deadline, waiter: waiter)
            state.outgoing.append(LinkState.Outgoing(fanOut: fanOut, connection: connection, bytes: bytes))
            return nil
        }
        if let failure { throw failure }
        return number
    }
}
