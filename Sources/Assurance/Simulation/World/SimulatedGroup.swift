import ChangeLog

/// A consumer group on a broker; the partitions of a stale member go to others while it still works on them.
final class SimulatedGroup: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.

    /// The assignment of a partition to one worker.
    struct Holding: Hashable {
        let partition: Int
        let member: Int
        let generation: Int
    }

    struct Member {
        let id: Int
        let process: SimulatedProcess
        let changed: () -> Void
    }

    let topic: Topic
    private let partitionCount: Int
    private(set) var committed: [Int: Int64] = [:]
    private var members: [Member] = []
    private var holdings: [Int: Holding] = [:]
    private var lastNumber = 0

    init(topic: Topic, partitionCount: Int) {
        self.topic = topic
        self.partitionCount = partitionCount
    }

    func join(_ process: SimulatedProcess, _ changed: @escaping () -> Void) -> Int {
        lastNumber += 1
        let id = lastNumber
        members.append(Member(id: id, process: process, changed: changed))
        process.onDeath { self.leave(id) }
        notifyAll()
        return id
    }

    func leave(_ id: Int) {
        members.removeAll { $0.id == id }
        for (partition, holding) in holdings where holding.member == id { holdings[partition] = nil }
        notifyAll()
    }

    /// Takes the partitions of stale members, without notifying them.
    func dropStale() {
        for member in members where member.process.isStale {
            for (partition, holding) in holdings where holding.member == member.id { holdings[partition] = nil }
        }
        notifyAll()
    }

    /// What a member must give back, and what it gets.
    func change(of id: Int, has mine: [Holding]) -> (revoked: [Holding], assigned: [Holding]) {
        let active = members.filter { !$0.process.isStale }
        guard let index = active.firstIndex(where: { $0.id == id }) else { return ([], []) }
        let revoked = mine.filter { holdings[$0.partition] != $0 || $0.partition % active.count != index }
        var assigned: [Holding] = []
        for partition in 0..<partitionCount
        where holdings[partition] == nil && partition % active.count == index
            // One worker of a member at a time.
            && !mine.contains(where: { $0.partition == partition })
        {
            lastNumber += 1
            let holding = Holding(partition: partition, member: id, generation: lastNumber)
            holdings[partition] = holding
            assigned.append(holding)
        }
        return (revoked, assigned)
    }

    func release(_ released: [Holding]) {
        for holding in released where holdings[holding.partition] == holding { holdings[holding.partition] = nil }
        if !released.isEmpty { notifyAll() }
    }

    func commit(_ offset: Int64, _ holding: Holding) throws(ChangeLogError) {
        guard holdings[holding.partition] == holding else {
            throw .fenced(TopicPartition(topic, holding.partition))
        }
        committed[holding.partition] = offset
    }

    func notifyAll() { for member in members { member.changed() } }
}

/// A process in a group.
final class SimulatedMembership: LogMembership, @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private let group: SimulatedGroup
    private let process: SimulatedProcess
    private let world: World
    private let wakeup: AsyncStream<Void>.Continuation
    private let wakeups: AsyncStream<Void>
    private var failure: (any Error)?
    private var running: [(holding: SimulatedGroup.Holding, task: Task<Void, Never>)] = []
    private var isLeaving = false

    init(_ group: SimulatedGroup, _ process: SimulatedProcess, _ world: World) {
        self.group = group
        self.process = process
        self.world = world
        (wakeups, wakeup) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {
        let id = group.join(process) { [wakeup] in wakeup.yield() }
        for await _ in wakeups {
            if failure != nil || isLeaving { break }
            if process.isStale { continue }
            let change = group.change(of: id, has: running.map(\.holding))
            if !change.revoked.isEmpty {
                let ended = running.filter { change.revoked.contains($0.holding) }
                running.removeAll { change.revoked.contains($0.holding) }
                await Self.end(ended.map(\.task))
                group.release(change.revoked)
                // What it gave back may be assigned to it again.
                wakeup.yield()
            }
            for holding in change.assigned { running.append((holding, start(holding, worker))) }
        }
        await Self.end(running.map(\.task))
        group.leave(id)
        if let failure { throw failure }
    }

    func leave() async {
        isLeaving = true
        wakeup.yield()
    }

    private static func end(_ tasks: [Task<Void, Never>]) async {
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    private func start(
        _ holding: SimulatedGroup.Holding, _ worker: @escaping @Sendable (Assignment) async throws -> Void
    ) -> Task<Void, Never> {
        let topic = TopicPartition(group.topic, holding.partition)
        let log = SimulatedLog(world: world, process: process)
        let assignment = Assignment(partition: topic) { [group] () async throws(ChangeLogError) in
            try await log.request(topic)
            return group.committed[holding.partition]
        } commit: { [group, world] (offset) async throws(ChangeLogError) in
            try await log.request(topic)
            try group.commit(offset, holding)
            world.committed(offset, of: topic)
            await world.delay(log.process)
            try log.requireLife()
        }
        world.record("\(process.name): works on \(topic)")
        return Task {
            do {
                try await worker(assignment)
            } catch {
                if Task.isCancelled { return }
                failure = failure ?? error
                wakeup.yield()
            }
        }
    }
}
