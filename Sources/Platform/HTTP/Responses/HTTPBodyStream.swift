import CMicrohttpd
import Glibc
import Synchronization

/// The body of one response that is written in pieces, such as server-sent events, from any thread or task.
///
/// Pieces wait in a bounded buffer until the connection sends them. When the client reads too slowly, `write` returns
/// `full`, and the writer can drop the piece, wait with `send`, or end the response with `abort`. An idle stream keeps
/// no buffer.
package final class HTTPBodyStream: Sendable {
    package enum WriteResult: Sendable {
        /// The piece is in the buffer.
        case accepted
        /// The buffer has no space; nothing of the piece was buffered.
        case full
        /// The stream has ended: by `finish` or `abort`, because the client disconnected, or because the server
        /// stopped.
        case ended
    }

    package enum End: Sendable {
        /// The whole response was passed to the connection.
        case complete
        /// The client disconnected, or the stream was aborted, before the end.
        case broken
    }

    /// The size of libmicrohttpd's buffer for HTTP/1.0 responses and those with a length; others use the connection's memory.
    var blockSize: Int { length == nil ? 256 : 32 << 10 }

    fileprivate struct State {
        var phase = Phase.fresh
        var buffer: [UInt8] = []
        /// The bytes at the start of `buffer` that have been sent.
        var sent = 0
        /// Whether there was a chunk.
        var hasBegun = false
        /// Whether the kernel holds back a segment that is not full.
        var isCorked = false
        var isFinished = false
        var isAborted = false
        /// Writers that wait for buffer space; one for each concurrent `send`.
        var writers: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var nextWriter: UInt64 = 0
    }

    fileprivate enum Phase {
        /// Not attached to a connection yet.
        case fresh
        /// The connection's thread sends, or is about to.
        case running(MicrohttpdConnection)
        /// The connection is suspended until there is something to send. Leaving this phase resumes it, under the lock:
        /// therefore exactly once, and before the connection can be freed.
        case waiting(MicrohttpdConnection)
        /// A reader of this process reads, and waits if it has a continuation.
        case reading(CheckedContinuation<Void, Never>?)
        case ended
    }

    /// With so many bytes in the buffer that will follow, a chunk is not a segment of its own.
    private static let corkedBytes = 16 << 10

    /// The bytes of the whole body, where they are known: the response has a Content-Length.
    let length: Int?
    private let capacity: Int
    private let onEnd: @Sendable (End) -> Void
    fileprivate let state = Mutex(State())

    /// - Parameters:
    ///   - length: of the whole body, where it is known; exactly so many bytes must be written.
    ///   - capacity: how many bytes may wait to be sent. A larger piece is accepted only when the buffer is empty.
    ///   - onEnd: called once when the response has ended or was dropped. Called on a server thread or in the handler's
    ///     task: it must not block.
    package init(length: Int? = nil, capacity: Int = 64 << 10, onEnd: @escaping @Sendable (End) -> Void = { _ in }) {
        precondition(capacity > 0, "the capacity of a stream must be above 0")
        self.length = length
        self.capacity = capacity
        self.onEnd = onEnd
    }

    /// Buffers a piece if there is space for all of it; never waits.
    @discardableResult package func write(_ piece: [UInt8]) -> WriteResult {
        let (result, reader): (WriteResult, CheckedContinuation<Void, Never>?) = state.withLock { state in
            if state.hasEnded { return (.ended, nil) }
            let waiting = state.buffer.count - state.sent
            guard waiting == 0 || waiting + piece.count <= capacity else { return (.full, nil) }
            if state.buffer.isEmpty {
                state.buffer = piece
            } else {
                if state.sent > waiting {
                    state.buffer.removeFirst(state.sent)
                    state.sent = 0
                }
                state.buffer.append(contentsOf: piece)
            }
            return (.accepted, piece.isEmpty ? nil : state.wake())
        }
        reader?.resume()
        return result
    }

    /// Buffers a piece, waiting for space; `false` if the stream has ended or the task was cancelled.
    package func send(_ piece: [UInt8]) async -> Bool {
        while true {
            switch write(piece) {
            case .accepted: return true
            case .ended: return false
            case .full:
                if Task.isCancelled { return false }
                await waitForSpace(piece.count)
            }
        }
    }

    /// Waits until everything that was written is passed to the connection; `false` if the stream has ended before, or the task was
    /// cancelled.
    package func drain() async -> Bool {
        while true {
            let (isEmpty, hasEnded) = state.withLock { ($0.buffer.isEmpty, $0.hasEnded) }
            if hasEnded { return false }
            if isEmpty { return true }
            if Task.isCancelled { return false }
            await waitForSpace(capacity)
        }
    }

    /// Ends the response properly once the buffer is sent.
    package func finish() {
        end { $0.isFinished = true }
    }

    /// Breaks the response off at once and drops the buffer.
    package func abort() {
        end { state in
            state.isAborted = true
            // The connection ends only once its client reads.
            (state.buffer, state.sent) = ([], 0)
        }
    }

    package var hasEnded: Bool {
        state.withLock { $0.hasEnded }
    }

    private func end(_ change: (inout State) -> Void) {
        let (reader, writers) = state.withLock { state in
            change(&state)
            return (state.wake(), state.takeWriters())
        }
        reader?.resume()
        for writer in writers { writer.resume() }
    }

    /// Waits until there may be space, the stream has ended or the task is cancelled.
    private func waitForSpace(_ count: Int) async {
        let number = state.withLock { state in
            state.nextWriter += 1
            return state.nextWriter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    let waiting = state.buffer.count - state.sent
                    if state.hasEnded || Task.isCancelled || waiting == 0 || waiting + count <= capacity { return true }
                    state.writers[number] = continuation
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.writers.removeValue(forKey: number) }?.resume()
        }
    }
}

// MARK: - Called by the connection

extension HTTPBodyStream {
    /// `false` if the stream has been attached before.
    func attach(to connection: MicrohttpdConnection) -> Bool {
        state.withLock { state in
            guard case .fresh = state.phase else { return false }
            state.phase = .running(connection)
            return true
        }
    }

    /// Copies buffered bytes when libmicrohttpd can send; with an empty buffer suspends the connection and returns 0.
    func fill(_ target: UnsafeMutableRawBufferPointer) -> Int {
        var writers: [CheckedContinuation<Void, Never>] = []
        defer { for writer in writers { writer.resume() } }
        return state.withLock { state in
            guard case .running(let connection) = state.phase, !state.isAborted else {
                return CMicrohttpd_end_with_error()
            }
            let waiting = state.buffer.count - state.sent
            guard waiting > 0 else {
                state.cork(connection, false)
                if state.isFinished { return CMicrohttpd_end_of_stream() }
                MHD_suspend_connection(connection.pointer)
                state.phase = .waiting(connection)
                return 0
            }
            let count = min(waiting, target.count)
            // Chunks are as large as what is free of the connection's memory, some kilobytes. A body with a length ends without another call.
            // With the first chunk libmicrohttpd sets its own options.
            if length == nil, state.hasBegun, waiting - count >= Self.corkedBytes { state.cork(connection, true) }
            state.hasBegun = true
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

    /// libmicrohttpd has freed the response.
    func detach() {
        let (writers, end, wasAttached) = state.withLock { state in
            let isComplete = state.isFinished && !state.isAborted && state.buffer.isEmpty
            let wasAttached = if case .ended = state.phase { false } else { true }
            state.phase = .ended
            state.buffer = []
            state.sent = 0
            return (state.takeWriters(), isComplete ? End.complete : .broken, wasAttached)
        }
        for writer in writers { writer.resume() }
        if wasAttached { onEnd(end) }
    }
}

// MARK: - Called by a reader of this process

extension HTTPBodyStream {
    /// What a reader gets that has no connection.
    package enum Piece: Sendable, Equatable {
        case bytes([UInt8])
        case end(End)
    }

    /// Waits for the next bytes, and takes them; for one reader, in place of a connection.
    ///
    /// A cancelled task gets `broken`. The reader calls ``close()`` afterwards, however the stream has ended.
    package func read() async -> Piece {
        while true {
            if let piece = takePiece() { return piece }
            if Task.isCancelled { return .end(.broken) }
            await withTaskCancellationHandler {
                await withCheckedContinuation { reader in
                    let isDone = state.withLock { state in
                        if !state.buffer.isEmpty || state.hasEnded || Task.isCancelled { return true }
                        state.phase = .reading(reader)
                        return false
                    }
                    if isDone { reader.resume() }
                }
            } onCancel: {
                state.withLock { $0.wake() }?.resume()
            }
        }
    }

    private func takePiece() -> Piece? {
        let (piece, writers) = state.withLock { state -> (Piece?, [CheckedContinuation<Void, Never>]) in
            if !state.buffer.isEmpty {
                defer { (state.buffer, state.sent) = ([], 0) }
                return (.bytes(state.buffer), state.takeWriters())
            }
            guard state.hasEnded else { return (nil, []) }
            return (.end(state.isFinished && !state.isAborted ? .complete : .broken), [])
        }
        for writer in writers { writer.resume() }
        return piece
    }

    /// Ends the stream for its writers, as a client that disconnects.
    package func close() { detach() }
}

extension HTTPBodyStream.State {
    fileprivate var hasEnded: Bool {
        if isFinished || isAborted { return true }
        if case .ended = phase { return true }
        return false
    }

    /// - Returns: a reader to be resumed without the lock: one that is being cancelled waits for it.
    fileprivate mutating func wake() -> CheckedContinuation<Void, Never>? {
        switch phase {
        case .waiting(let connection):
            phase = .running(connection)
            MHD_resume_connection(connection.pointer)
            return nil
        case .reading(let reader?):
            phase = .reading(nil)
            return reader
        default: return nil
        }
    }

    /// Lets the kernel wait for full segments, or send what it has.
    ///
    /// Where it refuses, each chunk is sent by itself.
    fileprivate mutating func cork(_ connection: MicrohttpdConnection, _ isCorked: Bool) {
        guard isCorked != self.isCorked else { return }
        var value: CInt = isCorked ? 1 : 0
        let size = socklen_t(MemoryLayout<CInt>.size)
        let socket = CMicrohttpd_socket(connection.pointer)
        if setsockopt(socket, CInt(IPPROTO_TCP), TCP_CORK, &value, size) == 0 { self.isCorked = isCorked }
    }

    fileprivate mutating func takeWriters() -> [CheckedContinuation<Void, Never>] {
        guard !writers.isEmpty else { return [] }
        defer { writers = [:] }
        return Array(writers.values)
    }
}
