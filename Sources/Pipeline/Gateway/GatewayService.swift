import ChangeLog
import Configuration
import FanOutLink
import HTTP
import Observability
import SyncModel
import Synchronization

/// The gateway: the client contract over HTTP, between an `uploads` log and the fan-outs.
///
/// Start it once, stop it once.
package final class GatewayService<Log: ChangeLog, Link: FanOutLink, Auth: Authenticator>: Sendable {
    private let handler: GatewayHandler<Log, Link, Auth>
    private let server: HTTPServer
    private let address: NetworkAddress
    private let trustsEverybody: Bool
    private let keepAlive: Duration
    private let patience: Duration
    private let time: GatewayDeadline
    private let logger: Logger
    /// Keeps the event streams alive while the service runs.
    private let timer = Mutex<Task<Void, Never>?>(nil)

    /// Makes a gateway that listens to nothing yet.
    ///
    /// - Parameters:
    ///   - log: takes the uploads.
    ///   - link: answers pulls and outcomes.
    ///   - authenticator: says who is calling.
    ///   - history: the history that `log` holds.
    ///   - schemas: the schema versions known at the moment of the call, which must not wait.
    ///   - limits: what a request may hold.
    ///   - configuration: everything else that can be set.
    ///   - backlog: is told by the stages how far they came; without one uploads are taken however far they are behind.
    ///   - logger: hears of what an operator may want to know.
    ///   - metrics: what is counted.
    ///   - clock: measures waits, rates and the time between the comments of event streams.
    ///   - patience: how long ``stop()`` waits for outcomes under way.
    package init(
        log: Log, link: Link, authenticator: Auth, history: History, schemas: @escaping @Sendable () -> SchemaHistory,
        limits: SyncLimits = SyncLimits(), configuration: GatewayConfiguration, backlog: UploadBacklog? = nil,
        logger: Logger = .disabled, metrics: GatewayMetrics = GatewayMetrics(),
        clock: some Clock<Duration> = ContinuousClock(), patience: Duration = .seconds(10)
    ) {
        time = GatewayDeadline(clock)
        handler = GatewayHandler(
            log: log, link: link, authenticator: authenticator, history: history, schemas: schemas, limits: limits,
            configuration: configuration, backlog: backlog, logger: logger, metrics: metrics, time: time)
        var settings = configuration.server
        settings.host = configuration.address.host
        settings.port = configuration.address.port
        settings.maxBodyBytes = limits.maxBatchBytes
        settings.formatRefusal = { Problem($0).response }
        settings.onEvent = { logger.note($0) }
        server = HTTPServer(
            configuration: settings, handler: MeteredHandler(handler: handler, metrics: metrics))
        address = configuration.address
        trustsEverybody = authenticator.trustsEverybody
        keepAlive = configuration.keepAlive
        self.patience = patience
        self.logger = logger
    }

    /// Listens and answers.
    ///
    /// - Returns: the address bound, with the port that the system chose where 0 was asked for.
    /// - Throws: ``GatewayRefusal`` and `HTTPServerError`, which say what to do.
    package func start() async throws -> HTTPPeer {
        if trustsEverybody, !Loopback.contains(address.host) { throw GatewayRefusal.reachableByOthers(address) }
        let bound = try server.start()
        // A name can stand for any address.
        if trustsEverybody, !Loopback.contains(bound.address) {
            await server.stop(patience: .zero)
            throw GatewayRefusal.reachableByOthers(address)
        }
        let handler = handler
        let (time, keepAlive) = (time, keepAlive)
        let task = Task {
            var next = time.now()
            while true {
                next += keepAlive
                // Cancelled by the stop.
                do { try await time.sleep(next) } catch { return }
                handler.watchers.keepAlive()
            }
        }
        timer.withLock { $0 = task }
        logger.notice("The gateway listens", [.address: .text(bound)])
        return bound
    }

    /// Takes no new connections, ends long polls and event streams at once, waits for the outcomes under way for as long as
    /// its patience lasts, and closes the log's producer.
    package func stop() async {
        await server.stopAccepting()
        handler.polls.stop()
        handler.watchers.stop()
        await server.stop(patience: patience)
        await handler.close()
        let task = timer.withLock { $0.take() }
        task?.cancel()
        await task?.value
        logger.notice("The gateway has stopped")
    }

    /// Why uploads could not be appended in the last seconds, in words for an operator; `nil` where they could.
    package var uploadFailure: String? { handler.uploads.recentFailure(within: .seconds(5)).map { "\($0)" } }

    /// What the gateway has done and holds now.
    package var counters: GatewayCounters {
        GatewayCounters(
            http: server.counters, waiting: handler.waitingCount, watchers: handler.watchers.count,
            uploadBytes: handler.quota.bytes)
    }
}

/// What a gateway has done and holds; each number is right by itself, all together are not one moment's.
package struct GatewayCounters: Sendable {
    /// Connections and requests.
    package let http: HTTPServerCounters
    /// Requests that wait for the log, an outcome, a stream or a move.
    package let waiting: Int
    /// Event streams.
    package let watchers: Int
    /// Bytes of changes that the log does not have durably yet.
    package let uploadBytes: Int
}

/// Why a gateway does not start.
package enum GatewayRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// It takes every caller's word for who it is, and others than this machine could reach it.
    case reachableByOthers(NetworkAddress)

    /// What is wrong and what to do about it.
    package var description: String {
        switch self {
        case .reachableByOthers(let address):
            """
            without authentication everybody who reaches \(address) could read and write everything; configure \
            authentication, or listen to this machine alone: 127.0.0.1:\(address.port) or [::1]:\(address.port)
            """
        }
    }
}

/// The addresses that only this machine reaches.
enum Loopback {
    /// Whether a host is one: an address of 127.0.0.0/8, `::1`, or the name `localhost`.
    static func contains(_ host: String) -> Bool {
        let host = host.lowercased().utf8
        if host.elementsEqual("localhost".utf8) || host.elementsEqual("::1".utf8) { return true }
        let parts = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0].elementsEqual("127".utf8)
            && parts.allSatisfy { (1...3).contains($0.count) && UInt8(Substring($0)) != nil }
    }
}

extension Logger {
    /// Tells of what happened to the HTTP server.
    fileprivate func note(_ event: HTTPServerEvent) {
        switch event {
        case .library(let line): debug("The HTTP library reports", [.reason: .string(line)])
        case .acceptFailed(let code):
            warning("No connection can be taken for want of descriptors or memory", [.code: .integer(code)])
        case .fewDescriptors(let needed, let allowed):
            warning(
                "The process may open fewer files than the gateway's connections need: raise the hard limit, ulimit -Hn",
                [.count: .integer(needed), .limit: .integer(allowed)])
        case .invalidResponse(let reason): error("An answer could not be sent", [.reason: .string(reason)])
        }
    }
}
