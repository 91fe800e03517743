/// When the next session is due, by what has happened so far: a value, so that every order of events can be tested.
///
/// Whenever changes are pending, a session is due or under way. Times are durations since any fixed moment.
package struct AttemptSchedule: Sendable {
    /// What a schedule follows.
    package struct Settings: Sendable {
        /// How long after a write of the app a session begins, so that several writes are sent together.
        package var debounce: Duration = .milliseconds(100)
        /// Between sessions without another reason, while the event stream is down or something could not be sent.
        package var interval: Duration = .seconds(300)
        /// How often is looked whether another process still syncs the file.
        package var leaseCheck: Duration = .seconds(5)

        package init() {}
    }

    /// What happens.
    package enum Event: Sendable {
        /// The app has written something that is not sent yet.
        case localWrite
        /// The server has rows that the device lacks.
        case serverMoved
        /// The app asks for a session.
        case nudged
        /// The event stream is open, or not any more.
        case watching(Bool)
        /// A session has begun.
        case began
        /// The session under way has stored rows of the server, or has had the outcome of a batch.
        case progressed
        /// A session has ended; `isPending`: something that could not be sent is left.
        case succeeded(isPending: Bool)
        /// A session has failed.
        case failed(SyncError)
        /// Another process syncs the file.
        case leased
    }

    private let settings: Settings
    private var backoff: Backoff
    /// When a session is due by events; the first one is due at once.
    private var due: Duration? = .zero
    /// Failures move sessions to this time, and a nudge brings it forward to the one that the server asks for.
    private var notBefore: Duration = .zero
    private var retryAfter: Duration = .zero
    private var lastEnd: Duration = .zero
    private var isWatching = false
    private var isAttempting = false
    /// Whether the session under way has stored something.
    private var hasProgressed = false
    /// Whether something is pending, as far as is known.
    package private(set) var isPending = false

    package init(_ settings: Settings, random: any RandomNumberGenerator & Sendable) {
        self.settings = settings
        backoff = Backoff(random: random)
    }

    /// When the next session begins; `nil` while one is under way, and while nothing is to be done.
    package var next: Duration? {
        if isAttempting { return nil }
        var next = due
        // The event stream says when the server has something; what could not be sent may be later.
        if !isWatching || isPending { next = min(next ?? lastEnd + settings.interval, lastEnd + settings.interval) }
        return next.map { max($0, notBefore) }
    }

    package mutating func record(_ event: Event, at now: Duration) {
        switch event {
        case .localWrite:
            isPending = true
            makeDue(now + settings.debounce)
        case .serverMoved: makeDue(now)
        case .nudged:
            notBefore = retryAfter
            makeDue(now)
        case .watching(let isWatching):
            // The server may be another version, which can store what the one before could not.
            if isWatching, !self.isWatching, isPending { makeDue(now) }
            self.isWatching = isWatching
        case .began: (isAttempting, due, hasProgressed) = (true, nil, false)
        case .progressed: hasProgressed = true
        case .succeeded(let isPending):
            end(now)
            // What was written meanwhile is noticed by itself, if the session has not sent it already.
            self.isPending = isPending || due != nil
            (notBefore, retryAfter) = (now, now)
            backoff.reset()
        case .failed(let error):
            end(now)
            // Lost connections are not in a row then: a first sync over a bad network takes many sessions. A server that refuses or is
            // overloaded is asked ever more seldom all the same.
            if hasProgressed, error.kind == .unreachable { backoff.reset() }
            notBefore = now + backoff.pause(after: error)
            retryAfter = now + .seconds(error.retryAfter ?? 0)
            makeDue(notBefore)
        case .leased:
            end(now)
            makeDue(now + settings.leaseCheck)
        }
    }

    private mutating func end(_ now: Duration) { (isAttempting, lastEnd) = (false, now) }

    private mutating func makeDue(_ time: Duration) { due = min(due ?? time, time) }
}
