import Gateway
import HTTP
import Observability
import SyncModel

/// A gateway process without its HTTP server: requests and answers are values.
final class SimulatedGateway: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private let handler: GatewayHandler<SimulatedLog, SimulatedLink, NoAuthentication>
    private let world: World
    private let process: SimulatedProcess

    init(_ world: World, _ process: SimulatedProcess, _ log: SimulatedLog) {
        self.world = world
        self.process = process
        var configuration = GatewayConfiguration()
        configuration.pageBytes = world.scenario.pageBytes
        configuration.outcomeWait = .seconds(10)
        let schemas = world.scenario.schemas
        handler = GatewayHandler(
            log: log, link: SimulatedLink(world: world, process: process), authenticator: NoAuthentication(),
            history: world.scenario.history, schemas: { schemas }, configuration: configuration, clock: world.clock)
    }

    /// Answers a request; `nil` where the client gets no answer: it timed out, the process died, or the answer was lost.
    func answer(_ request: HTTPRequest, timeout: Duration?) async -> HTTPResponse? {
        switch handler.bodyPolicy(for: request) {
        case .refuse(let response): return response
        case .accept, .acceptUpTo: break
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
