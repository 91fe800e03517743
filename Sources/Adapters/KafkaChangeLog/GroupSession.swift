import ChangeLog
import Kafka
import Observability
import Synchronization
import ThreadExecutor

/// A member's time in its group: the client, and the thread that serves it.
///
/// The thread polls whatever the workers do, so a member that is busy, paused or retrying stays in its group. It accepts
/// partitions at once and gives them back when their workers have ended.
final class GroupSession: Sendable {
    /// A partition as one worker has it; the same member's next worker has another.
    struct Holding: Sendable, Hashable {
        let partition: Int
        let number: Int
    }

    /// What the member's workers are to do.
    enum Change: Sendable {
        /// Begin.
        case assigned([Holding])
        /// End, and be released.
        case revoked([Holding])
        /// All end: the group cannot go on.
        case failed(ChangeLogError)
    }

    /// A commit that was asked for.
    struct Commit: Sendable {
        let holding: Holding
        let offset: Int64
        let promise: LogPromise<Void>
        let since: ContinuousClock.Instant
    }

    private struct State {
        /// The partitions of this member; a worker may commit until its partition is given back.
        var held: [Int: Holding] = [:]
        var lastNumber = 0
        var commits: [Commit] = []
        var releases: [Holding] = []
        var isLeaving = false
        /// How commits are refused once the thread has ended.
        var ending: ChangeLogError?
    }

    let topic: Topic
    private let group: String
    let topics: LogTopics
    private let client: KafkaClient
    private let thread: DedicatedThread
    private let logger: Logger
    private let changed: @Sendable (Change) -> Void
    private let state = Mutex(State())
    private let serving = Mutex<Task<Void, Never>?>(nil)

    /// Makes the client.
    ///
    /// - Parameter changed: told on the client's thread.
    init(
        topic: Topic, group: String, topics: LogTopics, properties: KafkaProperties, logger: Logger,
        changed: @escaping @Sendable (Change) -> Void
    ) throws(ChangeLogError) {
        self.topic = topic
        self.group = group
        self.topics = topics
        self.logger = logger
        self.changed = changed
        do {
            thread = try DedicatedThread(name: "weir-kafka-grp")
        } catch {
            throw ChangeLogError(.other, message: "\(error)", isRetriable: true)
        }
        do throws(KafkaError) {
            client = try KafkaClient(.consumer, properties, events: .group)
        } catch {
            let thread = thread
            Task { await thread.close() }
            throw ChangeLogError(error)
        }
    }

    /// Takes part in the group.
    func begin() {
        let task = Task { await thread.run { self.serve() } }
        serving.withLock { $0 = task }
    }

    /// Gives back partitions whose workers have ended.
    func release(_ holdings: [Holding]) {
        state.withLock { $0.releases += holdings }
        client.wake()
    }

    /// Stores an offset.
    func commit(_ offset: Int64, of holding: Holding) async throws(ChangeLogError) {
        let promise = LogPromise<Void>()
        let refusal: ChangeLogError? = state.withLock { state in
            if let ending = state.ending { return ending }
            guard state.held[holding.partition] == holding else { return .fenced(partition(holding)) }
            state.commits.append(Commit(holding: holding, offset: offset, promise: promise, since: .now))
            return nil
        }
        if let refusal { throw refusal }
        client.wake()
        try await promise.value()
    }

    /// Leaves the group, when every worker has ended.
    ///
    /// - Parameter error: what commits fail with from then on.
    func leave(_ error: ChangeLogError?) async {
        state.withLock { $0.isLeaving = true }
        client.wake()
        await serving.withLock({ $0 })?.value
        let left = state.withLock { state in
            state.ending = error ?? .fenced(TopicPartition(topic, 0))
            state.held = [:]
            defer { state.commits = [] }
            return state.commits
        }
        for commit in left { commit.promise.fulfil(.failure(error ?? .fenced(partition(commit.holding)))) }
        await end()
    }

    /// How long the client may take to end: it has left the group, and nothing waits for an answer any more.
    private static let endLimit = Duration.seconds(5)

    /// Ends the client, or leaves it behind: where a topic was removed that it was a member for, librdkafka 2.0 waits for ever
    /// for threads of its own.
    private func end() async {
        let (outcome, told) = AsyncStream.makeStream(of: Bool.self)
        Task { [client, thread] in
            await client.close(on: thread)
            await thread.close()
            told.yield(true)
        }
        let limit = Task {
            try await Task.sleep(for: Self.endLimit)
            told.yield(false)
        }
        // Whoever waits may have been cancelled.
        let hasEnded = await Task { await outcome.first { _ in true } }.value
        limit.cancel()
        if hasEnded != true {
            logger.warning("A client of Kafka does not end and is left behind", [.topic: .string(topic.rawValue)])
        }
    }

    private func partition(_ holding: Holding) -> TopicPartition { TopicPartition(topic, holding.partition) }

    // MARK: On the thread

    /// What only the thread knows.
    private struct Standing {
        var commits = CommitsInFlight()
        /// Partitions that are to be given back, whose workers may still run.
        var revoked: Set<Holding> = []
        /// Whether a revocation was answered; an assignment follows it, perhaps an empty one.
        var owesAssignment = false
    }

    private func serve() {
        var standing = Standing()
        do throws(KafkaError) {
            try client.subscribe(to: topics.name(of: topic))
            while true {
                let (releases, commits, isLeaving) = state.withLock { state in
                    defer { (state.releases, state.commits) = ([], []) }
                    return (state.releases, state.commits, state.isLeaving)
                }
                for commit in commits + standing.commits.due() { send(commit, &standing) }
                for commit in standing.commits.overdue() {
                    settle(commit, KafkaError(.timedOut, message: "the coordinator does not answer"), &standing)
                }
                if !releases.isEmpty { try giveBack(releases, &standing) }
                if isLeaving, standing.commits.isEmpty { break }
                guard let event = try client.poll(milliseconds: standing.commits.millisecondsToNext) else { continue }
                try handle(event, &standing)
            }
            try leave(&standing)
        } catch {
            let cause = ChangeLogError(error, needing: .read, group: group)
            standing.commits.fail(where: { _ in true }, with: { _ in cause })
            changed(.failed(cause))
        }
    }

    private func handle(_ event: borrowing KafkaEvent, _ standing: inout Standing) throws(KafkaError) {
        logger.write(event)
        switch event.kind {
        case .rebalance:
            switch event.rebalance() {
            case .assigned(let positions):
                standing.owesAssignment = false
                try client.accept(positions)
                let holdings = hold(positions)
                if !holdings.isEmpty { changed(.assigned(holdings)) }
            case .revoked(let positions):
                let holdings = state.withLock { state in positions.compactMap { state.held[Int($0.partition)] } }
                standing.revoked.formUnion(holdings)
                if try client.hasLostAssignment() {
                    // Others may have them already: nothing may be committed, and nothing will be.
                    state.withLock { state in for holding in holdings { state.held[holding.partition] = nil } }
                    let lost = Set(holdings)
                    standing.commits.fail(where: lost.contains, with: { .fenced(partition($0)) })
                }
                changed(.revoked(holdings))
            case .failed(let error): throw error
            }
        case .commit:
            guard let commit = standing.commits.answered(event.tag) else { return }
            settle(commit, event.commitError, &standing)
        case .error:
            // Waiting would not help: somebody has to allow it.
            if let error = event.error, error.isFatal || Self.endsMembership.contains(error.code) { throw error }
        default: return
        }
    }

    private static let endsMembership: Set<KafkaErrorCode> = [.groupForbidden, .topicForbidden, .inconsistentGroup]

    private func hold(_ positions: [KafkaPosition]) -> [Holding] {
        state.withLock { state in
            positions.map { position in
                state.lastNumber += 1
                let holding = Holding(partition: Int(position.partition), number: state.lastNumber)
                state.held[holding.partition] = holding
                return holding
            }
        }
    }

    private func giveBack(_ holdings: [Holding], _ standing: inout Standing) throws(KafkaError) {
        state.withLock { state in
            for holding in holdings where state.held[holding.partition] == holding {
                state.held[holding.partition] = nil
            }
        }
        standing.revoked.subtract(holdings)
        // An assignment that was lost is followed by joining anew.
        standing.owesAssignment = try !client.hasLostAssignment()
        try client.release(holdings.map { topics.position(partition($0)) })
    }

    private func send(_ commit: Commit, _ standing: inout Standing) {
        guard state.withLock({ $0.held[commit.holding.partition] == commit.holding }) else {
            return commit.promise.fulfil(.failure(.fenced(partition(commit.holding))))
        }
        let tag = standing.commits.add(commit)
        do throws(KafkaError) {
            try client.commit(topics.position(partition(commit.holding), offset: commit.offset), tag: tag)
        } catch {
            if let commit = standing.commits.answered(tag) { settle(commit, error, &standing) }
        }
    }

    private func settle(_ commit: Commit, _ error: KafkaError?, _ standing: inout Standing) {
        guard let error else { return commit.promise.fulfil(.success(())) }
        // The group may have moved on while this member keeps the partition; if not, it is told so before the next try.
        if error.isRetriable || error.code == .illegalGeneration, standing.commits.retry(commit) { return }
        commit.promise.fulfil(
            .failure(ChangeLogError(error, partition: partition(commit.holding), needing: .read, group: group)))
    }

    /// Leaves the group in the order that librdkafka 2.0 survives: no rebalance half answered, unsubscribe, give everything
    /// back, close.
    private func leave(_ standing: inout Standing) throws(KafkaError) {
        let deadline = ContinuousClock.now + .seconds(5)
        if !standing.revoked.isEmpty { try giveBack(Array(standing.revoked), &standing) }
        while standing.owesAssignment, ContinuousClock.now < deadline {
            if let event = try client.poll(milliseconds: 1000) { try answer(event, &standing) }
        }
        try client.unsubscribe()
        while try !client.assignment().isEmpty, ContinuousClock.now < deadline {
            if let event = try client.poll(milliseconds: 1000) { try answer(event, &standing) }
        }
        while let event = try client.poll(milliseconds: 0) { try answer(event, &standing) }
        try client.leaveGroup()
    }

    /// Answers a rebalance without workers.
    private func answer(_ event: borrowing KafkaEvent, _ standing: inout Standing) throws(KafkaError) {
        logger.write(event)
        guard case .rebalance = event.kind else { return }
        switch event.rebalance() {
        case .assigned(let positions):
            standing.owesAssignment = false
            try client.accept(positions)
        case .revoked(let positions): try client.release(positions)
        case .failed(let error): throw error
        }
    }
}
