import Configuration
import HTTP
import Metrics
import Observability
import ServiceLifecycle

/// The operations port: `/metrics` for Prometheus, `/healthz` and `/readyz` for the process manager.
///
/// It runs from before the pipeline starts until after it has stopped, on one thread of its own. It is not
/// authenticated, because it exposes only numbers and names of components, no ids and no values.
package final class OperationsServer: Sendable {
    private let server: HTTPServer
    private let logger: Logger

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
            handler: OperationsHandler(metrics: metrics, readiness: readiness, liveness: liveness))
        self.logger = logger
    }

    /// - Returns: the bound address; for port 0, with the port that the system chose.
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

    /// Waits up to a second for requests in progress.
    package func stop() async { await server.stop(patience: .seconds(1)) }
}

/// Why the operations port does not listen.
package struct OperationsStartError: Error, CustomStringConvertible {
    package let cause: HTTPServerError

    package var description: String { "\(cause) (setting operations.address, which can be off)" }
}
