import RecordStore
import Synchronization

/// One call of `commit` that waits to be written.
struct CommitTicket: Sendable {
    let steps: [StoreStep]
    /// The tables as they were prepared when the call came.
    let tables: PreparedTables
    let completion: CheckedContinuation<Result<Void, RecordStoreError>, Never>

    /// Rows and outcomes.
    var size: Int { steps.reduce(0) { $0 + $1.rows.count + $1.outcomes.count } }
}

/// The calls of `commit` that came while the writing sessions were busy: whichever is free takes what waits into its next
/// transaction.
///
/// As long as callers are waiting, which are partitions' workers with one call each; each bounds what its steps hold.
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [CommitTicket] = []
        var writers = 0
    }

    /// The most rows and outcomes of one transaction, unless one call alone has more.
    private static let maximumSize = 5000

    /// How many transactions may be under way: more of them share the server's time and make each other's smaller.
    private let maximumWriters: Int
    private let state = Mutex(State())

    init(maximumWriters: Int) {
        self.maximumWriters = maximumWriters
    }

    /// Puts a ticket at the end; `true` tells the caller to see to it that somebody takes.
    func append(_ ticket: CommitTicket) -> Bool {
        state.withLock { state in
            state.waiting.append(ticket)
            guard state.writers < maximumWriters else { return false }
            state.writers += 1
            return true
        }
    }

    /// Takes what goes into one transaction, each partition once; nothing when nobody waits, and then the writer has left.
    func take() -> [CommitTicket] {
        state.withLock { state in
            var taken: [CommitTicket] = []
            var left: [CommitTicket] = []
            var partitions = Set<Int>()
            var size = 0
            for ticket in state.waiting {
                let own = Set(ticket.steps.map(\.partition))
                let fits = taken.isEmpty || size + ticket.size <= Self.maximumSize
                // What comes later of the same partition waits for its turn.
                if fits, left.isEmpty, partitions.isDisjoint(with: own) {
                    taken.append(ticket)
                    partitions.formUnion(own)
                    size += ticket.size
                } else {
                    left.append(ticket)
                }
            }
            state.waiting = left
            if taken.isEmpty { state.writers -= 1 }
            return taken
        }
    }
}
