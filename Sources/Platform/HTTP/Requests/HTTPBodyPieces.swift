import Synchronization

/// The body of one request in pieces, in order, as it arrives.
///
/// The connection reads no further while the buffer is full, so that a body takes the same memory whatever its size. One task reads it.
package final class HTTPBodyPieces: Sendable {
    /// Why a body does not arrive completely.
    package enum Failure: Error, Sendable, Hashable {
        /// The client disconnected or was too slow, its body broke a rule of the server, or the server stopped: it gets no response of the
        /// handler.
        case brokenOff
        /// The task that reads was cancelled.
        case cancelled
    }

    enum Append {
        case accepted
        /// Nothing of the piece was taken: the reader calls `onSpace` once there is space.
        case full
        case tooLarge
    }

    private enum End {
        case complete
        case failed
    }

    private struct State {
        var buffer: [UInt8] = []
        /// All bytes until now.
        var received = 0
        var end: End?
        /// Whether the connection waits for space.
        var isPaused = false
        var reader: CheckedContinuation<Void, Never>?
    }

    /// The most bytes of a piece.
    package static var capacity: Int { 256 << 10 }

    /// The Content-Length; `nil` for a chunked body.
    package let declaredCount: Int?
    private let limit: Int
    private let reservation: BodyReservation?
    private let onSpace = Mutex<(@Sendable () -> Void)?>(nil)
    private let state = Mutex(State())

    /// The memory of a body: one piece that arrives, one that the reader has, and what it makes of it.
    static func memory(declared: Int?) -> Int { 3 * bufferSize(declared) }

    private static func bufferSize(_ declared: Int?) -> Int { min(capacity, declared ?? capacity) }

    init(limit: Int, declared: Int?, reservation: BodyReservation?) {
        self.limit = limit
        declaredCount = declared
        self.reservation = reservation
    }

    /// The next bytes, at most ``capacity``; `nil` at the end of a complete body.
    package func next() async throws(Failure) -> [UInt8]? {
        while true {
            let (piece, isOver, wasPaused): ([UInt8], Bool, Bool) = try state.withLock { state throws(Failure) in
                if case .failed = state.end { throw .brokenOff }
                if Task.isCancelled { throw .cancelled }
                defer {
                    state.buffer = []
                    state.isPaused = false
                }
                return (state.buffer, state.end != nil, state.isPaused)
            }
            if wasPaused { onSpace.withLock { $0 }?() }
            if !piece.isEmpty { return piece }
            if isOver { return nil }
            await wait()
        }
    }

    /// Waits until there are bytes, the body has ended or the task is cancelled.
    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    precondition(state.reader == nil, "one task reads a body")
                    if !state.buffer.isEmpty || state.end != nil || Task.isCancelled { return true }
                    state.reader = continuation
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            takeReader()?.resume()
        }
    }

    private func takeReader() -> CheckedContinuation<Void, Never>? {
        state.withLock { state in
            defer { state.reader = nil }
            return state.reader
        }
    }
}

// MARK: - Called by the connection

extension HTTPBodyPieces {
    /// - Parameter resume: called without a lock, once for each ``Append/full``, unless the body ends before.
    func onSpace(_ resume: @escaping @Sendable () -> Void) { onSpace.withLock { $0 = resume } }

    /// All bytes that have been accepted.
    var received: Int { state.withLock(\.received) }

    func append(_ bytes: UnsafeRawBufferPointer) -> Append {
        let (result, reader): (Append, CheckedContinuation<Void, Never>?) = state.withLock { state in
            // Of a body that has failed, nobody reads the rest.
            if state.end != nil { return (.accepted, nil) }
            if bytes.count > limit - state.received { return (.tooLarge, nil) }
            if !state.buffer.isEmpty, state.buffer.count + bytes.count > Self.capacity {
                state.isPaused = true
                return (.full, nil)
            }
            if state.buffer.isEmpty { state.buffer.reserveCapacity(Self.bufferSize(declaredCount)) }
            state.buffer.append(contentsOf: bytes)
            state.received += bytes.count
            defer { state.reader = nil }
            return (.accepted, state.reader)
        }
        reader?.resume()
        return result
    }

    /// The body is complete.
    func finish() { end(.complete) }

    /// No more of the body arrives.
    func fail() { end(.failed) }

    private func end(_ end: End) {
        let reader = state.withLock { state in
            if state.end == nil { state.end = end }
            if case .failed = state.end { state.buffer = [] }
            state.isPaused = false
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
        onSpace.withLock { $0 = nil }
    }
}
