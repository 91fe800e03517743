import Commands
import Glibc
import Observability
import Operations
import ServiceLifecycle

/// What every process that serves has around it: its log, the operations port, and the signals that end it.
enum ServiceRunner {
    /// Runs a body until it ends, with the operations port open from before it begins until after it has ended.
    static func run(
        _ logging: LogConfiguration, _ operations: OperationsConfiguration,
        _ body: (Logger, Monitoring, StopRequest) async throws -> Void
    ) async -> ExitCode {
        let sink = BoundedLogSink(format: logging.format)
        let isColoured = LogOutput.showsColours(descriptor: STDERR_FILENO, environment: Environment.variables)
        let output = LogOutput(format: logging.format, isColoured: isColoured, to: sink)
        let logger = Logger(label: "weir", output: output, level: logging.level)
        defer { _ = sink.flush(within: .seconds(1)) }
        let monitoring = Monitoring()
        let server = operations.address.map {
            OperationsServer(
                address: $0, metrics: monitoring.metrics, readiness: monitoring.readiness,
                liveness: monitoring.liveness, logger: logger.labeled("operations"))
        }
        let stop = StopRequest()
        do {
            let signals = try ProcessSignals()
            try server?.start()
            do {
                try signals.listen { stop.ask(reason: "signal \($0.name)") }
            } catch {
                logger.warning("Signals are not heard", [.error: .string("\(error)")])
            }
            do {
                try await body(logger, monitoring, stop)
            } catch {
                await server?.stop()
                throw error
            }
            await server?.stop()
            return .success
        } catch {
            logger.critical("Weir cannot go on", [.error: .string("\(error)")])
            return .failure
        }
    }
}
