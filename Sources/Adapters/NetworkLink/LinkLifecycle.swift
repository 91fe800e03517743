import AsyncPrimitives
import Synchronization
import ThreadExecutor

/// The life of one end of the link: its thread and its beats, from a start to an end that any number may wait for.
final class LinkLifecycle: Sendable {
    private enum Phase {
        case idle
        case running
        case stopped
    }

    private struct State {
        var phase = Phase.idle
        var beats: Task<Void, Never>?
        /// Why it ended, where it did not as it should.
        var problem: LinkProblem?
        /// As many as callers of `run()` and `stop()`.
        var waiting: [Promise<LinkProblem?>] = []
    }

    private let name: String
    private let halt: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - name: the thread's, for debuggers.
    ///   - halt: has the thread end.
    init(name: String, halt: @escaping @Sendable () -> Void) {
        self.name = name
        self.halt = halt
    }

    /// Begins; once.
    ///
    /// - Parameters:
    ///   - beats: begins to beat.
    ///   - serve: runs on the thread until it is told to end.
    func start(
        beats: () -> Task<Void, Never>, serving serve: @escaping @Sendable () -> LinkProblem?
    ) throws(LinkProblem) {
        let isFirst = state.withLock { state in
            guard state.phase == .idle else { return false }
            state.phase = .running
            return true
        }
        guard isFirst else { throw .system("the link was started before") }
        let thread: DedicatedThread
        do {
            thread = try DedicatedThread(name: name)
        } catch {
            let problem = LinkProblem.system("\(error)")
            end(problem)
            throw problem
        }
        let beating = beats()
        state.withLock { $0.beats = beating }
        Task {
            let problem = await thread.run { serve() }
            await thread.close()
            end(problem)
        }
    }

    /// Lasts as long as the thread, which a cancelled task ends; starts it first where nobody did.
    func run(_ start: () async throws(LinkProblem) -> Void) async throws {
        if state.withLock({ $0.phase == .idle }) { try await start() }
        let problem = await withTaskCancellationHandler {
            await wait()
        } onCancel: {
            halt()
        }
        if let problem { throw problem }
    }

    /// Ends, and returns when all is done.
    func stop() async {
        let phase = state.withLock { state in
            defer { if state.phase == .idle { state.phase = .stopped } }
            return state.phase
        }
        switch phase {
        case .idle: end(nil)
        case .running:
            halt()
            _ = await wait()
        case .stopped: return
        }
    }

    private func end(_ problem: LinkProblem?) {
        let (beats, waiting) = state.withLock { state in
            state.phase = .stopped
            state.problem = problem
            defer { (state.beats, state.waiting) = (nil, []) }
            return (state.beats, state.waiting)
        }
        beats?.cancel()
        for waiter in waiting { waiter.fulfil(problem) }
    }

    /// Waits for the end, in a task that was cancelled, too.
    private func wait() async -> LinkProblem? {
        let waiter = Promise<LinkProblem?>()
        state.withLock { state in
            if state.phase == .stopped { waiter.fulfil(state.problem) } else { state.waiting.append(waiter) }
        }
        return await waiter.value()
    }
}
