import Commands
import Gateway
import HTTP
import Observability
import Operations
import ServiceLifecycle

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `weir run`: the whole pipeline until SIGTERM or SIGINT.
enum Run {
    static func run(_ settings: RunSettings, _ logging: LogConfiguration) async -> ExitCode {
        let sink = BoundedLogSink(format: logging.format)
        let isColoured = LogOutput.showsColours(descriptor: STDERR_FILENO, environment: Environment.variables)
        let output = LogOutput(format: logging.format, isColoured: isColoured, to: sink)
        let logger = Logger(label: "weir", output: output, level: logging.level)
        defer { _ = sink.flush(within: .seconds(1)) }
        let monitoring = Monitoring()
        let operations = settings.operations.address.map {
            OperationsServer(
                address: $0, metrics: monitoring.metrics, readiness: monitoring.readiness,
                liveness: monitoring.liveness, logger: logger.labeled("operations"))
        }
        do {
            var signals = Optional(try ProcessSignals())
            try operations?.start()
            do {
                try await pipeline(settings, &signals, logger, monitoring)
            } catch {
                await operations?.stop()
                throw error
            }
            await operations?.stop()
            return .success
        } catch {
            logger.critical("Weir cannot go on", [.error: .string("\(error)")])
            return .failure
        }
    }

    /// Runs the pipeline until it is asked to stop.
    private static func pipeline(
        _ settings: RunSettings, _ signals: inout ProcessSignals?, _ logger: Logger, _ monitoring: Monitoring
    ) async throws {
        let pipeline = try await EmbeddedPipeline.open(settings, logger: logger, monitoring: monitoring)
        try await pipeline.run { group in
            do {
                try signals.take()?.listen { group.shutDown(reason: "signal \($0.name)") }
            } catch {
                logger.warning("Signals are not heard", [.error: .string("\(error)")])
            }
        } started: { address in
            logger.notice(
                "Weir is ready: send the first request to \(Self.url(address, settings))",
                [.address: .string("\(address)"), .path: .string(settings.pipeline.data)])
        }
    }

    private static func url(_ address: HTTPPeer, _ settings: RunSettings) -> String {
        "\(settings.gateway.server.tls == nil ? "http" : "https")://\(address)/v1/sync"
    }
}
