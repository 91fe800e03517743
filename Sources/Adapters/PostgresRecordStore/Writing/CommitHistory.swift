import RecordStore
import SyncModel
import Synchronization

/// What a store knows about its earlier commits to one database.
final class CommitHistory: Sendable {
    private struct Partition {
        /// The position if the commit whose response was lost succeeded.
        var lost: StoredPosition?
        /// Those that the database may have after this store's commits: the last one, and those under way.
        var positions: [StoredPosition] = []
        /// Owners whose partition the database has recorded.
        var owners: Set<SyncID> = []
    }

    private struct State {
        var partitions: [Int: Partition] = [:]
        var ownerCount = 0

        mutating func forgetOwners(of partition: Int) {
            ownerCount -= partitions[partition]?.owners.count ?? 0
            partitions[partition]?.owners = []
        }
    }

    /// Some tens of megabytes; above it the owners are forgotten.
    private static let maximumOwners = 200_000

    private let state = Mutex(State())

    /// Records steps that are about to be written; at most one for each partition.
    func recordBegin(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps {
                var positions = state.partitions[step.partition]?.positions ?? []
                positions.removeAll { $0 == step.position }
                // Each attempt of a step has the same position, so there is one before it.
                state.partitions[step.partition, default: Partition()].positions = positions.suffix(1) + [step.position]
            }
        }
    }

    /// Records steps whose commit may have succeeded or not; at most one for each partition.
    func recordLost(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps { state.partitions[step.partition, default: Partition()].lost = step.position }
        }
    }

    /// Whether all of these steps were lost earlier, so that their positions in the database prove that they were written.
    func wereLost(_ steps: [StoreStep]) -> Bool {
        state.withLock { state in steps.allSatisfy { state.partitions[$0.partition]?.lost == $0.position } }
    }

    /// Clears what a fenced step proves wrong: a server that crashed may have lost commits, including their owners.
    func recordFenced(_ steps: [StoreStep]) {
        state.withLock { state in
            for partition in state.partitions.keys { state.forgetOwners(of: partition) }
            for step in steps { state.partitions[step.partition] = nil }
        }
    }

    /// The positions that a partition may have after this store's commits.
    func positions(of partition: Int) -> [StoredPosition] {
        state.withLock { $0.partitions[partition]?.positions ?? [] }
    }

    /// Forgets the owners of a partition whose position is none of this store's: another store has moved it, or a server that
    /// crashed has lost commits.
    ///
    /// - Parameter before: ``positions(of:)`` before the position was read, since a commit may have ended meanwhile.
    func recordRead(_ position: StoredPosition?, of partition: Int, before: [StoredPosition]) {
        state.withLock { state in
            let own = before + (state.partitions[partition]?.positions ?? [])
            if let position, own.contains(position) { return }
            state.forgetOwners(of: partition)
        }
    }

    func recordWritten(_ steps: [StoreStep]) {
        state.withLock { state in
            if state.ownerCount > Self.maximumOwners {
                for partition in state.partitions.keys { state.forgetOwners(of: partition) }
            }
            for step in steps {
                var partition = state.partitions.removeValue(forKey: step.partition) ?? Partition()
                let before = partition.owners.count
                partition.lost = nil
                partition.positions = [step.position]
                partition.owners.formUnion(step.owners)
                state.ownerCount += partition.owners.count - before
                state.partitions[step.partition] = partition
            }
        }
    }

    /// The owners of a step whose partition may not be recorded in the database.
    func unknownOwners(_ step: StoreStep) -> Set<SyncID> {
        state.withLock { state in
            let known = state.partitions[step.partition]?.owners ?? []
            return step.owners.subtracting(known)
        }
    }
}
