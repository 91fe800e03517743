import ChangeLog
import Configuration
import FanOutLink
import HTTP
import Observability
import SyncModel
import Synchronization

/// The gateway's HTTP server around a `GatewayHandler`.
///
/// Start it once, stop it once.
package final class GatewayService<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: Sendable {
    private let handler: GatewayHandler<Log, Link, Auth>
    private let server: HTTPServer
    private let patience: Duration
    private let logger: Logger
    /// They send the event streams' keep-alives, and write which devices were seen, while the service runs.
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// - Parameters:
    ///   - patience: how long ``stop()`` waits for requests that wait for outcomes.
    package init(
        _ handler: GatewayHandler<Log, Link, Auth>, logger: Logger = .disabled, patience: Duration = .seconds(10)
    ) {
        self.handler = handler
        self.patience = patience
        self.logger = logger
        var settings = handler.configuration.server
        settings.host = handler.configuration.address.host
        settings.port = handler.configuration.address.port
        settings.maxBodyBytes = handler.limits.maxBatchBytes
        settings.formatRefusal = { Problem($0).response }
        settings.onEvent = { logger.log($0) }
        if let crossOrigin = handler.crossOrigin { settings.commonFields = { crossOrigin.fields(for: $0) } }
        server = HTTPServer(
            configuration: settings, handler: MeteredHandler(handler: handler, metrics: handler.metrics),
            responseBudget: handler.responseBudget)
    }

    /// Starts to serve requests.
    ///
    /// - Returns: the bound address; for port 0, with the port that the system chose.
    /// - Throws: ``GatewayRefusal`` or `HTTPServerError`; both say what to do.
    package func start() async throws -> HTTPPeer {
        let address = handler.configuration.address
        let trustsEveryCaller = handler.authenticator.trustsEveryCaller
        if trustsEveryCaller, !Loopback.contains(address.host) { throw GatewayRefusal.reachableByOthers(address) }
        if trustsEveryCaller, handler.crossOrigin?.allowsEvery == true { throw GatewayRefusal.reachableByEveryPage }
        let bound = try server.start()
        // A host name can resolve to any address.
        if trustsEveryCaller, !Loopback.contains(bound.address) {
            await server.stop(patience: .zero)
            throw GatewayRefusal.reachableByOthers(address)
        }
        startTasks()
        logger.notice("The gateway listens", [.address: .text(bound)])
        return bound
    }

    /// Starts without a server, for requests of this process alone.
    ///
    /// - Returns: what answers them.
    package func startWithoutServer() -> any HTTPHandler {
        startTasks()
        return handler
    }

    private func startTasks() {
        tasks.withLock { tasks in
            tasks.append(Task { [handler] in await handler.sendKeepAlives() })
            tasks.append(Task { [handler] in await handler.writeDevices() })
            tasks.append(Task { [handler] in await handler.files?.collect(handler.clock) })
        }
    }

    /// Accepts no new connections, ends long polls and event streams at once, waits up to `patience` for requests that
    /// wait for outcomes, and closes the log's producer.
    package func stop() async {
        await server.stopAccepting()
        handler.polls.stop()
        handler.eventStreams.stop()
        await server.stop(patience: patience)
        let tasks = tasks.withLock { tasks in
            defer { tasks = [] }
            return tasks
        }
        for task in tasks {
            task.cancel()
            await task.value
        }
        await handler.close()
        logger.notice("The gateway has stopped")
    }

    /// Whether the demo page is served.
    package var servesDemo: Bool { handler.demo != nil }

    /// Has the certificate's files read again at once; returns before they are.
    package func checkCertificate() { server.checkCertificate() }

    /// Why appends to `uploads` failed in the last 5 seconds, for an operator; `nil` if none failed.
    package var uploadFailure: String? { handler.uploads.recentFailure(within: .seconds(5)).map { "\($0)" } }

    /// The current counters.
    package var counters: GatewayCounters {
        GatewayCounters(
            http: server.counters, waiting: handler.waitingCount, watchers: handler.eventStreams.count,
            uploadBytes: handler.quota.bytes)
    }
}

/// Counters of a gateway; they are read one after the other, not as one snapshot.
package struct GatewayCounters: Sendable {
    /// Connections and requests.
    package let http: HTTPServerCounters
    /// Requests that wait for the log, an outcome, a stream, a move of a head or for rates, and refusals held back.
    package let waiting: Int
    /// Open event streams.
    package let watchers: Int
    /// Bytes of changes whose append to the log is not durable yet.
    package let uploadBytes: Int
}

/// Why a gateway does not start.
package enum GatewayRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// It trusts every caller, and the address is reachable from other machines.
    case reachableByOthers(NetworkAddress)
    /// It trusts every caller, and web pages of every origin.
    case reachableByEveryPage

    package var description: String {
        switch self {
        case .reachableByOthers(let address):
            """
            without authentication, every client that can reach \(address) could read and write all data; configure \
            authentication, or listen on loopback only: 127.0.0.1:\(address.port) or [::1]:\(address.port)
            """
        case .reachableByEveryPage:
            """
            without authentication, gateway.cors-origins * would let every web page that is open on this machine read and \
            write all data; name the origins, or configure authentication
            """
        }
    }
}

/// A clock whose times count from the gateway's creation, so that they are plain durations.
package struct GatewayClock: Sendable {
    let now: @Sendable () -> Duration
    /// Throws if the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    package init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }

    /// The time left until a deadline; zero once it has passed.
    func remaining(until deadline: Duration) -> Duration { max(.zero, deadline - now()) }
}

extension Logger {
    fileprivate func log(_ event: HTTPServerEvent) {
        switch event {
        case .library(let line): debug("libmicrohttpd reports", [.reason: .string(line)])
        case .acceptFailed(let code):
            warning(
                "A connection cannot be accepted: out of file descriptors or memory", [.code: .integer(code)])
        case .fewDescriptors(let needed, let allowed):
            warning(
                "The limit of open files is below what max-connections needs: raise the hard limit, ulimit -Hn",
                [.count: .integer(needed), .limit: .integer(allowed)])
        case .certificateLoaded(let path, let expires):
            notice(
                "The certificate was read again; new connections get it",
                [.path: .string(path), .expires: .string(expires)])
        case .certificateUnusable(let reason):
            warning(
                "A changed certificate cannot be used; new connections get the previous one",
                [.reason: .string(reason)])
        case .invalidResponse(let reason): error("A response cannot be sent", [.reason: .string(reason)])
        }
    }
}
