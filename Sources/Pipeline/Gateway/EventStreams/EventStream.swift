import HTTP
import JSONText
import SyncModel
import Synchronization

/// One server-sent event stream of heads.
///
/// For a slow reader it keeps at most one head of each owner, the newest. It has a task only while heads wait for
/// buffer space.
final class EventStream: Sendable {
    private struct State {
        // Weak: the connection owns the stream while it sends it. A stream whose client disconnected before the
        // response reached the connection ends with the response.
        weak var stream: HTTPBodyStream?
        /// Whether the initial heads were written; until then, moves wait for them.
        var hasBegun = false
        var waiting: [SyncID: TimeStamp] = [:]
        /// Whether a task sends the waiting heads.
        var isSending = false
        /// Whether that task was blocked at the same piece at the last keep-alive.
        var isStuck = false
    }

    /// The state after a keep-alive.
    enum Status: Equatable {
        case alive
        /// It has ended, or was aborted because its reader is too slow.
        case ended
    }

    /// When the caller's credentials expire; `nil`: never.
    private let deadline: Duration?
    private let state: Mutex<State>

    init(_ stream: HTTPBodyStream, until deadline: Duration?) {
        self.deadline = deadline
        state = Mutex(State(stream: stream))
    }

    /// Writes the initial heads, in the order of the owners, including moves that happened since they were read.
    func begin(_ heads: [(owner: SyncID, head: TimeStamp)]) {
        state.withLock { state in
            var events: [UInt8] = []
            for (owner, head) in heads {
                Self.append(owner, max(head, state.waiting[owner] ?? .zero), to: &events)
            }
            state.waiting = [:]
            state.hasBegun = true
            // The first piece is accepted whatever its size; if the client has disconnected, it is dropped.
            state.stream?.write(events)
        }
    }

    /// Writes the owner's new head, or keeps it until there is buffer space; called on the fan-out's thread.
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

    /// Sends the waiting heads until there are none.
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

    /// Sends a comment, so that no proxy closes the connection as idle.
    ///
    /// Aborts a stream whose reader has read nothing since the last keep-alive (I10), and ends one whose credentials
    /// have expired.
    func keepAlive(at now: Duration) -> Status {
        let stream = state.withLock { $0.stream }
        guard let stream else { return .ended }
        if let deadline, now >= deadline {
            stream.finish()
            return .ended
        }
        let isStuck = state.withLock { state in
            defer { state.isStuck = state.isSending }
            return state.isStuck && state.isSending
        }
        if !isStuck {
            switch stream.write(Array(":\n\n".utf8)) {
            case .accepted: return .alive
            case .ended: return .ended
            // The buffer is full: the next keep-alive shows whether the reader makes progress.
            case .full where state.withLock({ $0.isSending }): return .alive
            case .full: break
            }
        }
        stream.abort()
        return .ended
    }

    /// Whether a head waits that no task is sending yet.
    var hasUnsentHeads: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Ends the stream properly.
    func finish() { state.withLock { $0.stream }?.finish() }

    private static func append(_ owner: SyncID, _ head: TimeStamp, to events: inout [UInt8]) {
        events += "event: head\ndata: ".utf8
        var writer = JSONWriter(capacity: 64)
        writer.object { writer in
            writer.member("syncId", owner.text)
            writer.member("head", head.rawValue)
        }
        events += writer.take()
        events += "\n\n".utf8
    }
}
