import AsyncPrimitives
import ChangeLog
import Kafka
import Observability
import Synchronization
import ThreadExecutor

/// One membership in a consumer group: the client, and the thread that polls it.
///
/// The thread polls whatever the workers do, so a member that is busy, paused or retrying stays in its group. It accepts
/// assigned partitions at once, and releases revoked ones when their workers have ended. The client is used for membership and
/// commits only; records are read by others.
final class GroupSession: Sendable {
    /// A partition as it was assigned once; the next assignment of the same partition has another number.
    struct HeldPartition: Sendable, Hashable {
        let partition: Int
        let number: Int
    }

    /// What the member's workers must do.
    enum Change: Sendable {
        /// Start these workers.
        case assigned([HeldPartition])
        /// Stop these workers, then call ``GroupSession/release(_:)``.
        case revoked([HeldPartition])
        /// Stop all workers: the membership has failed.
        case failed(ChangeLogError)
    }

    struct Commit: Sendable {
        let held: HeldPartition
        let offset: Int64
        let promise: LogPromise<Void>
        /// When the commit was requested.
        let since: ContinuousClock.Instant
    }

    struct Dependencies: Sendable {
        let topic: Topic
        let group: String
        let topics: TopicNames
        let properties: KafkaProperties
        /// The name of the member, if it has one.
        let instance: String?
        /// How long a member with a name may have no partitions before it rejoins its group.
        let idleLimit: Duration
        let logger: Logger
        /// Called when another process has joined under the same name.
        let wasFenced: @Sendable () -> Void
    }

    private struct State {
        /// The assigned partitions; their workers may commit until they are released.
        var held: [Int: HeldPartition] = [:]
        var lastNumber = 0
        /// Requests for the thread.
        var commits: [Commit] = []
        var releases: [HeldPartition] = []
        var isLeaving = false
        /// Whether the client had an id in its group when it began to leave, or failed.
        var hasJoined = false
        /// Whether the group has given the client an assignment, which may be empty.
        var wasAssigned = false
        /// The error of commits after the thread has ended.
        var end: ChangeLogError?
    }

    private let dependencies: Dependencies
    private let client: KafkaClient
    private let thread: DedicatedThread
    private let changed: @Sendable (Change) -> Void
    private let state = Mutex(State())
    private let serving = Mutex<Task<Void, Never>?>(nil)

    /// - Parameter changed: called on the session's thread.
    init(_ dependencies: Dependencies, changed: @escaping @Sendable (Change) -> Void) throws(ChangeLogError) {
        self.dependencies = dependencies
        self.changed = changed
        do {
            thread = try DedicatedThread(name: "weir-kafka-grp")
        } catch {
            throw ChangeLogError(.other, message: "\(error)", isRetriable: true)
        }
        do throws(KafkaError) {
            client = try KafkaClient(.consumer, dependencies.properties, events: .group)
        } catch {
            let thread = thread
            Task { await thread.close() }
            throw ChangeLogError(error)
        }
    }

    var topic: Topic { dependencies.topic }

    /// Joins the group.
    func begin() {
        let task = Task { await thread.run { self.serve() } }
        serving.withLock { $0 = task }
    }

    /// Releases partitions whose workers have ended.
    func release(_ held: [HeldPartition]) {
        state.withLock { $0.releases += held }
        client.wake()
    }

    func commit(_ offset: Int64, of held: HeldPartition) async throws(ChangeLogError) {
        let promise = LogPromise<Void>()
        let refusal: ChangeLogError? = state.withLock { state in
            if let end = state.end { return end }
            guard state.held[held.partition] == held else { return .fenced(partition(held)) }
            state.commits.append(Commit(held: held, offset: offset, promise: promise, since: .now))
            return nil
        }
        if let refusal { throw refusal }
        client.wake()
        try await promise.value().get()
    }

    /// Leaves the group; must be called after every worker has ended.
    ///
    /// - Parameter error: the error of later commits.
    func leave(_ error: ChangeLogError?) async {
        // Under the lock, so that the thread cannot be past its polls by then: `leaveGroup()` would end with the wake-up.
        state.withLock { state in
            state.isLeaving = true
            client.wake()
        }
        await serving.withLock({ $0 })?.value
        let left = state.withLock { state in
            state.end = error ?? state.end ?? .fenced(TopicPartition(topic, 0))
            state.held = [:]
            defer { state.commits = [] }
            return state.commits
        }
        for commit in left { commit.promise.fulfilOnce(.failure(error ?? .fenced(partition(commit.held)))) }
        await closeClient()
    }

    /// How long closing the client may take: it has left the group, and no response is pending.
    private static let closeLimit = Duration.seconds(5)

    /// Closes the client, or abandons it after the limit: if the topic of a member was deleted, librdkafka 2.0 waits forever for
    /// its own threads.
    private func closeClient() async {
        guard !mayNotClose else {
            client.abandon()
            await thread.close()
            return dependencies.logger.warning(
                "A Kafka client that joined its group and got no assignment is abandoned",
                [.topic: .string(topic.rawValue)])
        }
        let (outcome, continuation) = AsyncStream.makeStream(of: Bool.self)
        Task { [client, thread] in
            await client.close(on: thread)
            await thread.close()
            continuation.yield(true)
        }
        let limit = Task {
            try await Task.sleep(for: Self.closeLimit)
            continuation.yield(false)
        }
        // In a task of its own, since the caller's may be cancelled.
        let hasClosed = await Task { await outcome.first { _ in true } }.value
        limit.cancel()
        if hasClosed != true {
            dependencies.logger.warning(
                "A Kafka client does not close and is abandoned", [.topic: .string(topic.rawValue)])
        }
    }

    /// Between a member's join and its first assignment, where closing the client aborts the process with librdkafka before 2.3.
    private var mayNotClose: Bool {
        KafkaClient.libraryVersion < (2, 3, 0) && state.withLock { $0.hasJoined && !$0.wasAssigned }
    }

    private func noteWhetherJoined() {
        let isMember = client.isMember
        state.withLock { if isMember { $0.hasJoined = true } }
    }

    private func partition(_ held: HeldPartition) -> TopicPartition { TopicPartition(topic, held.partition) }

    // MARK: On the thread

    /// What the thread has not finished.
    private struct Pending {
        var commits = PendingCommits()
        /// Revoked partitions whose workers may still run.
        var revoked: Set<HeldPartition> = []
        /// True from the answer to a revocation until the next assignment, which may be empty.
        var expectsAssignment = false
        /// Since when a named member that has not rejoined has no partitions.
        var idleSince: ContinuousClock.Instant?
        var hasRejoined = false
    }

    private func serve() {
        var pending = Pending()
        do throws(KafkaError) {
            try client.subscribe(to: dependencies.topics.name(of: topic))
            while true {
                let (releases, commits, isLeaving) = state.withLock { state in
                    defer { (state.releases, state.commits) = ([], []) }
                    return (state.releases, state.commits, state.isLeaving)
                }
                for commit in commits + pending.commits.removeDue() { send(commit, &pending) }
                for commit in pending.commits.removeOverdue() {
                    finish(commit, KafkaError(.timedOut, message: "no response from the coordinator"), &pending)
                }
                if !releases.isEmpty { try releaseNow(releases, &pending) }
                if isLeaving, pending.commits.isEmpty { break }
                if let idle = millisecondsToRejoin(pending), idle <= 0 { try rejoin(&pending) }
                let limit = [pending.commits.millisecondsToNext, millisecondsToRejoin(pending)].compactMap(\.self).min()
                guard let event = try client.poll(milliseconds: limit) else { continue }
                try handle(event, &pending)
            }
            try leaveGroup(&pending)
        } catch {
            noteWhetherJoined()
            let cause = explained(error)
            pending.commits.fail(where: { _ in true }, with: { _ in cause })
            // The workers, which are stopped now, may still commit.
            let unsent = state.withLock { state in
                state.end = cause
                defer { state.commits = [] }
                return state.commits
            }
            for commit in unsent { commit.promise.fulfilOnce(.failure(cause)) }
            changed(.failed(cause))
        }
    }

    /// The error that ends the membership, with what an operator can do about it.
    private func explained(_ error: KafkaError) -> ChangeLogError {
        // After a fatal error, calls fail with codes of their own.
        let error = client.fatalError() ?? error
        guard error.code == .fencedInstance, let instance = dependencies.instance else {
            return ChangeLogError(error, needing: .read, group: dependencies.group)
        }
        dependencies.wasFenced()
        return ChangeLogError(
            .other,
            message: """
                another process has joined the group \(dependencies.group) under this one's name \(instance): give each \
                process of a role its own kafka.instance-name; until its restart this one works without a name
                """,
            isRetriable: true)
    }

    private func handle(_ event: borrowing KafkaEvent, _ pending: inout Pending) throws(KafkaError) {
        dependencies.logger.write(event)
        switch event.kind {
        case .rebalance:
            switch event.rebalance() {
            case .assigned(let positions):
                pending.expectsAssignment = false
                state.withLock { $0.wasAssigned = true }
                try client.accept(positions)
                let held = hold(positions)
                if !held.isEmpty { changed(.assigned(held)) }
                if state.withLock({ !$0.held.isEmpty }) {
                    pending.idleSince = nil
                } else if dependencies.instance != nil, !pending.hasRejoined, pending.idleSince == nil {
                    pending.idleSince = .now
                }
            case .revoked(let positions):
                let held = state.withLock { state in positions.compactMap { state.held[Int($0.partition)] } }
                // Each revocation must be answered, or the group waits for this member.
                guard !held.isEmpty else {
                    pending.expectsAssignment = try !client.hasLostAssignment()
                    return try client.release(positions)
                }
                pending.revoked.formUnion(held)
                if try client.hasLostAssignment() {
                    // Other members may have the partitions already: no commit may follow.
                    state.withLock { state in for held in held { state.held[held.partition] = nil } }
                    let lost = Set(held)
                    pending.commits.fail(where: lost.contains, with: { .fenced(partition($0)) })
                }
                changed(.revoked(held))
            case .failed(let error): throw error
            }
        case .commit:
            guard let commit = pending.commits.remove(event.tag) else { return }
            finish(commit, event.commitError, &pending)
        case .error:
            // Waiting does not help: an operator has to change something.
            if let error = event.error, error.isFatal || Self.endsMembership.contains(error.code) {
                throw client.fatalError() ?? error
            }
        default: return
        }
    }

    private func millisecondsToRejoin(_ pending: borrowing Pending) -> Int? {
        pending.idleSince.map { max(0, Int(($0 + dependencies.idleLimit - .now) / .milliseconds(1))) }
    }

    /// Leaves the group and joins it again, which starts a rebalance; once for each session.
    ///
    /// A partition moves in two rebalances, and in between belongs to no member. If the members die then, those that take over their
    /// names get the assignments of that time, and nothing starts the second rebalance. A member without partitions may be one of
    /// these, and interrupts none if it is not.
    private func rejoin(_ pending: inout Pending) throws(KafkaError) {
        pending.idleSince = nil
        pending.hasRejoined = true
        dependencies.logger.info(
            "The member has no partitions and rejoins its group", [.topic: .string(topic.rawValue)])
        try client.unsubscribe()
        let deadline = ContinuousClock.now + .seconds(5)
        // As in ``leaveGroup(_:)``: nothing but the member's id shows that the request to leave was sent.
        while client.isMember, ContinuousClock.now < deadline {
            if let event = try client.poll(milliseconds: 1) { try handle(event, &pending) }
        }
        try client.subscribe(to: dependencies.topics.name(of: topic))
    }

    private static let endsMembership: Set<KafkaErrorCode> = [.groupForbidden, .topicForbidden, .inconsistentGroup]

    private func hold(_ positions: [KafkaPosition]) -> [HeldPartition] {
        state.withLock { state in
            positions.map { position in
                state.lastNumber += 1
                let held = HeldPartition(partition: Int(position.partition), number: state.lastNumber)
                state.held[held.partition] = held
                return held
            }
        }
    }

    private func releaseNow(_ released: [HeldPartition], _ pending: inout Pending) throws(KafkaError) {
        state.withLock { state in
            for held in released where state.held[held.partition] == held { state.held[held.partition] = nil }
        }
        pending.revoked.subtract(released)
        // After a lost assignment the client joins the group again, without an assignment to answer.
        pending.expectsAssignment = try !client.hasLostAssignment()
        try client.release(released.map { dependencies.topics.position(partition($0)) })
    }

    private func send(_ commit: Commit, _ pending: inout Pending) {
        guard state.withLock({ $0.held[commit.held.partition] == commit.held }) else {
            return commit.promise.fulfilOnce(.failure(.fenced(partition(commit.held))))
        }
        let tag = pending.commits.add(commit)
        do throws(KafkaError) {
            let position = dependencies.topics.position(partition(commit.held), offset: commit.offset)
            try client.commit(position, tag: tag)
        } catch {
            if let commit = pending.commits.remove(tag) { finish(commit, error, &pending) }
        }
    }

    /// Completes a commit, or schedules a retry.
    private func finish(_ commit: Commit, _ error: KafkaError?, _ pending: inout Pending) {
        guard let error else { return commit.promise.fulfilOnce(.success(())) }
        // A rebalance may have changed the generation while this member keeps the partition; if it lost the partition, the
        // revocation arrives before the retry.
        if error.isRetriable || error.code == .illegalGeneration, pending.commits.retry(commit) { return }
        commit.promise.fulfilOnce(
            .failure(
                ChangeLogError(
                    error, partition: partition(commit.held), needing: .read, group: dependencies.group)))
    }

    /// Leaves the group: finishes the current rebalance, unsubscribes, releases all partitions, closes.
    ///
    /// In another order, or with an assignment that was not accepted, librdkafka 2.0 may wait forever.
    private func leaveGroup(_ pending: inout Pending) throws(KafkaError) {
        let deadline = ContinuousClock.now + .seconds(5)
        if !pending.revoked.isEmpty { try releaseNow(Array(pending.revoked), &pending) }
        noteWhetherJoined()
        if mayNotClose { pending.expectsAssignment = true }
        while pending.expectsAssignment, ContinuousClock.now < deadline {
            if let event = try client.poll(milliseconds: 1000) { try handleWhileLeaving(event, &pending) }
        }
        try client.unsubscribe()
        while try !client.assignment().isEmpty, ContinuousClock.now < deadline {
            if let event = try client.poll(milliseconds: 1000) { try handleWhileLeaving(event, &pending) }
        }
        // A named member that is closed before librdkafka has sent its request to leave remains in the group until its session
        // has expired. Nothing but the member's id shows that the request was sent.
        while client.isMember, ContinuousClock.now < deadline {
            if let event = try client.poll(milliseconds: 1) { try handleWhileLeaving(event, &pending) }
        }
        while let event = try client.poll(milliseconds: 0) { try handleWhileLeaving(event, &pending) }
        try client.leaveGroup()
    }

    /// Handles a rebalance after the workers have ended.
    private func handleWhileLeaving(_ event: borrowing KafkaEvent, _ pending: inout Pending) throws(KafkaError) {
        dependencies.logger.write(event)
        guard case .rebalance = event.kind else { return }
        switch event.rebalance() {
        case .assigned(let positions):
            pending.expectsAssignment = false
            state.withLock { $0.wasAssigned = true }
            try client.accept(positions)
        case .revoked(let positions): try client.release(positions)
        case .failed(let error): throw error
        }
    }
}
