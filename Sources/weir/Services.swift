import ChangeLog
import FanOutLink
import Gateway
import HTTP
import ServiceLifecycle

/// A stage that ends, in order, when its task is cancelled.
struct CancelledService: Service {
    private let body: @Sendable () async throws -> Void

    init(_ body: @escaping @Sendable () async throws -> Void) { self.body = body }

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError where isShuttingDownGracefully {
            // As asked.
        }
    }
}

/// The gateway, from the moment it listens until it is asked to stop.
struct GatewayRole<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: Service {
    let gateway: GatewayService<Log, Link, Auth>
    let condition: ReadinessCondition
    let started: @Sendable (HTTPPeer) -> Void
    /// Returns when requests may come.
    let opened: @Sendable () async throws -> Void

    init(
        gateway: GatewayService<Log, Link, Auth>, condition: ReadinessCondition,
        started: @escaping @Sendable (HTTPPeer) -> Void, after opened: @escaping @Sendable () async throws -> Void
    ) {
        self.gateway = gateway
        self.condition = condition
        self.started = started
        self.opened = opened
    }

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown(opened)
        } catch is CancellationError where isShuttingDownGracefully {
            return
        }
        let address = try await gateway.start()
        condition.setReady()
        started(address)
        do {
            try await gracefulShutdown()
        } catch {
            // Cancelled: the time to stop is over.
        }
        condition.setUnready("the process stops")
        await gateway.stop()
    }

    func untilReady() async throws { try await condition.untilReady() }
}
