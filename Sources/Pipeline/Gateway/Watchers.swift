import FanOutLink
import HTTP
import SyncModel
import Synchronization

/// The event streams of `/v1/watch`.
///
/// Moves are written from the fan-out's thread into a stream's bounded buffer, and one timer keeps all of them alive.
final class Watchers: Sendable {
    private struct State {
        var isStopping = false
        var watchers: [Int: Entry] = [:]
        var next = 0
    }

    private struct Entry {
        let watcher: Watcher
        var subscription: (any FanOutSubscription)?
    }

    /// Some events of about 60 bytes; what comes beyond waits as one head for each owner.
    private static let bufferBytes = 4 << 10

    private let maximum: Int
    private let time: GatewayDeadline
    private let state = Mutex(State())

    init(maximum: Int, time: GatewayDeadline) {
        self.maximum = maximum
        self.time = time
    }

    /// Begins a stream with the owners' heads and keeps it up to date.
    func watch(_ caller: Caller, over link: some FanOutLink) async throws -> HTTPBodyStream {
        let owners = caller.grants.map(\.owner)
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        let stream = HTTPBodyStream(capacity: Self.bufferBytes) { [weak self] _ in self?.remove(number) }
        let watcher = Watcher(stream, until: caller.validFor.map { time.now() + $0 })
        try add(watcher, number)
        // Subscribed before the heads are read, so that no move is missed.
        keep(link.subscribe(to: owners) { owner, head in watcher.move(owner, to: head) }, number)
        do {
            let heads = try await link.heads(of: owners)
            try Task.checkCancellation()
            guard isWatching(number) else { throw Problem(.notReady, "the server stops") }
            watcher.begin(zip(owners, heads).map { ($0, $1) })
        } catch {
            // A stream that never reaches a connection is not told of its end.
            remove(number)
            throw error
        }
        return stream
    }

    /// Sends a comment to every watcher, and lets those go that have ended or did not keep up.
    func keepAlive() {
        let now = time.now()
        for (number, entry) in state.withLock({ $0.watchers }) {
            if case .over = entry.watcher.tick(at: now) { remove(number) }
        }
    }

    /// How many watch.
    var count: Int { state.withLock { $0.watchers.count } }

    /// Ends every stream, and takes no more.
    func stop() {
        let watchers = state.withLock { state in
            state.isStopping = true
            defer { state.watchers = [:] }
            return state.watchers
        }
        for entry in watchers.values {
            entry.subscription?.cancel()
            entry.watcher.finish()
        }
    }

    private func add(_ watcher: Watcher, _ number: Int) throws(Problem) {
        let problem: Problem? = state.withLock { state in
            if state.isStopping { return Problem(.notReady, "the server stops") }
            if state.watchers.count >= maximum { return Problem(.overloaded, "\(maximum) callers watch already") }
            state.watchers[number] = Entry(watcher: watcher)
            return nil
        }
        if let problem { throw problem }
    }

    /// Keeps a subscription for as long as its watcher is there.
    private func keep(_ subscription: any FanOutSubscription, _ number: Int) {
        let isKept = state.withLock { state in
            state.watchers[number]?.subscription = subscription
            return state.watchers[number] != nil
        }
        if !isKept { subscription.cancel() }
    }

    private func isWatching(_ number: Int) -> Bool { state.withLock { $0.watchers[number] != nil } }

    private func remove(_ number: Int) {
        state.withLock { $0.watchers.removeValue(forKey: number) }?.subscription?.cancel()
    }
}
