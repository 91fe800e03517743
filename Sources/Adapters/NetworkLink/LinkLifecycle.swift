import AsyncPrimitives
import Synchronization
import ThreadExecutor

/// Runs the thread and the heartbeats of one side of the link, from the start to the end.
final class LinkLifecycle: Sendable {
    private enum Phase {
        case idle
        case running
        case stopped
    }

    private struct State {
        var phase = Phase.idle
        var heartbeats: Task<Void, Never>?
        /// Why the thread ended, unless it was stopped.
        var problem: LinkProblem?
        /// The callers of `run()` and `stop()`.
        var waiting: [Promise<LinkProblem?>] = []
    }

    private let threadName: String
    private let requestStop: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter requestStop: makes the thread's loop end.
    init(threadName: String, requestStop: @escaping @Sendable () -> Void) {
        self.threadName = threadName
        self.requestStop = requestStop
    }

    /// Starts the heartbeats and the thread; fails if that was done before.
    ///
    /// - Parameter serve: the thread's loop, which runs until it is stopped or fails.
    func start(
        heartbeats begin: () -> Task<Void, Never>, serving serve: @escaping @Sendable () -> LinkProblem?
    ) throws(LinkProblem) {
        let isFirst = state.withLock { state in
            guard state.phase == .idle else { return false }
            state.phase = .running
            return true
        }
        guard isFirst else { throw .system("the link was started before") }
        let thread: DedicatedThread
        do {
            thread = try DedicatedThread(name: threadName)
        } catch {
            let problem = LinkProblem.system("\(error)")
            end(problem)
            throw problem
        }
        let heartbeats = begin()
        state.withLock { $0.heartbeats = heartbeats }
        Task {
            let problem = await thread.run { serve() }
            await thread.close()
            end(problem)
        }
    }

    /// Waits until the thread has ended, which cancelling the task requests; starts first if that was not done.
    func run(_ start: () async throws(LinkProblem) -> Void) async throws {
        if state.withLock({ $0.phase == .idle }) { try await start() }
        let problem = await withTaskCancellationHandler {
            await wait()
        } onCancel: {
            requestStop()
        }
        if let problem { throw problem }
    }

    /// Stops the thread, and returns when it has ended.
    func stop() async {
        let phase = state.withLock { state in
            defer { if state.phase == .idle { state.phase = .stopped } }
            return state.phase
        }
        switch phase {
        case .idle: end(nil)
        case .running:
            requestStop()
            _ = await wait()
        case .stopped: return
        }
    }

    private func end(_ problem: LinkProblem?) {
        let (heartbeats, waiting) = state.withLock { state in
            state.phase = .stopped
            state.problem = problem
            defer { (state.heartbeats, state.waiting) = (nil, []) }
            return (state.heartbeats, state.waiting)
        }
        heartbeats?.cancel()
        for waiter in waiting { waiter.fulfil(problem) }
    }

    /// Waits for the end, also in a cancelled task.
    private func wait() async -> LinkProblem? {
        let waiter = Promise<LinkProblem?>()
        state.withLock { state in
            if state.phase == .stopped { waiter.fulfil(state.problem) } else { state.waiting.append(waiter) }
        }
        return await waiter.value()
    }
}
