import RecordStore
import Synchronization

/// One call of `commit` that waits to be written.
struct CommitTicket: Sendable {
    let steps: [StoreStep]
    let completion: CheckedContinuation<Result<Void, RecordStoreError>, Never>
}

/// The calls of `commit` that came while the writer was busy: it takes all of them into its next transaction.
///
/// As long as callers are waiting, which are partitions' workers with one call each; each bounds what its steps hold.
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [CommitTicket] = []
        /// Whether somebody is on the way to the writer to take them.
        var isFetched = false
    }

    private let state = Mutex(State())

    /// Puts a ticket at the end; `true` tells the caller to send for the line.
    func append(_ ticket: CommitTicket) -> Bool {
        state.withLock { state in
            state.waiting.append(ticket)
            defer { state.isFetched = true }
            return !state.isFetched
        }
    }

    /// Takes all that wait.
    func take() -> [CommitTicket] {
        state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
    }
}
