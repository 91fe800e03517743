import Allocator
import AsyncPrimitives
import ChangeLog
import Commands
import EmbeddedPipeline
import Glibc
import Metrics
import Observability
import Operations
import ServiceLifecycle
import Synchronization

/// Runs a process that serves: with its log, the operations port, and the signals that stop it.
struct ServiceRunner: Sendable {
    let logger: Logger
    let monitoring: Monitoring
    private let stop = StopRequest()

    /// Runs a body until it ends; the operations port is open all the time.
    ///
    /// - Parameter conditions: those of the services, which keep the process from being ready from the start.
    static func run(
        _ log: LogConfiguration, _ operations: OperationsConfiguration, conditions: [Condition],
        _ body: (ServiceRunner) async throws -> Void
    ) async -> ExitCode {
        let sink = BoundedLogSink(format: log.format)
        let isColoured = LogOutput.showsColours(descriptor: STDERR_FILENO, environment: Environment.variables)
        let output = LogOutput(format: log.format, isColoured: isColoured, to: sink)
        let logger = Logger(label: "weir", output: output, level: log.level)
        defer { _ = sink.flush(within: .seconds(1)) }
        let runner = ServiceRunner(logger: logger, monitoring: Monitoring(conditions: [.storage] + conditions))
        runner.setUpAllocator()
        do {
            try await runner.run(operations, body)
            return .success
        } catch {
            logger.critical("Weir stops after an error", [.error: .string("\(error)")])
            return .failure
        }
    }

    private func setUpAllocator() {
        monitoring.metrics.collect { samples in
            if let bytes = Allocator.allocatedBytes() { samples.set(.processAllocated, bytes) }
        }
        do throws(Allocator.Failure) {
            try Allocator.purgeInBackground()
        } catch {
            logger.notice(
                "Freed memory is given back to the system only while memory is used", [.error: .string("\(error)")])
        }
    }

    private func run(
        _ operations: OperationsConfiguration, _ body: (ServiceRunner) async throws -> Void
    ) async throws {
        let signals = try ProcessSignals(handlesHangup: true)
        let server = operations.address.map {
            OperationsServer(
                address: $0, metrics: monitoring.metrics, readiness: monitoring.readiness,
                liveness: monitoring.liveness, logger: logger.labeled("operations"))
        }
        try server?.start()
        do {
            try signals.listen {
                stop.ask(reason: "signal \($0.name)")
            } onHangup: {
                logger.notice("SIGHUP: certificates are read again")
                monitoring.reloads.reload()
            }
        } catch {
            logger.warning("Signals will not stop this process in order", [.error: .string("\(error)")])
        }
        do {
            try await body(self)
        } catch {
            await server?.stop()
            throw error
        }
        await server?.stop()
    }

    /// Opens a backend, runs services on it until the process is asked to stop, and closes it.
    func serve<B: Backend>(
        _ open: @escaping @Sendable (ReadinessCondition) async throws -> B,
        _ services: (RoleServices<B>) throws -> [ServiceGroup.Member]
    ) async throws {
        let condition = monitoring.conditions[.storage]
        let opening = Task { try await open(condition) }
        stop.handle { _ in opening.cancel() }
        let backend: B
        do {
            backend = try await opening.value
        } catch  where opening.isCancelled {
            return
        }
        let result = await Result.capturing {
            let group = ServiceGroup(
                try services(RoleServices(backend, monitoring, logger)), logger: logger)
            condition.setReady()
            stop.handle { group.shutDown(reason: $0) }
            try await group.run()
        }
        try await close(backend)
        try result.get()
    }

    /// How long closing a backend may take; what was acknowledged is durable by then.
    private static let closeLimit = Duration.seconds(20)

    /// Closes a backend, or leaves it to the end of the process after a limit: a service that was abandoned may hold it.
    private func close(_ backend: some Backend) async throws {
        let closed = Promise<Result<Void, any Error>?>()
        let closing = Task { closed.fulfil(await Result.capturing { try await backend.close() }) }
        let outcome = await closed.value(
            within: Self.closeLimit, clock: ContinuousClock(), late: nil, cancelled: nil)
        guard let outcome else {
            closing.cancel()
            logger.critical(
                "The log and the tables do not close; the process ends without", [.limit: .duration(Self.closeLimit)])
            return
        }
        try outcome.get()
    }
}

/// A request to stop the process, which may come before there is anything to stop.
private final class StopRequest: Sendable {
    private struct State {
        var reason: String?
        var handler: (@Sendable (String) -> Void)?
    }

    private let state = Mutex(State())

    /// Requests it; later calls do nothing.
    func ask(reason: String) {
        let handler = state.withLock { state -> (@Sendable (String) -> Void)? in
            guard state.reason == nil else { return nil }
            state.reason = reason
            return state.handler
        }
        handler?(reason)
    }

    /// Replaces the handler, and calls it at once where the request came before.
    func handle(_ handler: @escaping @Sendable (String) -> Void) {
        let reason = state.withLock { state in
            state.handler = handler
            return state.reason
        }
        if let reason { handler(reason) }
    }
}
