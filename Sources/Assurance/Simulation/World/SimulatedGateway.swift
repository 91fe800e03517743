import DeviceModel
import Gateway
import HTTP
import Observability
import PartitionSupervision
import SyncModel

/// A gateway process without its HTTP server: requests and answers are values.
final class SimulatedGateway: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private let handler: GatewayHandler<SimulatedLog, SimulatedLink, TokenAuthenticator>
    private let world: World
    private let process: SimulatedProcess
    private let start: Duration
    private var accepted: [SyncID: Int] = [:]
    /// The fan-outs report to it.
    let backlog: UploadBacklog?

    init(_ world: World, _ process: SimulatedProcess, _ log: SimulatedLog, _ schemas: KnownSchemas) {
        self.world = world
        self.process = process
        start = world.scheduler.now
        var configuration = GatewayConfiguration()
        configuration.pageBytes = world.scenario.pageBytes
        configuration.outcomeWait = world.scenario.outcomeWait
        configuration.maxWaiting = world.scenario.maxWaiting
        configuration.callerBytesInFlight = world.scenario.uploadBytesInFlight
        configuration.callerRates = Rates(changes: world.scenario.changesPerSecond)
        configuration.deviceRates = Rates()
        configuration.server.maxAnswerBytesInFlight = world.scenario.answerBytesInFlight
        backlog = world.scenario.maxLag.map {
            UploadBacklog(partitions: world.scenario.partitions, maximumLag: $0)
        }
        handler = GatewayHandler(
            log: log, link: SimulatedLink(world: world, process: process),
            authenticator: world.issuer.authenticator(world.clock),
            history: world.scenario.history, schemas: { schemas.now },
            limits: SyncLimits(
                maxBatchBytes: world.scenario.maxBatchBytes,
                outcome: OutcomeLimits(
                    maxBatchRowBytes: world.scenario.maxBatchRowBytes, maxOwnerRows: world.scenario.maxOwnerRows,
                    maxOwnerBytes: world.scenario.maxOwnerBytes)),
            configuration: configuration, backlog: backlog, clock: world.clock)
    }

    /// Answers a request; `nil` where the client gets no answer: it timed out, the process died, or the answer was lost.
    func answer(_ request: HTTPRequest, timeout: Duration?) async -> HTTPResponse? {
        var request = request
        switch handler.bodyPolicy(for: request) {
        case .refuse(let response): return response
        case .accept: break
        case .acceptUpTo(let size, caller: _, let context):
            // As the server refuses it.
            if request.body.count > size { return HTTPResponse(status: 413) }
            request.context = context
        // Of faces that take files, which simulated devices do not use.
        case .stream: preconditionFailure("a simulated request has no streamed body")
        }
        let reply = Reply()
        switch handler.respond(to: request) {
        case .response(let response): reply.resolve(response)
        case .task(let work):
            let task = Task {
                var response = await work()
                // Its client has read it at once.
                response.reservation = nil
                reply.resolve(response)
            }
            process.onDeath {
                reply.resolve(nil)
                task.cancel()
            }
            if let timeout {
                _ = world.scheduler.schedule(at: world.scheduler.now + timeout) {
                    if reply.resolve(nil) { task.cancel() }
                }
            }
        }
        let response = await reply.value()
        if response != nil, world.faults.strikes(.answer) {
            world.record("\(process.name): an answer is lost")
            return nil
        }
        return response
    }

    /// Checks that a caller has not uploaded more than its rate allows.
    func accepted(_ changes: Int, of caller: SyncID) {
        let rate = world.scenario.changesPerSecond
        guard rate > 0, changes > 0 else { return }
        let count = accepted[caller, default: 0] + changes
        accepted[caller] = count
        // The bucket holds the changes of ten seconds.
        let seconds = Int((world.scheduler.now - start).components.seconds) + 1 + 10
        if count > rate * seconds {
            world.fail(
                .limits, "\(caller) has uploaded \(count) changes in \(seconds - 10) seconds, at \(rate) a second")
        }
    }

    func close() async { await handler.close() }
}

/// The answer to one request, or its loss; the first counts.
private final class Reply: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private var response: HTTPResponse??
    private var waiting: CheckedContinuation<HTTPResponse?, Never>?

    @discardableResult
    func resolve(_ response: HTTPResponse?) -> Bool {
        guard self.response == nil else { return false }
        self.response = .some(response)
        waiting?.resume(returning: response)
        return true
    }

    func value() async -> HTTPResponse? {
        if let response { return response }
        return await withCheckedContinuation { waiting = $0 }
    }
}
