import AsyncPrimitives
import ChangeLog
import Synchronization

/// Work from any number of producers for one writer.
///
/// The writer takes as many appends at once as one transaction should write, at least one: small ones first, then a share of large ones.
/// Producers take turns, and uploads to different partitions, in order of arrival among themselves, so that one with much in the queue
/// delays others by one transaction, which is short.
///
/// Its capacity is in bytes of records, including those that the writer has not finished; producers wait in order of arrival
/// while it is full. Requests need no limit: each has a caller that waits for it.
package final class WorkQueue: Sendable {
    /// An append that waits for capacity; the call that frees the capacity enqueues it, so that no later append overtakes it.
    private struct Waiter {
        let append: Append
        let isAccepted: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var appends = FairQueue<AppendOrder, Append>()
        var requests: [LogRequest] = []
        var bytes = 0
        var isClosed = false
        /// In the order of arrival, `nil` before `firstWaiting`.
        var waiting: [Waiter?] = []
        var firstWaiting = 0
        /// Set while the writer waits for work.
        var writer: CheckedContinuation<LogWork?, Never>?

        var hasWaiters: Bool { firstWaiting < waiting.count }
        var hasWork: Bool { !appends.isEmpty || !requests.isEmpty }

        func hasCapacity(for append: Append, within maximumBytes: Int) -> Bool {
            // An append above the capacity is accepted when the queue is empty.
            bytes == 0 || bytes + append.size <= maximumBytes
        }

        mutating func enqueue(_ append: Append) {
            bytes += append.size
            appends.append(append, for: append.order)
        }

        /// The work of one transaction: all requests, small appends up to its size, and a share of large ones, at least one.
        ///
        /// An append is taken only as the first of its order, so no small one overtakes a large one of the same order.
        mutating func takeWork() -> LogWork {
            defer { requests = [] }
            return LogWork(
                appends: take(WorkQueue.transactionBytes) { $0.size <= WorkQueue.smallBytes }
                    + take(WorkQueue.largeBytes) { $0.size > WorkQueue.smallBytes },
                requests: requests)
        }

        /// Appends that come next and may be taken, up to the one that reaches a size.
        private mutating func take(_ bytes: Int, where mayTake: (Append) -> Bool) -> [Append] {
            var (taken, size): ([Append], Int) = ([], 0)
            while size < bytes, let append = appends.take(where: { mayTake($1) }) {
                size += append.size
                taken.append(append)
            }
            return taken
        }

        /// Enqueues the appends that fit.
        mutating func enqueueWaiting(within maximumBytes: Int) -> [CheckedContinuation<Bool, Never>] {
            var accepted: [CheckedContinuation<Bool, Never>] = []
            while hasWaiters, let next = waiting[firstWaiting], hasCapacity(for: next.append, within: maximumBytes) {
                enqueue(next.append)
                accepted.append(next.isAccepted)
                waiting[firstWaiting] = nil
                firstWaiting += 1
            }
            // Amortized constant work for each append.
            if firstWaiting * 2 >= waiting.count {
                waiting.removeFirst(firstWaiting)
                firstWaiting = 0
            }
            return accepted
        }

        /// Resumes the writer if there is work or the queue is closed; to be called outside of the lock.
        mutating func wakeWriter() -> (() -> Void)? {
            guard hasWork || isClosed, let writer = writer.take() else { return nil }
            let work = hasWork ? takeWork() : nil
            return { writer.resume(returning: work) }
        }
    }

    /// The bytes of small appends after which a transaction ends.
    ///
    /// 2 MiB: writing them takes longer than the sync, which larger transactions would save.
    static let transactionBytes = 2 << 20
    /// The bytes up to which an append is small: most uploads of devices, and what follows from them.
    static let smallBytes = 64 << 10
    /// The bytes after which a transaction takes no further large append.
    ///
    /// An append that arrives while a transaction is written waits for the rest of it: 512 KiB, and what the last large one has beyond that.
    static let largeBytes = 512 << 10

    private let maximumBytes: Int
    private let state = Mutex(State())

    package init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// In bytes of records, including those that the writer has not finished.
    package var size: Int { state.withLock { $0.bytes } }

    /// Enqueues an append, waiting while the queue is full; if it throws, the append is not resolved.
    func add(_ append: Append) async throws(ChangeLogError) {
        let isAccepted = await withCheckedContinuation { continuation in
            let (isAccepted, wake): (Bool?, (() -> Void)?) = state.withLock { state in
                if state.isClosed { return (false, nil) }
                guard !state.hasWaiters, state.hasCapacity(for: append, within: maximumBytes) else {
                    state.waiting.append(Waiter(append: append, isAccepted: continuation))
                    return (nil, nil)
                }
                state.enqueue(append)
                return (true, state.wakeWriter())
            }
            wake?()
            if let isAccepted { continuation.resume(returning: isAccepted) }
        }
        if !isAccepted { throw .closed("the log") }
    }

    /// Sends a request to the writer and waits for its result.
    @discardableResult
    package func request(_ action: LogRequest.Action) async throws(ChangeLogError) -> Int64? {
        let promise = LogPromise<Int64?>()
        let (isClosed, wake): (Bool, (() -> Void)?) = state.withLock { state in
            if state.isClosed { return (true, nil) }
            state.requests.append(LogRequest(action: action, promise: promise))
            return (false, state.wakeWriter())
        }
        wake?()
        if isClosed { throw .closed("the log") }
        return try await promise.value().get()
    }

    /// Returns the work of a transaction, waiting for it if there is none; `nil` after ``close()``.
    ///
    /// - Parameter isWaiting: whether to wait; otherwise the work may be empty.
    package func next(isWaiting: Bool = true, isolation: isolated (any Actor)? = #isolation) async -> LogWork? {
        await withCheckedContinuation { continuation in
            let wake: (() -> Void)? = state.withLock { state in
                precondition(state.writer == nil, "a queue has one writer")
                if !isWaiting, !state.isClosed, !state.hasWork {
                    return { continuation.resume(returning: LogWork()) }
                }
                state.writer = continuation
                return state.wakeWriter()
            }
            wake?()
        }
    }

    /// Frees the capacity of resolved appends.
    package func finish(_ appends: [Append]) {
        let size = appends.reduce(0) { $0 + $1.size }
        guard size > 0 else { return }
        let (accepted, wake) = state.withLock { state in
            state.bytes -= size
            return (state.enqueueWaiting(within: maximumBytes), state.wakeWriter())
        }
        wake?()
        for continuation in accepted { continuation.resume(returning: true) }
    }

    /// Rejects further work and the appends that wait for capacity; the writer still gets what is enqueued.
    package func close() {
        let (rejected, wake) = state.withLock { state in
            state.isClosed = true
            let rejected = state.waiting[state.firstWaiting...].compactMap { $0?.isAccepted }
            state.waiting = []
            state.firstWaiting = 0
            return (rejected, state.wakeWriter())
        }
        wake?()
        for continuation in rejected { continuation.resume(returning: false) }
    }
}
