import ChangeLog
import FanOutLink
import Gateway
import HTTP
import Observability
import ServiceLifecycle

/// A stage that ends, in order, when its task is cancelled.
package struct CancelledService: Service {
    private let body: @Sendable () async throws -> Void

    package init(_ body: @escaping @Sendable () async throws -> Void) { self.body = body }

    package func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError where isShuttingDownGracefully {
            // The process stops.
        }
    }
}

/// How requests reach the gateway of a process.
package enum Entrance: Sendable {
    /// By HTTP, at the address of its settings; the closure gets the address that it is.
    case http(@Sendable (HTTPPeer) -> Void = { _ in })
    /// By calls of this process; the closure gets the handler once requests can be served.
    case calls(@Sendable (any HTTPHandler) -> Void)
}

/// The gateway, from the moment it listens until it is asked to stop.
struct GatewayRunner<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: Service {
    let gateway: GatewayService<Log, Link, Auth>
    let entrance: Entrance
    let condition: ReadinessCondition
    /// For the log: the scheme of its URL, and the data folder of a process with embedded storage.
    let scheme: String
    let data: String?
    let logger: Logger
    /// Returns when requests can be served.
    let canServe: @Sendable () async throws -> Void

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown(canServe)
        } catch is CancellationError where isShuttingDownGracefully {
            return
        }
        switch entrance {
        case .http(let receive):
            let address = try await gateway.start()
            condition.setReady()
            logReady(at: "\(address)")
            receive(address)
        case .calls(let receive):
            let handler = gateway.startWithoutServer()
            condition.setReady()
            receive(handler)
        }
        do {
            try await gracefulShutdown()
        } catch {
            // Cancelled: the time to stop is over.
        }
        condition.setUnready("the process stops")
        await gateway.stop()
    }

    private func logReady(at address: String) {
        var metadata: LogMetadata = [.address: .string(address)]
        if let data { metadata[.path] = .string(data) }
        if gateway.servesDemo { logger.notice("The demo page is at \(scheme)://\(address)/demo") }
        logger.notice("Weir is ready: send the first request to \(scheme)://\(address)/v1/sync", metadata)
    }

    func untilReady() async throws { try await condition.untilReady() }
}
