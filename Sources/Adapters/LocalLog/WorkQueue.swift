import ChangeLog
import Synchronization

/// What waits to be written, from any number of producers to one writer, which takes all of it at once.
///
/// Its bound is in bytes of records, those that the writer has taken and not finished included; whoever finds it reached
/// waits in line. Requests have no bound of their own: each is of a caller who waits for it.
package final class WorkQueue: Sendable {
    /// An append that waits for room; it is enqueued by whoever makes the room, so that nobody overtakes it.
    private struct Waiting {
        let append: Append
        let isTaken: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var work = LogWork()
        var bytes = 0
        var isClosed = false
        /// In the order of arrival, without those before `firstWaiting`; as many as calls of producers.
        var waiting: [Waiting?] = []
        var firstWaiting = 0
        /// The writer, when it has nothing to do.
        var writer: CheckedContinuation<LogWork?, Never>?

        var isAnybodyWaiting: Bool { firstWaiting < waiting.count }

        func hasRoom(for append: Append, within maximumBytes: Int) -> Bool {
            // One append goes through whatever its size, or it never would.
            bytes == 0 || bytes + append.size <= maximumBytes
        }

        mutating func enqueue(_ append: Append) {
            bytes += append.size
            work.appends.append(append)
        }

        /// Enqueues as many of those who wait as there is room for.
        mutating func enqueueWaiting(within maximumBytes: Int) -> [CheckedContinuation<Bool, Never>] {
            var taken: [CheckedContinuation<Bool, Never>] = []
            while isAnybodyWaiting, let next = waiting[firstWaiting], hasRoom(for: next.append, within: maximumBytes) {
                enqueue(next.append)
                taken.append(next.isTaken)
                waiting[firstWaiting] = nil
                firstWaiting += 1
            }
            // Moving the rest down costs no more than what was taken since the last time.
            if firstWaiting * 2 >= waiting.count {
                waiting.removeFirst(firstWaiting)
                firstWaiting = 0
            }
            return taken
        }

        /// The writer if it must be woken, with what it gets.
        mutating func wakeWriter() -> (() -> Void)? {
            guard !work.isEmpty || isClosed, let writer = writer.take() else { return nil }
            let work = work.isEmpty ? nil : work
            self.work = LogWork()
            return { writer.resume(returning: work) }
        }
    }

    private let maximumBytes: Int
    private let state = Mutex(State())

    package init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// The bytes of the records in it, those that the writer has not finished included.
    package var size: Int { state.withLock { $0.bytes } }

    /// Enqueues an append, waiting while the queue is full; one that it throws for is not resolved.
    func add(_ append: Append) async throws(ChangeLogError) {
        if try addAtOnce(append) { return }
        let isTaken = await withCheckedContinuation { continuation in
            let (isTaken, wake): (Bool?, (() -> Void)?) = state.withLock { state in
                if state.isClosed { return (false, nil) }
                guard !state.isAnybodyWaiting, state.hasRoom(for: append, within: maximumBytes) else {
                    state.waiting.append(Waiting(append: append, isTaken: continuation))
                    return (nil, nil)
                }
                state.enqueue(append)
                return (true, state.wakeWriter())
            }
            wake?()
            if let isTaken { continuation.resume(returning: isTaken) }
        }
        if !isTaken { throw .closed("the log") }
    }

    private func addAtOnce(_ append: Append) throws(ChangeLogError) -> Bool {
        let (result, wake): (Result<Bool, ChangeLogError>, (() -> Void)?) = state.withLock { state in
            if state.isClosed { return (.failure(.closed("the log")), nil) }
            guard !state.isAnybodyWaiting, state.hasRoom(for: append, within: maximumBytes) else {
                return (.success(false), nil)
            }
            state.enqueue(append)
            return (.success(true), state.wakeWriter())
        }
        wake?()
        return try result.get()
    }

    /// Has the writer do something else, and waits for its answer.
    @discardableResult
    package func request(_ action: LogRequest.Action) async throws(ChangeLogError) -> Int64? {
        let promise = LogPromise<Int64?>()
        let (isClosed, wake): (Bool, (() -> Void)?) = state.withLock { state in
            if state.isClosed { return (true, nil) }
            state.work.requests.append(LogRequest(action: action, promise: promise))
            return (false, state.wakeWriter())
        }
        wake?()
        if isClosed { throw .closed("the log") }
        return try await promise.value()
    }

    /// Gives the writer what waits; suspends it until there is something, and ends it with `nil` after ``close()``.
    ///
    /// - Parameter isWaiting: false for a writer that has something else to do: empty work then means that nothing waits.
    package func next(isWaiting: Bool = true, isolation: isolated (any Actor)? = #isolation) async -> LogWork? {
        await withCheckedContinuation { continuation in
            let wake: (() -> Void)? = state.withLock { state in
                precondition(state.writer == nil, "a queue has one writer")
                if !isWaiting, !state.isClosed, state.work.isEmpty {
                    return { continuation.resume(returning: LogWork()) }
                }
                state.writer = continuation
                return state.wakeWriter()
            }
            wake?()
        }
    }

    /// Gives back the room of appends that are resolved.
    package func finish(_ appends: [Append]) {
        let size = appends.reduce(0) { $0 + $1.size }
        guard size > 0 else { return }
        let (taken, wake) = state.withLock { state in
            state.bytes -= size
            return (state.enqueueWaiting(within: maximumBytes), state.wakeWriter())
        }
        wake?()
        for continuation in taken { continuation.resume(returning: true) }
    }

    /// Refuses everything from now on, those who wait for room included; what is enqueued is still given to the writer.
    package func close() {
        let (refused, wake) = state.withLock { state in
            state.isClosed = true
            let refused = state.waiting[state.firstWaiting...].compactMap { $0?.isTaken }
            state.waiting = []
            state.firstWaiting = 0
            return (refused, state.wakeWriter())
        }
        wake?()
        for continuation in refused { continuation.resume(returning: false) }
    }
}
