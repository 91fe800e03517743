import ChangeLog
import Synchronization

/// The groups of a log within this process.
package final class LocalGroups: Sendable {
    private struct State {
        /// As many as the program has groups.
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

    /// Adds a member to a group.
    package func join(_ name: String, topic: Topic) async throws(ChangeLogError) -> LocalMembership {
        let group = GroupName(name, topic: topic)
        // Durable before anything is read, so that retention knows of a group that has not committed yet.
        try await queue.request(.register(group))
        let coordinator: GroupCoordinator? = state.withLock { state in
            if state.isClosed { return nil }
            if let known = state.coordinators[group] { return known }
            let made = GroupCoordinator(partitionCount: partitions.count(of: topic))
            state.coordinators[group] = made
            return made
        }
        guard let coordinator else { throw .closed("the log") }
        return LocalMembership(group: group, coordinator: coordinator, queue: queue)
    }

    /// Ends every member's run.
    package func close() {
        let coordinators = state.withLock { state in
            state.isClosed = true
            return Array(state.coordinators.values)
        }
        for coordinator in coordinators { coordinator.close() }
    }
}
