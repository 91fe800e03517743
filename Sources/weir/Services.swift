import ChangeLog
import FanOut
import FanOutLink
import Gateway
import HTTP
import RecordStore
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

/// The fan-out, ready when every partition serves.
struct FanOutService<Log: ChangeLog, Store: RecordStore>: Service {
    let fanOut: FanOut<Log, Store>
    let watch: FanOutWatch

    func run() async throws { try await cancelWhenGracefulShutdown { try await fanOut.run() } }

    func untilReady() async throws { try await watch.untilReady() }
}

/// The gateway, from the moment it listens until it is asked to stop.
struct GatewayRole<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: Service {
    let gateway: GatewayService<Log, Link, Auth>
    let condition: ReadinessCondition
    let started: @Sendable (HTTPPeer) -> Void

    func run() async throws {
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
}
