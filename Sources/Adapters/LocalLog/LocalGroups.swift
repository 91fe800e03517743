import ChangeLog
import Synchronization

/// The groups of a log within this process.
package final class LocalGroups: Sendable {
    private struct State {
        /// One for each of the program's groups.
        var coordinators: [GroupName: GroupCoordinator] = [:]
        var isClosed = false
    }

    private let partitions: LogPartitions
    private let queue: WorkQueue
    private let state = Mutex(State())

    package init(partitions: LogPartitions, queue: WorkQueue) {
        self.partitions = partitions
        self.queue = queue
    }

    package func join(_ name: String, topic: Topic) async throws(ChangeLogError) -> LocalMembership {
        let group = GroupName(name, topic: topic)
        // Durable before the first read, so that retention respects a group that has not committed yet.
        try await queue.request(.register(group))
        let coordinator: GroupCoordinator? = state.withLock { state in
            if state.isClosed { return nil }
            if let known = state.coordinators[group] { return known }
            let coordinator = GroupCoordinator(partitionCount: partitions.count(of: topic))
            state.coordinators[group] = coordinator
            return coordinator
        }
        guard let coordinator else { throw .closed("the log") }
        return LocalMembership(group: group, coordinator: coordinator, queue: queue)
    }

    /// Ends the run of every member.
    package func close() {
        let coordinators = state.withLock { state in
            state.isClosed = true
            return Array(state.coordinators.values)
        }
        for coordinator in coordinators { coordinator.close() }
    }
}

/// Shares the partitions of a topic among the members of a group, within this process.
///
/// A partition is assigned to a member only after the previous one has released it.
package final class GroupCoordinator: Sendable {
    private struct Member {
        let id: Int
        /// Notifies the member that its assignment may have changed.
        let changed: @Sendable () -> Void
    }

    /// One assignment of a partition to a member; a later one to the same member is different.
    struct Lease: Sendable, Hashable {
        let partition: Int
        fileprivate let member: Int
        fileprivate let number: Int
    }

    private struct State {
        /// In the order of joining.
        var members: [Member] = []
        /// Of each partition.
        var leases: [Lease?]
        var lastNumber = 0
        var isClosed = false
    }

    private let state: Mutex<State>

    package init(partitionCount: Int) {
        state = Mutex(State(leases: Array(repeating: nil, count: partitionCount)))
    }

    /// Adds a member and notifies all.
    func join(_ changed: @escaping @Sendable () -> Void) -> Int {
        change { state in
            state.lastNumber += 1
            state.members.append(Member(id: state.lastNumber, changed: changed))
            return state.lastNumber
        }
    }

    /// Removes a member whose workers have ended, and notifies the others.
    func leave(_ member: Int) {
        change { state in
            state.members.removeAll { $0.id == member }
            for partition in state.leases.indices where state.leases[partition]?.member == member {
                state.leases[partition] = nil
            }
        }
    }

    /// Notifies every member that the log is closed.
    package func close() { change { $0.isClosed = true } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// The leases that a member must release, and its new ones.
    ///
    /// Partitions are assigned round-robin in the order of joining.
    func assignment(of member: Int) -> (revoked: [Lease], assigned: [Lease]) {
        state.withLock { state in
            var revoked: [Lease] = []
            var assigned: [Lease] = []
            guard let index = state.members.firstIndex(where: { $0.id == member }) else { return (revoked, assigned) }
            for partition in state.leases.indices {
                let isAssigned = partition % state.members.count == index
                if let lease = state.leases[partition] {
                    if lease.member == member, !isAssigned { revoked.append(lease) }
                } else if isAssigned {
                    state.lastNumber += 1
                    let lease = Lease(partition: partition, member: member, number: state.lastNumber)
                    state.leases[partition] = lease
                    assigned.append(lease)
                }
            }
            return (revoked, assigned)
        }
    }

    /// Releases partitions whose workers have ended, and notifies all.
    func release(_ leases: [Lease]) {
        guard !leases.isEmpty else { return }
        change { state in
            for lease in leases where state.leases[lease.partition] == lease {
                state.leases[lease.partition] = nil
            }
        }
    }

    /// Whether the worker may commit.
    func isCurrent(_ lease: Lease) -> Bool { state.withLock { $0.leases[lease.partition] == lease } }

    private func change<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result {
        let (result, members) = state.withLock { state in
            let result = body(&state)
            return (result, state.members)
        }
        for member in members { member.changed() }
        return result
    }
}
