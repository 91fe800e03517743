import Synchronization

/// Resources that one caller uses at a time, such as connections; callers wait in order of arrival when all are in use.
package final class ResourcePool<Resource: Sendable>: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Resource, any Error>
    }

    private struct State {
        /// The one used last on top: its caches are warm, and the others may rest.
        var idle: [Resource]
        var waiting: [Waiter] = []
        var nextID: UInt64 = 0
        var inUse = 0
        var isClosed = false
        var drained: CheckedContinuation<Void, Never>?
        /// The first failure of closing a resource.
        var closing: Task<(any Error)?, Never>?
    }

    /// How many callers may wait: each is a suspended task.
    private let waitingLimit: Int
    /// How many callers may use a resource or wait for one.
    private let limit: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - resources: the last one is lent first.
    ///   - waitingLimit: how many callers may wait, 0 or more; further ones fail as overloaded.
    package init(_ resources: [Resource], waitingLimit: Int) {
        precondition(!resources.isEmpty && waitingLimit >= 0, "a pool has resources and a waiting limit of 0 or more")
        self.waitingLimit = waitingLimit
        limit = resources.count + waitingLimit
        state = Mutex(State(idle: resources))
    }

    /// Lends a resource to a closure, waiting for one if none is idle.
    ///
    /// - Throws: what the closure throws; ``PoolUnavailable``; `CancellationError` if the caller is cancelled while it waits.
    package func lend<Value: Sendable>(_ body: (Resource) async throws -> Value) async throws -> Value {
        let resource = try await take()
        defer { giveBack(resource) }
        return try await body(resource)
    }

    private func take() async throws -> Resource {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Resource, any Error>? = state.withLock { state in
                    if state.isClosed { return .failure(PoolUnavailable.closed) }
                    // Under the lock: a later cancellation finds the waiter in the queue.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if let resource = state.idle.popLast() {
                        state.inUse += 1
                        return .success(resource)
                    }
                    if state.waiting.count >= waitingLimit {
                        return .failure(PoolUnavailable.overloaded(limit: limit))
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

    /// Hands the resource to the caller that has waited longest, if any.
    private func giveBack(_ resource: Resource) {
        let (waiter, drained) = state.withLock { state -> (Waiter?, CheckedContinuation<Void, Never>?) in
            if !state.waiting.isEmpty { return (state.waiting.removeFirst(), nil) }
            state.idle.append(resource)
            state.inUse -= 1
            return (nil, state.inUse == 0 ? state.drained.take() : nil)
        }
        waiter?.continuation.resume(returning: resource)
        drained?.resume()
    }

    /// Rejects further callers, waits for those that use a resource or wait for one, and closes each resource; may be
    /// repeated.
    ///
    /// The closing runs in a task of its own, so a cancelled caller does not interrupt it.
    ///
    /// - Returns: the first error of a closing; all resources are closed nevertheless.
    @discardableResult
    package func close(_ close: @escaping @Sendable (Resource) async throws -> Void) async -> (any Error)? {
        let closing = state.withLock { state in
            if let closing = state.closing { return closing }
            state.isClosed = true
            let closing = Task {
                var failure: (any Error)?
                for resource in await drain() {
                    do {
                        try await close(resource)
                    } catch {
                        failure = failure ?? error
                    }
                }
                return failure
            }
            state.closing = closing
            return closing
        }
        return await closing.value
    }

    /// Returns all resources once none is in use.
    private func drain() async -> [Resource] {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.inUse > 0 { state.drained = continuation }
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

/// A pool rejected a call before any of it ran.
package enum PoolUnavailable: Error, Sendable, Hashable, CustomStringConvertible {
    /// As many callers as are allowed use the pool or wait; try again later.
    case overloaded(limit: Int)
    case closed

    package var description: String {
        switch self {
        case .overloaded(let limit): "\(limit) calls already use a connection or wait for one"
        case .closed: "the connections are closed"
        }
    }
}
