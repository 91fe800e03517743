import ChangeLog
import FanOutLink
import Gateway
import HTTP
import Observability
import ServiceLifecycle
import Synchronization

/// A stage that ends, in order, when its task is cancelled.
struct CancelledService: Service {
    private let body: @Sendable () async throws -> Void

    init(_ body: @escaping @Sendable () async throws -> Void) { self.body = body }

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError where isShuttingDownGracefully {
            // The process stops.
        }
    }
}

/// The gateway, from the moment it listens until it is asked to stop.
struct GatewayRunner<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: Service {
    let gateway: GatewayService<Log, Link, Auth>
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
        let address = try await gateway.start()
        condition.setReady()
        var metadata: LogMetadata = [.address: .string("\(address)")]
        if let data { metadata[.path] = .string(data) }
        logger.notice("Weir is ready: send the first request to \(scheme)://\(address)/v1/sync", metadata)
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

/// The failures that recently stopped partitions from being worked on, for the readiness of the process.
///
/// A failure counts for a while, since there is no event when its cause is gone; if the cause remains, the next retry fails
/// before that.
final class RecentFailures: Sendable {
    private struct Failure {
        let reason: String
        let time: ContinuousClock.Instant
    }

    private let memory: Duration
    /// One for each partition at most.
    private let failures = Mutex<[Int: Failure]>([:])

    /// - Parameter memory: for how long a failure counts; longer than the pause before a retry.
    init(memory: Duration) { self.memory = memory }

    func record(_ partition: Int, _ error: any Error) {
        failures.withLock { $0[partition] = Failure(reason: "\(error)", time: .now) }
    }

    /// What failed, in words for an operator; `nil` where nothing did.
    var reason: String? {
        let now = ContinuousClock.now
        return failures.withLock { failures in
            failures = failures.filter { now - $0.value.time < memory }
            guard let first = failures.min(by: { $0.key < $1.key }) else { return nil }
            let others = failures.count > 1 ? ", and \(failures.count - 1) other partitions" : ""
            return "partition \(first.key)\(others): \(first.value.reason)"
        }
    }
}
