import FanOut
import FanOutLink
import Synchronization

/// Keeps a fan-out's events and lets a test wait for them.
final class EventLog: FanOutObserver {
    fileprivate typealias Watcher = (isMet: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)

    fileprivate struct State {
        var events: [FanOutEvent] = []
        var nextOffsets: [Int: Int64] = [:]
        var reports: [StreamReport] = []
        var watchers: [Watcher] = []
    }

    private let state = Mutex(State())

    func record(_ event: FanOutEvent, partition: Int) {
        let ready = state.withLock { state in
            state.events.append(event)
            if let offset = event.nextOffset { state.nextOffsets[partition] = offset }
            return state.takeReady()
        }
        for watcher in ready { watcher.continuation.resume() }
    }

    func passed(_ report: StreamReport) {
        let ready = state.withLock { state in
            state.reports.append(report)
            return state.takeReady()
        }
        for watcher in ready { watcher.continuation.resume() }
    }

    /// What streams have applied, report by report.
    var reports: [StreamReport] { state.withLock { $0.reports } }

    /// Waits until the reports meet a condition.
    func reported(_ isMet: @escaping @Sendable ([StreamReport]) -> Bool) async {
        await waitForState { isMet($0.reports) }
    }

    var events: [FanOutEvent] { state.withLock { $0.events } }

    /// Whether a file was rebuilt.
    var hasDamage: Bool { events.contains(where: \.isDamaged) }
    /// Whether an existing file was rebuilt.
    var hasDamageOfAFile: Bool { events.contains(where: \.isDamageOfAFile) }
    var hasRetry: Bool { events.contains(where: \.isRetry) }

    /// Waits until the events meet a condition.
    func wait(until isMet: @escaping @Sendable ([FanOutEvent]) -> Bool) async {
        await waitForState { isMet($0.events) }
    }

    private func waitForState(_ isMet: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state in
                state.watchers.append((isMet, continuation))
                return state.takeReady()
            }
            for watcher in ready { watcher.continuation.resume() }
        }
    }

    /// Waits until the only partition serves again, if it has reported damage.
    func servesAgain() async {
        await wait { $0.last { $0.isReady || $0.isDamaged }?.isReady == true }
    }

    /// Waits until a partition was ready so many times.
    func ready(_ count: Int = 1) async { await wait { $0.count(where: \.isReady) >= count } }

    /// Waits until records of a partition up to an offset were applied.
    ///
    /// - Throws: when the fan-out has retried too often.
    func applied(upTo offset: Int64, of partition: Int = 0) async throws {
        await waitForState { state in
            state.nextOffsets[partition] ?? -1 >= offset || state.events.count(where: \.isRetry) > Self.patience
        }
        if let stuck = events.filter(\.isRetry).dropFirst(Self.patience).first { throw Stuck(event: stuck) }
    }

    private static let patience = 100

    /// What a fan-out retries.
    struct Stuck: Error {
        let event: FanOutEvent
    }
}

extension EventLog.State {
    /// Removes and returns those whose conditions are met.
    fileprivate mutating func takeReady() -> [EventLog.Watcher] {
        let ready = watchers.filter { $0.isMet(self) }
        watchers = watchers.filter { !$0.isMet(self) }
        return ready
    }
}

extension FanOutEvent {
    var isReady: Bool { if case .ready = self { true } else { false } }
    var isDamaged: Bool { if case .damaged = self { true } else { false } }
    /// Only damage of an existing file counts: a new fan-out reports a missing file first.
    var isDamageOfAFile: Bool {
        if case .damaged(let reason) = self { !reason.contains("there is no file") } else { false }
    }
    var isPaused: Bool { if case .paused = self { true } else { false } }
    /// Whether something failed and is tried again.
    var isRetry: Bool { if case .retrying = self { true } else { isPaused } }

    /// The offset that the event reports, if any.
    fileprivate var nextOffset: Int64? {
        switch self {
        case .applied(_, _, let next, _), .ready(_, let next): next
        default: nil
        }
    }
}
