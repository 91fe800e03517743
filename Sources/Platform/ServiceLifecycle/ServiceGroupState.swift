/// The state machine of a group: handles events and returns actions.
///
/// Each service starts when the one before is ready, and is asked to stop when the one after has ended or was
/// abandoned.
struct ServiceGroupState {
    enum Event {
        case ready(Int)
        case readyFailed(Int, any Error)
        case finished(Int, (any Error)?)
        case shutdown
        case timeIsUp(timer: Int)
    }

    enum Action {
        case start(Int)
        case announceReady
        case stop(Int)
        case cancel(Int)
        /// The service did not end after its cancellation.
        case abandon(Int)
        /// Replaces the previous timer.
        case setTimer(Int, Duration)
        case end((any Error)?)
    }

    private enum Phase {
        case starting(Int)
        case running
        case stopping(Int)
        case cancelling(Int)
        case ended
    }

    private let members: [ServiceGroup.Member]
    private let cancellationLimit: Duration
    private var phase = Phase.starting(0)
    private var started = 0
    private var isFinished: [Bool]
    private var failure: (any Error)?
    private var timer = 0

    init(_ members: [ServiceGroup.Member], cancellationLimit: Duration) {
        self.members = members
        self.cancellationLimit = cancellationLimit
        isFinished = Array(repeating: false, count: members.count)
    }

    mutating func start() -> [Action] { startNext() }

    mutating func handle(_ event: Event) -> [Action] {
        switch (event, phase) {
        case (.ready(let index), .starting(let current)) where index == current:
            return startNext()
        case (.readyFailed(let index, let error), .starting(let current)) where index == current:
            return fail(error)
        case (.finished(let index, let error), _):
            isFinished[index] = true
            return finished(index, error)
        case (.shutdown, .starting), (.shutdown, .running):
            return stopNext()
        case (.timeIsUp(timer), .starting(let index)):
            return fail(
                ServiceGroupError.startLimitPassed(service: members[index].name, limit: members[index].startLimit))
        case (.timeIsUp(timer), .stopping(let index)):
            let member = members[index]
            failure = failure ?? ServiceGroupError.stopLimitPassed(service: member.name, limit: member.stopLimit)
            phase = .cancelling(index)
            return [.cancel(index), setTimer(cancellationLimit)]
        case (.timeIsUp(timer), .cancelling(let index)):
            isFinished[index] = true
            return [.abandon(index)] + stopNext()
        case (.ready, _), (.readyFailed, _), (.shutdown, _), (.timeIsUp, _):
            // The event no longer matters in this phase.
            return []
        }
    }

    private mutating func finished(_ index: Int, _ error: (any Error)?) -> [Action] {
        switch phase {
        case .starting, .running:
            if let error { return fail(error) }
            guard members[index].mayFinish else {
                return fail(ServiceGroupError.finishedUnexpectedly(service: members[index].name))
            }
            if case .starting(index) = phase { return startNext() }
            if case .running = phase, isFinished.allSatisfy(\.self) { return stopNext() }
            return []
        case .stopping(let current), .cancelling(let current):
            // A service that was asked to stop may end with a CancellationError.
            if let error, !(error is CancellationError) { failure = failure ?? error }
            return index == current ? stopNext() : []
        case .ended:
            return []
        }
    }

    private mutating func startNext() -> [Action] {
        guard started < members.count else {
            phase = .running
            // All services may have ended during the start.
            return [.announceReady] + (isFinished.allSatisfy(\.self) ? stopNext() : [])
        }
        let index = started
        started += 1
        phase = .starting(index)
        return [.start(index), setTimer(members[index].startLimit)]
    }

    private mutating func fail(_ error: any Error) -> [Action] {
        failure = error
        return stopNext()
    }

    /// Stops the last running service; ends the group if there is none.
    private mutating func stopNext() -> [Action] {
        guard let index = (0..<started).last(where: { !isFinished[$0] }) else {
            phase = .ended
            return [.end(failure)]
        }
        phase = .stopping(index)
        return [.stop(index), setTimer(members[index].stopLimit)]
    }

    private mutating func setTimer(_ limit: Duration) -> Action {
        timer += 1
        return .setTimer(timer, limit)
    }
}
