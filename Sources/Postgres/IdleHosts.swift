import Synchronization

/// The connections of a pool that nobody uses, or else the callers that wait for one, in the order they came; and who
/// may still come.
final class IdleHosts: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<ConnectionHost, any Error>
    }

    private struct State {
        /// The one used last on top: the others' sessions may rest.
        var idle: [ConnectionHost]
        var waiting: [Waiter] = []
        var nextID: UInt64 = 0
        var inUse = 0
        var isClosed = false
        var drained: [CheckedContinuation<Void, Never>] = []
    }

    /// How many callers may wait: each is a suspended task, and one that finds more before it is better told at once.
    private let waitingLimit: Int
    private let state: Mutex<State>

    init(_ hosts: [ConnectionHost], waitingLimit: Int) {
        self.waitingLimit = waitingLimit
        state = Mutex(State(idle: hosts))
    }

    /// Takes a connection out, waiting for one if need be; it must be given back.
    ///
    /// - Throws: ``PoolUnavailable``; `CancellationError` when the caller is cancelled while it waits.
    func take() async throws -> ConnectionHost {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<ConnectionHost, any Error>? = state.withLock { state in
                    if state.isClosed { return .failure(PoolUnavailable.closed) }
                    // Asked under the lock: a cancellation that comes later finds the waiter in the line.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if let host = state.idle.popLast() {
                        state.inUse += 1
                        return .success(host)
                    }
                    if state.waiting.count >= waitingLimit {
                        return .failure(PoolUnavailable.overloaded(limit: waitingLimit))
                    }
                    state.waiting.append(Waiter(id: id, continuation: continuation))
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0) }
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Gives a connection back, or on to the caller that has waited longest.
    func giveBack(_ host: ConnectionHost) {
        let (waiter, drained) = state.withLock { state -> (Waiter?, [CheckedContinuation<Void, Never>]) in
            if !state.waiting.isEmpty { return (state.waiting.removeFirst(), []) }
            state.idle.append(host)
            state.inUse -= 1
            guard state.inUse == 0 else { return (nil, []) }
            defer { state.drained = [] }
            return (nil, state.drained)
        }
        waiter?.continuation.resume(returning: host)
        for continuation in drained { continuation.resume() }
    }

    /// Lets nobody in any more and returns when all who were in, waiting ones too, have left.
    ///
    /// - Returns: the connections, the first time only.
    func close() async -> [ConnectionHost] {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                state.isClosed = true
                if state.inUse > 0 { state.drained.append(continuation) }
                return state.inUse == 0
            }
            if isIdle { continuation.resume() }
        }
        return state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
    }
}

/// A pool took no more work; nothing was begun.
public enum PoolUnavailable: Error, Sendable, Hashable, CustomStringConvertible {
    /// So many callers wait already; try again later.
    case overloaded(limit: Int)
    /// It is closing or closed.
    case closed

    /// The reason in words.
    public var description: String {
        switch self {
        case .overloaded(let limit): "\(limit) calls wait for a connection already"
        case .closed: "the pool is closed"
        }
    }
}
