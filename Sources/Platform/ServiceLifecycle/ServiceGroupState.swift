/// What a group does next: a value that takes events and returns actions.
///
/// Services start one after the other, each when the one before is ready, and stop in reverse, each when the one after
/// has stopped or run out of time.
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
        /// Every service is ready.
        case announceReady
        /// Ask a service to stop.
        case stop(Int)
        /// The service took too long.
        case cancel(Int)
        /// The service takes no notice even of cancellation.
        case abandon(Int)
        /// Replaces the timer before.
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

    /// The first actions.
    mutating func start() -> [Action] {
        startNext()
    }

    mutating func handle(_ event: Event) -> [Action] {
        switch (event, phase) {
        case (.ready(let place), .starting(let current)) where place == current:
            return startNext()
        case (.readyFailed(let place, let error), .starting(let current)) where place == current:
            return fail(error)
        case (.finished(let place, let error), _):
            isFinished[place] = true
            return finished(place, error)
        case (.shutdown, .starting), (.shutdown, .running):
            return stopNext()
        case (.timeIsUp(timer), .starting(let place)):
            return fail(
                ServiceGroupError.startLimitPassed(service: members[place].name, limit: members[place].startLimit))
        case (.timeIsUp(timer), .stopping(let place)):
            let member = members[place]
            failure = failure ?? ServiceGroupError.stopLimitPassed(service: member.name, limit: member.stopLimit)
            phase = .cancelling(place)
            return [.cancel(place), setTimer(cancellationLimit)]
        case (.timeIsUp(timer), .cancelling(let place)):
            isFinished[place] = true
            return [.abandon(place)] + stopNext()
        case (.ready, _), (.readyFailed, _), (.shutdown, _), (.timeIsUp, _):
            // Late: the group has moved on.
            return []
        }
    }

    private mutating func finished(_ place: Int, _ error: (any Error)?) -> [Action] {
        switch phase {
        case .starting, .running:
            if let error { return fail(error) }
            guard members[place].mayFinish else {
                return fail(ServiceGroupError.finishedUnexpectedly(service: members[place].name))
            }
            if case .starting(place) = phase { return startNext() }
            if case .running = phase, isFinished.allSatisfy(\.self) { return stopNext() }
            return []
        case .stopping(let current), .cancelling(let current):
            // Who was asked to stop may well leave by way of cancellation.
            if let error, !(error is CancellationError) { failure = failure ?? error }
            return place == current ? stopNext() : []
        case .ended:
            return []
        }
    }

    private mutating func startNext() -> [Action] {
        guard started < members.count else {
            phase = .running
            // The services may all have finished while they were started.
            return [.announceReady] + (isFinished.allSatisfy(\.self) ? stopNext() : [])
        }
        let place = started
        started += 1
        phase = .starting(place)
        return [.start(place), setTimer(members[place].startLimit)]
    }

    private mutating func fail(_ error: any Error) -> [Action] {
        failure = error
        return stopNext()
    }

    /// Stops the last service that still runs; none left ends the group.
    private mutating func stopNext() -> [Action] {
        guard let place = (0..<started).last(where: { !isFinished[$0] }) else {
            phase = .ended
            return [.end(failure)]
        }
        phase = .stopping(place)
        return [.stop(place), setTimer(members[place].stopLimit)]
    }

    private mutating func setTimer(_ limit: Duration) -> Action {
        timer += 1
        return .setTimer(timer, limit)
    }
}
