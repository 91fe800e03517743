import RecordStore
import SyncModel
import Synchronization

/// What a store knows about its earlier commits to one database.
final class CommitHistory: Sendable {
    private struct State {
        /// The position that each partition has if the commit whose response was lost succeeded.
        var lost: [Int: StoredPosition] = [:]
        /// Owners whose partition the database has recorded.
        var owners: Set<SyncID> = []
    }

    /// Some tens of megabytes; above it the set is cleared.
    private static let maximumOwners = 200_000

    private let state = Mutex(State())

    /// Records steps whose commit may have succeeded or not; at most one for each partition.
    func recordLost(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.lost[step.partition] = step.position }
        }
    }

    /// Whether all of these steps were lost earlier, so that their positions in the database prove that they were written.
    func wereLost(_ steps: [StoreStep]) -> Bool {
        state.withLock { state in steps.allSatisfy { state.lost[$0.partition] == $0.position } }
    }

    /// Clears what a fenced step proves wrong: a server that crashed may have lost commits, including their owners.
    func recordFenced(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.lost[step.partition] = nil }
            state.owners = []
        }
    }

    /// For the start of a worker, which may find its partition at an earlier position than before.
    func forgetOwners() {
        state.withLock { $0.owners = [] }
    }

    func recordWritten(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.lost[step.partition] = nil }
            if state.owners.count > Self.maximumOwners { state.owners = [] }
            for step in steps {
                for row in step.rows { state.owners.insert(row.key.owner) }
                for outcome in step.outcomes { state.owners.insert(outcome.key.owner) }
            }
        }
    }

    /// The owners of a step whose partition may not be recorded in the database.
    func unknownOwners(_ step: StoreStep) -> Set<SyncID> {
        state.withLock { state in
            var owners = Set<SyncID>()
            for row in step.rows where !state.owners.contains(row.key.owner) { owners.insert(row.key.owner) }
            for outcome in step.outcomes where !state.owners.contains(outcome.key.owner) {
                owners.insert(outcome.key.owner)
            }
            return owners
        }
    }
}
