import AsyncPrimitives
import Synchronization

/// Counts what devices do, so that a test can act after so many more requests and answers, whatever the time.
final class Progress: Sendable {
    private struct State {
        var count = 0
        /// Why no more is counted.
        var failure: (any Error)?
        var waiting: [(count: Int, promise: Promise<(any Error)?>)] = []
    }

    private let state = Mutex(State())

    /// Counts a request that is about to be sent, or an answer.
    func record() {
        let met = state.withLock { state in
            state.count += 1
            let count = state.count
            defer { state.waiting.removeAll { $0.count <= count } }
            return state.waiting.filter { $0.count <= count }
        }
        for waiting in met { waiting.promise.fulfil(nil) }
    }

    /// Ends each wait, now and later, since a device has failed.
    func fail(_ error: any Error) {
        let waiting = state.withLock { state in
            state.failure = state.failure ?? error
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiting in waiting { waiting.promise.fulfil(error) }
    }

    /// Waits for so many more requests and answers, at least one.
    ///
    /// - Throws: what a device has failed with; `CancellationError`.
    func wait(for more: Int) async throws {
        let promise = Promise<(any Error)?>()
        state.withLock { state in
            if let failure = state.failure {
                promise.fulfil(failure)
            } else {
                state.waiting.append((state.count + more, promise))
            }
        }
        if let failure = await promise.value(cancelled: CancellationError()) { throw failure }
    }
}

/// Set once, read by many.
final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    func set() { flag.store(true, ordering: .relaxed) }
}
