import Synchronization

/// Things that one caller uses at a time, such as connections: those that nobody uses, or else the callers that wait for one,
/// in the order they came; and who may still come.
package final class ResourcePool<Thing: Sendable>: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Thing, any Error>
    }

    private struct State {
        /// The one used last on top: its cache is the warmest, and the others' sessions may rest.
        var idle: [Thing]
        var waiting: [Waiter] = []
        var nextID: UInt64 = 0
        var inUse = 0
        var isClosed = false
        var drained: [CheckedContinuation<Void, Never>] = []
    }

    /// How many callers may wait: each is a suspended task, and one that finds more before it is better told at once.
    private let waitingLimit: Int
    private let state: Mutex<State>

    /// Has some things to lend, of which the last is lent first.
    ///
    /// - Parameter waitingLimit: how many callers may wait, 0 or more; the next is refused as overloaded.
    package init(_ things: [Thing], waitingLimit: Int) {
        precondition(!things.isEmpty && waitingLimit >= 0, "a pool has at least one thing and a line of 0 or more")
        self.waitingLimit = waitingLimit
        state = Mutex(State(idle: things))
    }

    /// Lends a thing for as long as a closure runs, waiting for one if need be.
    ///
    /// - Throws: what the closure throws; ``PoolUnavailable``; `CancellationError` when the caller is cancelled while it waits.
    package func lend<Value: Sendable>(_ body: (Thing) async throws -> Value) async throws -> Value {
        let thing = try await take()
        defer { giveBack(thing) }
        return try await body(thing)
    }

    private func take() async throws -> Thing {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Thing, any Error>? = state.withLock { state in
                    if state.isClosed { return .failure(PoolUnavailable.closed) }
                    // Asked under the lock: a cancellation that comes later finds the waiter in the line.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if let thing = state.idle.popLast() {
                        state.inUse += 1
                        return .success(thing)
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

    /// Takes a thing back, or gives it on to the caller that has waited longest.
    private func giveBack(_ thing: Thing) {
        let (waiter, drained) = state.withLock { state -> (Waiter?, [CheckedContinuation<Void, Never>]) in
            if !state.waiting.isEmpty { return (state.waiting.removeFirst(), []) }
            state.idle.append(thing)
            state.inUse -= 1
            guard state.inUse == 0 else { return (nil, []) }
            defer { state.drained = [] }
            return (nil, state.drained)
        }
        waiter?.continuation.resume(returning: thing)
        for continuation in drained { continuation.resume() }
    }

    /// Lets nobody in any more; those who are in, or wait, are served.
    package func stop() { state.withLock { $0.isClosed = true } }

    /// Lets nobody in any more and returns when all who were in, waiting ones too, have left.
    ///
    /// - Returns: the things, the first time only.
    package func close() async -> [Thing] {
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
package enum PoolUnavailable: Error, Sendable, Hashable, CustomStringConvertible {
    /// So many callers wait already; try again later.
    case overloaded(limit: Int)
    /// It is closing or closed.
    case closed

    /// The reason in words.
    package var description: String {
        switch self {
        case .overloaded(let limit): "\(limit) calls wait in line already"
        case .closed: "the pool is closed"
        }
    }
}
