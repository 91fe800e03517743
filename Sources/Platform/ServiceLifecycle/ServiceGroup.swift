import Observability
import Synchronization

/// Runs services together: starts each when the one before is ready, and stops them in reverse order.
///
/// The group stops when it is asked to (`shutDown`), when its task is cancelled, or when a service fails, whose error
/// the group then throws. In every case the services are asked to stop one after the other: each has `Member.stopLimit`
/// to finish before it is cancelled, and `cancellationLimit` before it is abandoned.
package final class ServiceGroup: Sendable {
    /// A service and its time limits.
    package struct Member: Sendable {
        /// The name in logs and errors.
        package let name: String

        package let service: any Service

        /// The time until it must be ready.
        package let startLimit: Duration

        /// The time to stop, including the final flush, before it is cancelled.
        package let stopLimit: Duration

        /// Whether it may return before it is asked to stop.
        package let mayFinish: Bool

        package init(
            _ name: String, _ service: any Service, startLimit: Duration = .seconds(60),
            stopLimit: Duration = .seconds(30), mayFinish: Bool = false
        ) {
            self.name = name
            self.service = service
            self.startLimit = startLimit
            self.stopLimit = stopLimit
            self.mayFinish = mayFinish
        }
    }

    private let members: [Member]
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let cancellationLimit: Duration
    // Bounded by its events: for each member one readiness, one end and at most three timers, and one shutdown.
    private let events = AsyncStream.makeStream(of: ServiceGroupState.Event.self, bufferingPolicy: .unbounded)
    private let isAskedToStop = Atomic(false)
    private let isRun = Atomic(false)

    /// - Parameters:
    ///   - members: in start order; not empty.
    ///   - cancellationLimit: the time for a cancelled service to end before the group ends without it.
    package init(
        _ members: [Member], logger: Logger, cancellationLimit: Duration = .seconds(5),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        precondition(!members.isEmpty, "a group needs at least one service")
        self.members = members
        self.logger = logger
        self.cancellationLimit = cancellationLimit
        self.clock = clock
    }

    /// Asks the group to stop gracefully, from any thread, before or while it runs.
    ///
    /// Further calls have no effect.
    package func shutDown(reason: String) {
        guard !isAskedToStop.exchange(true, ordering: .relaxed) else { return }
        logger.notice("Shutting down", [.reason: .string(reason)])
        events.continuation.yield(.shutdown)
    }

    /// Runs the services until all have stopped; call it once.
    ///
    /// - Throws: the error of the first service that failed, or a `ServiceGroupError`.
    package func run() async throws {
        precondition(!isRun.exchange(true, ordering: .relaxed), "a group runs once")
        // In a task of its own, because cancelling the caller's task must stop the services gracefully.
        let running = Task { try await supervise() }
        try await withTaskCancellationHandler {
            try await running.value
        } onCancel: {
            shutDown(reason: "the group's task was cancelled")
        }
    }

    private func supervise() async throws {
        var state = ServiceGroupState(members, cancellationLimit: cancellationLimit)
        var running = RunningServices(members, clock: clock, events: events.continuation)
        defer { running.stopWaiting() }
        var actions = state.start()
        var iterator = events.stream.makeAsyncIterator()
        while true {
            for action in actions {
                if case .end(let failure) = action {
                    if let failure { throw failure }
                    return
                }
                log(action)
                running.perform(action)
            }
            guard let event = await iterator.next() else {
                preconditionFailure("the events of a group end with it")
            }
            log(event)
            actions = state.handle(event)
        }
    }

    private func log(_ action: ServiceGroupState.Action) {
        switch action {
        case .start(let index): logger.debug("Service starting", [.service: .string(members[index].name)])
        case .announceReady: logger.info("Every service is ready", [.count: .integer(members.count)])
        case .stop(let index): logger.debug("Service stopping", [.service: .string(members[index].name)])
        case .cancel(let index):
            logger.error(
                "Service exceeded its stop limit and is cancelled",
                [.service: .string(members[index].name), .limit: .duration(members[index].stopLimit)])
        case .abandon(let index):
            logger.critical(
                "Service did not end after cancellation and is abandoned",
                [.service: .string(members[index].name), .limit: .duration(cancellationLimit)])
        case .setTimer, .end: break
        }
    }

    private func log(_ event: ServiceGroupState.Event) {
        switch event {
        case .ready(let index): logger.debug("Service is ready", [.service: .string(members[index].name)])
        case .finished(let index, .none): logger.debug("Service ended", [.service: .string(members[index].name)])
        case .finished(let index, let error?) where !(error is CancellationError),
            .readyFailed(let index, let error) where !(error is CancellationError):
            logger.error("Service failed", [.service: .string(members[index].name)], error: error)
        case .finished(let index, _):
            logger.debug("Service ended by cancellation", [.service: .string(members[index].name)])
        case .readyFailed, .shutdown, .timeIsUp: break
        }
    }
}

/// The tasks of a group; performs the actions of its state machine.
private struct RunningServices {
    let members: [ServiceGroup.Member]
    let clock: any Clock<Duration>
    let events: AsyncStream<ServiceGroupState.Event>.Continuation
    var signals: [ShutdownSignal] = []
    var runs: [Task<Void, Never>] = []
    var waitForReadiness: Task<Void, Never>?
    var timer: Task<Void, Never>?

    init(
        _ members: [ServiceGroup.Member], clock: any Clock<Duration>,
        events: AsyncStream<ServiceGroupState.Event>.Continuation
    ) {
        self.members = members
        self.clock = clock
        self.events = events
    }

    mutating func perform(_ action: ServiceGroupState.Action) {
        switch action {
        case .start(let index): start(index)
        case .announceReady: stopTimer()
        case .stop(let index):
            stopWaiting()
            signals[index].trigger()
        case .cancel(let index): runs[index].cancel()
        case .setTimer(let number, let limit): setTimer(number, limit)
        case .abandon, .end: break
        }
    }

    /// Members start in order, so they have the same indexes in `signals` and `runs`.
    private mutating func start(_ index: Int) {
        let service = members[index].service
        let signal = ShutdownSignal()
        signals.append(signal)
        runs.append(
            Task { [events] in
                do {
                    try await ShutdownSignal.$current.withValue(signal) { try await service.run() }
                    events.yield(.finished(index, nil))
                } catch {
                    events.yield(.finished(index, error))
                }
            })
        stopWaiting()
        waitForReadiness = Task { [events] in
            do {
                try await service.untilReady()
                events.yield(.ready(index))
            } catch {
                events.yield(.readyFailed(index, error))
            }
        }
    }

    private mutating func setTimer(_ number: Int, _ limit: Duration) {
        stopTimer()
        timer = Task { [clock, events] in
            do {
                try await clock.sleep(for: limit)
                events.yield(.timeIsUp(timer: number))
            } catch {
                // Stopped before the limit.
            }
        }
    }

    mutating func stopWaiting() {
        waitForReadiness?.cancel()
        waitForReadiness = nil
        stopTimer()
    }

    private mutating func stopTimer() {
        timer?.cancel()
        timer = nil
    }
}
