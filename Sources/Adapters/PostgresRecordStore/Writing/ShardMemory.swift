import RecordStore
import SyncModel
import Synchronization

/// What a store remembers of its commits to one database.
final class ShardMemory: Sendable {
    private struct State {
        /// Where partitions stand if the commit whose answer was lost was done.
        var lost: [Int: StoredPosition] = [:]
        /// Owners whose partition is noted in the database.
        var settled: Set<SyncID> = []
    }

    /// As many owners as take some tens of megabytes; beyond, all are looked up anew.
    private static let maximumOwners = 200_000

    private let state = Mutex(State())

    /// Notes commits that may have been done or not; at most one for each partition.
    func lose(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.lost[step.partition] = step.position }
        }
    }

    /// Whether all of these steps were lost earlier, so that finding their positions means that they were done.
    func hasLost(_ steps: [StoreStep]) -> Bool {
        state.withLock { state in steps.allSatisfy { state.lost[$0.partition] == $0.position } }
    }

    /// Notes that steps were fenced, and that what became of lost ones is known.
    ///
    /// A server that crashed may have taken commits back, their owners with them.
    func fence(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.lost[step.partition] = nil }
            state.settled = []
        }
    }

    /// Forgets owners: whoever begins with a partition may find it at an earlier position than before.
    func forgetOwners() {
        state.withLock { $0.settled = [] }
    }

    /// Notes that steps were written.
    func finish(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.lost[step.partition] = nil }
            if state.settled.count > Self.maximumOwners { state.settled = [] }
            for step in steps {
                for row in step.rows { state.settled.insert(row.key.owner) }
                for outcome in step.outcomes { state.settled.insert(outcome.key.owner) }
            }
        }
    }

    /// Those owners of a step whose partition is not known to be noted.
    func unsettled(_ step: StoreStep) -> Set<SyncID> {
        state.withLock { state in
            var owners = Set<SyncID>()
            for row in step.rows where !state.settled.contains(row.key.owner) { owners.insert(row.key.owner) }
            for outcome in step.outcomes where !state.settled.contains(outcome.key.owner) {
                owners.insert(outcome.key.owner)
            }
            return owners
        }
    }
}
