import Gateway
import HTTP
import Observability
import SyncModel

/// A gateway process without its web server: requests come and answers go as values.
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

    /// Answers a request; `nil` when the client learns nothing: it went away, the process died, the answer was lost.
    func answer(_ request: HTTPRequest, patience: Duration?) async -> HTTPResponse? {
        switch handler.bodyPolicy(for: request) {
        case .refuse(let response): return response
        case .accept, .acceptUpTo: break
        }
        let reply = Reply()
        switch handler.respond(to: request) {
        case .response(let response): reply.resolve(response)
        case .task(let work):
            let task = Task { reply.resolve(await work()) }
            process.onDeath {
                reply.resolve(nil)
                task.cancel()
            }
            if let patience {
                _ = world.scheduler.schedule(at: world.scheduler.now + patience) {
                    if reply.resolve(nil) { task.cancel() }
                }
            }
        }
        let response = await reply.value()
        if response != nil, world.faults.strikes(.answer) {
            world.note("\(process.name): an answer is lost")
            return nil
        }
        return response
    }

    /// Takes no more uploads and ends the producer.
    func close() async { await handler.close() }
}

/// What one request waits for.
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
