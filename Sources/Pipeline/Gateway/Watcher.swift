import HTTP
import JSONText
import SyncModel
import Synchronization

/// One event stream of heads.
///
/// At most one head of each owner waits for a reader that is slow, the newest. No task belongs to a watcher but while
/// something waits.
final class Watcher: Sendable {
    private struct State {
        // Weak: the connection holds the stream for as long as it sends it. One that never reached a connection, because
        // its client left before, ends with the answer.
        weak var stream: HTTPBodyStream?
        /// Whether the first heads were written; before, moves wait for them.
        var hasBegun = false
        var waiting: [SyncID: TimeStamp] = [:]
        /// Whether a task sends what waits.
        var isSending = false
        /// Whether that task was at the same piece at the last tick already.
        var isStuck = false
    }

    /// What the keep-alive tick found.
    enum Tick: Equatable {
        /// The stream goes on.
        case alive
        /// It has ended, or its reader did not keep up and was let go.
        case over
    }

    /// When the caller may watch no longer; `nil` for ever.
    private let deadline: Duration?
    private let state: Mutex<State>

    init(_ stream: HTTPBodyStream, until deadline: Duration?) {
        self.deadline = deadline
        state = Mutex(State(stream: stream))
    }

    /// Writes the first heads, in the owners' order; moves that came meanwhile count.
    func begin(_ heads: [(owner: SyncID, head: TimeStamp)]) {
        state.withLock { state in
            var events: [UInt8] = []
            for (owner, head) in heads {
                Self.append(owner, max(head, state.waiting[owner] ?? .zero), to: &events)
            }
            state.waiting = [:]
            state.hasBegun = true
            // Taken whatever its size, since nothing waits; where the client has gone already, nobody reads it.
            state.stream?.write(events)
        }
    }

    /// Tells of a move, or keeps it until there is room; called by the fan-out's thread.
    func move(_ owner: SyncID, to head: TimeStamp) {
        let mustSend = state.withLock { state in
            if state.hasBegun, !state.isSending {
                var event: [UInt8] = []
                Self.append(owner, head, to: &event)
                switch state.stream?.write(event) {
                case .full: state.isSending = true
                case .accepted, .ended, nil: return false
                }
                state.waiting[owner] = head
                return true
            }
            state.waiting[owner] = max(head, state.waiting[owner] ?? .zero)
            return false
        }
        if mustSend { Task { await send() } }
    }

    /// Sends what waits until nothing does.
    private func send() async {
        while let (stream, events) = take() {
            guard await stream.send(events) else { return }
        }
    }

    private func take() -> (HTTPBodyStream, [UInt8])? {
        state.withLock { state in
            state.isStuck = false
            guard let stream = state.stream, !state.waiting.isEmpty else {
                state.isSending = false
                return nil
            }
            var events: [UInt8] = []
            for (owner, head) in state.waiting.sorted(by: { $0.key < $1.key }) { Self.append(owner, head, to: &events) }
            state.waiting = [:]
            return (stream, events)
        }
    }

    /// Sends a comment, so that nothing between takes the connection for dead.
    ///
    /// A reader that has taken nothing since the last tick is let go (I10), and one whose time is over.
    func tick(at now: Duration) -> Tick {
        let stream = state.withLock { $0.stream }
        guard let stream else { return .over }
        if let deadline, now >= deadline {
            stream.finish()
            return .over
        }
        let isStuck = state.withLock { state in
            defer { state.isStuck = state.isSending }
            return state.isStuck && state.isSending
        }
        if !isStuck {
            switch stream.write(Array(":\n\n".utf8)) {
            case .accepted: return .alive
            case .ended: return .over
            // The buffer is full: whether its reader stands still shows at the next tick.
            case .full where state.withLock({ $0.isSending }): return .alive
            case .full: break
            }
        }
        stream.abort()
        return .over
    }

    /// Whether a head waits that no task has taken to send it.
    var hasUnsentHeads: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Ends the stream properly.
    func finish() { state.withLock { $0.stream }?.finish() }

    private static func append(_ owner: SyncID, _ head: TimeStamp, to events: inout [UInt8]) {
        events += "event: head\ndata: ".utf8
        var writer = JSONWriter(capacity: 64)
        writer.object { writer in
            writer.name("syncId")
            writer.value(owner.text)
            writer.name("head")
            writer.value(head.rawValue)
        }
        events += writer.take()
        events += "\n\n".utf8
    }
}
