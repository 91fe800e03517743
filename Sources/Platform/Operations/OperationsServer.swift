import Configuration
import HTTP
import Metrics
import Observability
import ServiceLifecycle

/// The operations port: `/metrics` for Prometheus, `/healthz` and `/readyz` for whoever starts and stops processes.
///
/// It listens from before the pipeline starts until after it has stopped, has one thread of its own, and is not
/// authenticated: it shows no ids and no values, only numbers and names of parts.
package final class OperationsServer: Sendable {
    private let server: HTTPServer
    private let logger: Logger

    /// Makes a port that listens to nothing yet.
    ///
    /// - Parameters:
    ///   - address: where to listen.
    ///   - metrics: what `/metrics` shows.
    ///   - readiness: what `/readyz` says.
    ///   - liveness: what `/healthz` says.
    ///   - logger: says where it listens.
    package init(
        address: NetworkAddress, metrics: MetricRegistry, readiness: Readiness, liveness: Liveness,
        logger: Logger = .disabled
    ) {
        var settings = HTTPServerConfiguration()
        settings.host = address.host
        settings.port = address.port
        settings.threads = 1
        settings.maxConnections = 64
        settings.maxConnectionsPerClient = nil
        settings.maxBodyBytes = 0
        settings.requestTimeout = .seconds(10)
        settings.idleTimeout = .seconds(120)
        server = HTTPServer(
            configuration: settings,
            handler: OperationsHandler(
                metrics: metrics, readiness: readiness, liveness: liveness))
        self.logger = logger
    }

    /// Listens and answers.
    ///
    /// - Returns: the address bound, with the port that the system chose where 0 was asked for.
    /// - Throws: ``OperationsStartError``, which says what to do.
    @discardableResult
    package func start() throws(OperationsStartError) -> HTTPPeer {
        let bound: HTTPPeer
        do throws(HTTPServerError) {
            bound = try server.start()
        } catch {
            throw OperationsStartError(cause: error)
        }
        logger.info("The operations port listens", [.url: .string("http://\(bound)/metrics")])
        return bound
    }

    /// Answers what is under way for at most a second, and ends.
    package func stop() async { await server.stop(patience: .seconds(1)) }
}

/// Why the operations port does not listen.
package struct OperationsStartError: Error, CustomStringConvertible {
    /// What the server said.
    package let cause: HTTPServerError

    /// The cause, and the setting that it is about.
    package var description: String { "\(cause) (operations.address, which may be off)" }
}
