import Observability
import Synchronization

/// Runs services together: starts them in order, each when the one before is ready, and stops them in reverse.
///
/// The group stops when it is asked to (`shutDown`), when its task is cancelled, or when a service fails, whose error is
/// then the group's. In every case the services are asked to stop, one after the other, and not cancelled: each has
/// `Member.stopLimit` to finish; only then it is cancelled, and given up after `cancellationLimit`.
package final class ServiceGroup: Sendable {
    /// A service of the group and its bounds in time.
    package struct Member: Sendable {
        /// What logs and errors call it.
        package let name: String

        /// The service.
        package let service: any Service

        /// How long it may take until it is ready.
        package let startLimit: Duration

        /// How long it may take to stop, its last flush included, before it is cancelled.
        package let stopLimit: Duration

        /// Whether it may return before it is asked to stop; otherwise that is an error.
        package let mayFinish: Bool

        /// Puts a service into a group.
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
    // Unbounded by type, bounded by what is sent: for each member one readiness, one end and at most three timers, and
    // one shutdown for the group.
    private let events = AsyncStream.makeStream(of: ServiceGroupState.Event.self, bufferingPolicy: .unbounded)
    private let isAskedToStop = Atomic(false)
    private let isRun = Atomic(false)

    /// Makes a group.
    ///
    /// - Parameters:
    ///   - members: in the order in which they start; not empty.
    ///   - cancellationLimit: how long a service may take to end once it is cancelled, before the group ends without it.
    ///   - clock: what limits are measured with.
    package init(
        _ members: [Member], logger: Logger, cancellationLimit: Duration = .seconds(5),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        precondition(!members.isEmpty, "a group has services")
        self.members = members
        self.logger = logger
        self.cancellationLimit = cancellationLimit
        self.clock = clock
    }

    /// Asks the group to stop gracefully; from any thread, before or while it runs; only the first time counts.
    package func shutDown(reason: String) {
        guard !isAskedToStop.exchange(true, ordering: .relaxed) else { return }
        logger.notice("Shutting down", [.reason: .string(reason)])
        events.continuation.yield(.shutdown)
    }

    /// Runs the services until all have stopped; once for a group.
    ///
    /// - Throws: the error of the first service that failed, or a `ServiceGroupError`.
    package func run() async throws {
        precondition(!isRun.exchange(true, ordering: .relaxed), "a group runs once")
        // A task of its own: cancelling the caller's task asks the services to stop and must not cut them off.
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
        case .start(let place): logger.debug("Service starting", [.service: .string(members[place].name)])
        case .announceReady: logger.info("Every service is ready", [.count: .integer(members.count)])
        case .stop(let place): logger.debug("Service stopping", [.service: .string(members[place].name)])
        case .cancel(let place):
            logger.error(
                "Service takes too long to stop and is cancelled",
                [.service: .string(members[place].name), .limit: .duration(members[place].stopLimit)])
        case .abandon(let place):
            logger.critical(
                "Service does not end although cancelled and is given up",
                [.service: .string(members[place].name), .limit: .duration(cancellationLimit)])
        case .setTimer, .end: break
        }
    }

    private func log(_ event: ServiceGroupState.Event) {
        switch event {
        case .ready(let place): logger.debug("Service is ready", [.service: .string(members[place].name)])
        case .finished(let place, .none): logger.debug("Service ended", [.service: .string(members[place].name)])
        case .finished(let place, let error?) where !(error is CancellationError),
            .readyFailed(let place, let error) where !(error is CancellationError):
            logger.error("Service failed", [.service: .string(members[place].name)], error: error)
        case .finished(let place, _):
            logger.debug("Service ended by cancellation", [.service: .string(members[place].name)])
        case .readyFailed, .shutdown, .timeIsUp: break
        }
    }
}

/// The tasks of a group: carries out what its state decides.
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
        case .start(let place): start(place)
        case .announceReady: stopTimer()
        case .stop(let place):
            stopWaiting()
            signals[place].trigger()
        case .cancel(let place): runs[place].cancel()
        case .setTimer(let number, let limit): setTimer(number, limit)
        case .abandon, .end: break
        }
    }

    /// Members start in order, so that signals and runs have their places.
    private mutating func start(_ place: Int) {
        let service = members[place].service
        let signal = ShutdownSignal()
        signals.append(signal)
        runs.append(
            Task { [events] in
                do {
                    try await ShutdownSignal.$current.withValue(signal) { try await service.run() }
                    events.yield(.finished(place, nil))
                } catch {
                    events.yield(.finished(place, error))
                }
            })
        stopWaiting()
        waitForReadiness = Task { [events] in
            do {
                try await service.untilReady()
                events.yield(.ready(place))
            } catch {
                events.yield(.readyFailed(place, error))
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
                // Stopped: what was limited came in time.
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
