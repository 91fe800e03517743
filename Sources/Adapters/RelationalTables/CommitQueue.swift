import AsyncPrimitives
import RecordStore
import Synchronization

/// A call of `commit` that waits to be written.
package final class PendingCommit: Sendable {
    private struct State {
        /// Whether the caller has its result.
        var isSettled = false
        var isAbandoned = false
        var notify: (@Sendable () -> Void)?
    }

    package let steps: [StoreStep]
    private let outcome = Promise<Result<Void, RecordStoreError>>()
    private let state = Mutex(State())

    fileprivate init(_ steps: [StoreStep]) { self.steps = steps }

    /// Waits until the steps are written; a caller that is cancelled does not wait for it.
    fileprivate func value() async -> Result<Void, RecordStoreError> {
        await withTaskCancellationHandler {
            await outcome.value()
        } onCancel: {
            settle(
                .failure(
                    RecordStoreError(
                        .unavailable, message: "the caller was cancelled; its steps may be written or not",
                        isRetriable: true)), isAbandoned: true)
        }
    }

    private func settle(_ result: Result<Void, RecordStoreError>, isAbandoned: Bool) {
        let notify: (@Sendable () -> Void)? = state.withLock { state in
            if state.isSettled { return nil }
            state.isSettled = true
            state.isAbandoned = isAbandoned
            let notify = state.notify.take()
            return isAbandoned ? notify : nil
        }
        outcome.fulfil(result)
        notify?()
    }

    /// Whether nobody waits for the result any more.
    package var isSettled: Bool { state.withLock(\.isSettled) }

    /// Whether the caller was cancelled before it had a result.
    package var isAbandoned: Bool { state.withLock(\.isAbandoned) }

    /// Calls a closure, the last one given, when the caller is cancelled; at once if it was.
    package func whenAbandoned(_ notify: @escaping @Sendable () -> Void) {
        let isAbandoned = state.withLock { state in
            if !state.isSettled { state.notify = notify }
            return state.isAbandoned
        }
        if isAbandoned { notify() }
    }

    /// Ends the caller's wait; without effect if it was cancelled.
    package func resolve(_ result: Result<Void, RecordStoreError>) { settle(result, isAbandoned: false) }

    /// Rows and outcomes.
    fileprivate var size: Int { steps.reduce(0) { $0 + $1.rows.count + $1.outcomes.count } }
}

/// Calls of `commit` that wait while the writers are busy; a writer that becomes free writes what waits in its next
/// transaction.
///
/// It is as long as the number of callers: each worker of a partition has one call at a time, and bounds what its steps hold.
package final class CommitQueue: Sendable {
    private struct State {
        var waiting: [PendingCommit] = []
        var writers = 0

        mutating func takeGroup(maximumSize: Int) -> [PendingCommit] {
            var taken: [PendingCommit] = []
            var left: [PendingCommit] = []
            var partitions = Set<Int>()
            var size = 0
            for commit in waiting where !commit.isAbandoned {
                let own = Set(commit.steps.map(\.partition))
                let fits = taken.isEmpty || size + commit.size <= maximumSize
                // A later call of the same partition stays behind, and with it all that follow.
                if fits, left.isEmpty, partitions.isDisjoint(with: own) {
                    taken.append(commit)
                    partitions.formUnion(own)
                    size += commit.size
                } else {
                    left.append(commit)
                }
            }
            waiting = left
            return taken
        }
    }

    /// How many transactions may run at once.
    private let maximumWriters: Int
    /// The most rows and outcomes of one transaction, unless one call alone has more.
    private let maximumSize: Int
    private let state = Mutex(State())

    package init(maximumWriters: Int, maximumSize: Int) {
        self.maximumWriters = maximumWriters
        self.maximumSize = maximumSize
    }

    /// Queues steps and returns when they are written.
    ///
    /// A caller that is cancelled gets an error at once. Steps that no writer has taken are not written then; any others may be
    /// written or not, as when their session is lost.
    ///
    /// - Parameter write: a new writer, started if one more may run: it calls `take()` until that returns nothing, or `takeAll()`
    ///   once.
    package func commit(
        _ steps: [StoreStep], startingWriter write: @escaping @Sendable () async -> Void
    ) async throws(RecordStoreError) {
        let commit = PendingCommit(steps)
        let startsWriter = state.withLock { state in
            state.waiting.append(commit)
            guard state.writers < maximumWriters else { return false }
            state.writers += 1
            return true
        }
        // A task of its own: it writes other callers' steps too, which must not be cancelled with this caller.
        if startsWriter { Task { await write() } }
        try await commit.value().get()
    }

    /// Takes the calls of one transaction, each partition once; nothing if none waits, which ends the writer.
    package func take() -> [PendingCommit] {
        state.withLock { state in
            let taken = state.takeGroup(maximumSize: maximumSize)
            if taken.isEmpty { state.writers -= 1 }
            return taken
        }
    }

    /// Takes all calls, grouped into transactions, and ends the writer.
    package func takeAll() -> [[PendingCommit]] {
        state.withLock { state in
            var groups: [[PendingCommit]] = []
            while !state.waiting.isEmpty { groups.append(state.takeGroup(maximumSize: maximumSize)) }
            state.writers = max(state.writers - 1, 0)
            return groups
        }
    }
}
