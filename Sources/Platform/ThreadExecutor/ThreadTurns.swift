import AsyncPrimitives
import Synchronization

/// Threads for long computations, which callers use in turns.
///
/// On the threads that all tasks share, the computations of one caller would delay whatever others do. The system divides the
/// processors between these threads and those, and a caller with many computations delays others by one each.
package final class ThreadTurns<Caller: Hashable & Sendable>: Sendable {
    private struct State {
        /// The threads without a computation.
        var idle: [DedicatedThread]
        /// Those that wait for a thread, as many as the tasks that call ``run(for:_:)``.
        var queue = FairQueue<Caller, Promise<DedicatedThread?>>()
        var isClosed = false
    }

    let threads: [DedicatedThread]
    private let state: Mutex<State>
    /// Fulfilled when the threads are closed and idle.
    private let ended = Promise<Void>()

    /// - Parameters:
    ///   - name: of the threads, at most 15 bytes with their number.
    ///   - count: how many computations run at the same time.
    package init(name: String, count: Int) throws(ThreadStartError) {
        var threads: [DedicatedThread] = []
        for number in 0..<count {
            do throws(ThreadStartError) {
                threads.append(try DedicatedThread(name: "\(name)\(number)", isBackground: true))
            } catch {
                let started = threads
                Task { for thread in started { await thread.close() } }
                throw error
            }
        }
        self.threads = threads
        state = Mutex(State(idle: threads))
    }

    /// Runs a computation on one of the threads, once it is the caller's turn.
    ///
    /// After ``close()`` it runs wherever the task does. Not cancellable.
    package func run<Value: Sendable, Failure: Error>(
        for caller: Caller, _ computation: @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard let thread = await take(for: caller) else { return try computation() }
        defer { release(thread) }
        return try await thread.run(computation)
    }

    /// Ends the threads when their computations have ended; those that wait run without a turn.
    package func close() async {
        let (waiting, isIdle) = state.withLock { state in
            state.isClosed = true
            var waiting: [Promise<DedicatedThread?>] = []
            while let next = state.queue.take() { waiting.append(next) }
            return (waiting, state.idle.count == threads.count)
        }
        for promise in waiting { promise.fulfil(nil) }
        if isIdle { ended.fulfil(()) }
        await ended.value()
        for thread in threads { await thread.close() }
    }

    private func take(for caller: Caller) async -> DedicatedThread? {
        let turn = Promise<DedicatedThread?>()
        state.withLock { state in
            if state.isClosed {
                turn.fulfil(nil)
            } else if let thread = state.idle.popLast() {
                turn.fulfil(thread)
            } else {
                state.queue.append(turn, for: caller)
            }
        }
        return await turn.value()
    }

    private func release(_ thread: DedicatedThread) {
        let next = state.withLock { state in
            let next = state.queue.take()
            if next == nil { state.idle.append(thread) }
            if state.isClosed, state.idle.count == threads.count { ended.fulfil(()) }
            return next
        }
        next?.fulfil(thread)
    }
}
