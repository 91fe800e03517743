import CMicrohttpd
import Synchronization

/// The body of a response that comes in pieces, such as server-sent events, from any thread or task.
///
/// Give it to one response. What is written waits in a bounded buffer until the client's connection takes it; a client
/// that reads too slowly makes `write` say `full`, and the writer decides: leave the piece out, wait with `send`, or let
/// the client go with `abort`. An idle stream costs little memory and nothing else.
package final class HTTPBodyStream: Sendable {
    /// What became of a piece.
    package enum WriteResult: Sendable {
        /// It stands in the buffer and will be sent.
        case accepted
        /// The buffer has no room; nothing of the piece was taken.
        case full
        /// The stream has ended: by `finish` or `abort`, because the client went away or the server stopped.
        case ended
    }

    /// How a stream ended.
    package enum End: Sendable {
        /// All was handed to the connection and the response was ended properly.
        case complete
        /// The client went away, or was let go, before the end.
        case broken
    }

    /// The piece sizes of HTTP/1.0 answers, which the library keeps a buffer for; those of HTTP/1.1 go through the
    /// connection's own memory.
    static let blockSize = 256

    fileprivate struct State {
        var phase = Phase.fresh
        /// What has been written and not been sent.
        var buffer: [UInt8] = []
        /// How much of the front of `buffer` has been sent.
        var sent = 0
        var isFinished = false
        var isAborted = false
        /// Writers that wait for room; as many as tasks call `send` at a time.
        var writers: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var nextWriter: UInt64 = 0
    }

    fileprivate enum Phase {
        /// Not given to a connection yet.
        case fresh
        /// The connection's own thread works on it or will.
        case running(LibraryConnection)
        /// The connection is suspended until there is something to send. Whoever leaves this phase resumes it, under the
        /// lock: so once, and before the connection can be gone.
        case waiting(LibraryConnection)
        case ended
    }

    private let capacity: Int
    private let onEnd: @Sendable (End) -> Void
    fileprivate let state = Mutex(State())

    /// Makes a stream.
    ///
    /// - Parameters:
    ///   - capacity: how many bytes may wait to be sent. A piece larger than that is taken only when nothing waits.
    ///   - onEnd: called once when the response is over, or was dropped because nobody wanted it any more. One of the
    ///     server's threads or the handler's task calls it: it must not wait.
    package init(capacity: Int = 64 << 10, onEnd: @escaping @Sendable (End) -> Void = { _ in }) {
        precondition(capacity > 0, "a stream needs room for something")
        self.capacity = capacity
        self.onEnd = onEnd
    }

    /// Takes a piece to send if there is room for all of it; never waits.
    @discardableResult package func write(_ piece: [UInt8]) -> WriteResult {
        state.withLock { state in
            if state.hasEnded { return .ended }
            let waiting = state.buffer.count - state.sent
            guard waiting == 0 || waiting + piece.count <= capacity else { return .full }
            if state.buffer.isEmpty {
                state.buffer = piece
            } else {
                if state.sent > waiting {
                    state.buffer.removeFirst(state.sent)
                    state.sent = 0
                }
                state.buffer.append(contentsOf: piece)
            }
            if !piece.isEmpty { state.wake() }
            return .accepted
        }
    }

    /// Takes a piece to send and waits for room; `false` when the stream has ended or the task was cancelled.
    package func send(_ piece: [UInt8]) async -> Bool {
        while true {
            switch write(piece) {
            case .accepted: return true
            case .ended: return false
            case .full:
                if Task.isCancelled { return false }
                await room(for: piece.count)
            }
        }
    }

    /// Ends the response properly once all that was written is sent.
    package func finish() {
        end { $0.isFinished = true }
    }

    /// Ends the response at once, so that the client sees a broken one; what waits is dropped.
    package func abort() {
        end { $0.isAborted = true }
    }

    /// Whether writing makes no sense any more.
    package var hasEnded: Bool {
        state.withLock { $0.hasEnded }
    }

    private func end(_ change: (inout State) -> Void) {
        let writers = state.withLock { state in
            change(&state)
            state.wake()
            return state.takeWriters()
        }
        for writer in writers { writer.resume() }
    }

    /// Waits until there may be room, the stream has ended or the task is cancelled.
    private func room(for count: Int) async {
        let number = state.withLock { state in
            state.nextWriter += 1
            return state.nextWriter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    let waiting = state.buffer.count - state.sent
                    if state.hasEnded || Task.isCancelled || waiting == 0 || waiting + count <= capacity { return true }
                    state.writers[number] = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.writers.removeValue(forKey: number) }?.resume()
        }
    }
}

// MARK: - The connection's side

extension HTTPBodyStream {
    /// Binds the stream to the connection that sends it; `false` when it has been bound before.
    func attach(to connection: LibraryConnection) -> Bool {
        state.withLock { state in
            guard case .fresh = state.phase else { return false }
            state.phase = .running(connection)
            return true
        }
    }

    /// What the library asks for when it can send: as much as is there.
    ///
    /// With nothing there it suspends the connection and returns 0.
    func fill(_ target: UnsafeMutableRawBufferPointer) -> Int {
        var writers: [CheckedContinuation<Void, Never>] = []
        defer { for writer in writers { writer.resume() } }
        return state.withLock { state in
            guard case .running(let connection) = state.phase, !state.isAborted else {
                return CMicrohttpd_end_with_error()
            }
            let waiting = state.buffer.count - state.sent
            guard waiting > 0 else {
                if state.isFinished { return CMicrohttpd_end_of_stream() }
                MHD_suspend_connection(connection.pointer)
                state.phase = .waiting(connection)
                return 0
            }
            let count = min(waiting, target.count)
            let end = state.sent + count
            state.buffer[state.sent..<end].withUnsafeBytes { target.copyMemory(from: $0) }
            state.sent = end
            if state.sent == state.buffer.count {
                // An idle stream keeps no buffer.
                state.buffer = []
                state.sent = 0
                writers = state.takeWriters()
            }
            return count
        }
    }

    /// The library has let go of the response.
    func detach() {
        let (writers, end, wasBound) = state.withLock { state in
            let isComplete = state.isFinished && !state.isAborted && state.buffer.isEmpty
            let wasBound = if case .ended = state.phase { false } else { true }
            state.phase = .ended
            state.buffer = []
            state.sent = 0
            return (state.takeWriters(), isComplete ? End.complete : .broken, wasBound)
        }
        for writer in writers { writer.resume() }
        if wasBound { onEnd(end) }
    }
}

extension HTTPBodyStream.State {
    fileprivate var hasEnded: Bool {
        if isFinished || isAborted { return true }
        if case .ended = phase { return true }
        return false
    }

    /// Resumes the connection if it waits.
    fileprivate mutating func wake() {
        guard case .waiting(let connection) = phase else { return }
        phase = .running(connection)
        MHD_resume_connection(connection.pointer)
    }

    fileprivate mutating func takeWriters() -> [CheckedContinuation<Void, Never>] {
        guard !writers.isEmpty else { return [] }
        defer { writers = [:] }
        return Array(writers.values)
    }
}
