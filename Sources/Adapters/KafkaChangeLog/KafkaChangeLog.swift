import ChangeLog
import Kafka
import Observability
import Synchronization
import ThreadExecutor

/// The log in Kafka, for any number of processes.
///
/// Producers are idempotent and gapless with `acks=all`; readers fetch without a group and are rung when there is more; groups
/// are Kafka's, with cooperative rebalances. Whoever opens it closes it.
package final class KafkaChangeLog: PrunableLog {
    /// The largest record, key and value together.
    package let maximumRecordSize: Int
    /// How many partitions `uploads`, `changes`, `ordered` and `dead-letters` have.
    package let partitionCount: Int

    private struct State {
        var isClosed = false
        var lastNumber = 0
        /// What the log handed out and nobody closed yet.
        var producers: [Int: KafkaLogProducer] = [:]
        var readers: [Int: KafkaLogReader] = [:]
        var memberships: [Int: KafkaMembership] = [:]
    }

    let configuration: KafkaChangeLogConfiguration
    let topics: LogTopics
    let topicGuard: TopicGuard
    let calls: BlockingCalls
    private let questions: ClientService
    private let bell: KafkaWakeup
    private let fetchClients: FetchClients
    let logger: Logger
    private let state = Mutex(State())
    private let closing = Mutex<Task<Void, Never>?>(nil)

    /// Opens the log, whose topics must exist: ``KafkaTopics`` makes and checks them.
    ///
    /// - Throws: ``ChangeLogError/Code/unknownPartition`` where a topic is missing, ``ChangeLogError/Code/other`` where their
    ///   partitions differ; retriable where no broker answers.
    package init(_ configuration: KafkaChangeLogConfiguration, logger: Logger = .disabled) async throws(ChangeLogError)
    {
        let properties = ClientProperties(configuration: configuration)
        let calls = try await BlockingCalls()
        let questions: ClientService
        do throws(ChangeLogError) {
            questions = try ClientService(.producer, properties.questions, name: "weir-kafka-ask", logger: logger)
        } catch {
            await calls.close()
            throw error
        }
        let partitionCount: Int
        let bell: KafkaWakeup
        do throws(ChangeLogError) {
            partitionCount = try await KafkaTopics.partitionCount(
                prefix: configuration.topicPrefix, questions.client, calls)
            do throws(KafkaError) { bell = try KafkaWakeup() } catch { throw ChangeLogError(error) }
        } catch {
            let explained = questions.explaining(error)
            await questions.close()
            await calls.close()
            throw explained
        }
        self.configuration = configuration
        self.partitionCount = partitionCount
        maximumRecordSize = configuration.maximumRecordSize
        topics = LogTopics(prefix: configuration.topicPrefix, partitionCount: partitionCount)
        topicGuard = TopicGuard(topics, cluster: questions.client.clusterID)
        self.calls = calls
        self.questions = questions
        self.bell = bell
        self.logger = logger
        fetchClients = FetchClients(
            ClientProperties(configuration: configuration, partitionCount: partitionCount), logger: logger)
    }

    /// The client that asks questions.
    var client: KafkaClient { questions.client }

    /// Makes a producer, with a client of its own.
    package func producer() async throws(ChangeLogError) -> KafkaLogProducer {
        let number = try register()
        let producer = try KafkaLogProducer(
            configuration, topics: topics, topicGuard: topicGuard, logger: logger
        ) { [weak self] in
            self?.state.withLock { _ = $0.producers.removeValue(forKey: number) }
        }
        if keep({ $0.producers[number] = producer }) { return producer }
        await producer.close()
        throw .closed("the log")
    }

    /// Reads a partition from an offset on.
    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> KafkaLogReader {
        let range = try await range(of: partition)
        guard offset >= range.start, offset <= range.end else { throw .outOfRange(offset, of: partition, range) }
        let number = try register()
        let reader = KafkaLogReader(
            of: partition, place: try fetchClients.take(partition), clients: fetchClients, bell: bell, calls: calls,
            isTakingProducersTime: configuration.acceptsProducersTime
        ) { [weak self] () async throws(ChangeLogError) in
            guard let self else { throw .closed("the log") }
            return try await self.range(of: partition)
        } hasClosed: { [weak self] in
            self?.state.withLock { _ = $0.readers.removeValue(forKey: number) }
        }
        do throws(KafkaError) {
            try reader.begin(topics.name(of: partition.topic), from: offset)
        } catch {
            await reader.close()
            throw ChangeLogError(error, partition: partition, needing: .read)
        }
        if keep({ $0.readers[number] = reader }) { return reader }
        await reader.close()
        throw .closed("the log", partition: partition)
    }

    /// The offsets that a partition holds now.
    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        guard topics.holds(partition) else { throw .unknown(partition) }
        if state.withLock({ $0.isClosed }) { throw .closed("the log", partition: partition) }
        let name = topics.name(of: partition.topic)
        let (start, end) = try await calls.run(partition) { [client] () throws(KafkaError) in
            try client.range(
                topic: name, partition: Int32(partition.partition), milliseconds: BlockingCalls.limit)
        }
        topicGuard.note(partition, end: end)
        return LogRange(start: start, end: end)
    }

    /// Joins a group of Kafka, named after the group and the topic.
    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> KafkaMembership {
        let number = try register()
        let name = topics.group(group, on: topic)
        let properties = ClientProperties(configuration: configuration).member(of: name)
        let clerk = try clerk(of: name)
        do throws(ChangeLogError) {
            try await remember(name, on: topic, clerk.client)
        } catch {
            await clerk.close()
            throw error
        }
        let membership = KafkaMembership { [topics, logger] (changed) throws(ChangeLogError) in
            try GroupSession(
                topic: topic, group: name, topics: topics, properties: properties, logger: logger, changed: changed)
        } committed: { [weak self] (partition) async throws(ChangeLogError) in
            guard let self else { throw .closed("the log") }
            return try await self.committed(TopicPartition(topic, partition), of: name, clerk.client)
        } close: {
            await clerk.close()
        } hasEnded: { [weak self] in
            self?.state.withLock { _ = $0.memberships.removeValue(forKey: number) }
        }
        if keep({ $0.memberships[number] = membership }) { return membership }
        await membership.leave()
        throw .closed("the log")
    }

    /// Waits for the brokers to take what is enqueued, for as long as the configuration says, and ends every client.
    ///
    /// Readers, producers and members of groups end with ``ChangeLogError/Code/closed``. Closing again is harmless.
    package func close() async {
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let begun = Task { await closeOnce() }
            closing = begun
            return begun
        }
        await closing.value
    }

    private func closeOnce() async {
        let (producers, readers, memberships) = state.withLock { state in
            state.isClosed = true
            return (Array(state.producers.values), Array(state.readers.values), Array(state.memberships.values))
        }
        let limit = configuration.closeTimeout
        await withTaskGroup(of: Void.self) { group in
            for producer in producers { group.addTask { await producer.close(within: limit) } }
            for reader in readers { group.addTask { await reader.close(.closed("the log")) } }
            for membership in memberships { group.addTask { await membership.close() } }
        }
        await fetchClients.close()
        await bell.close()
        await questions.close()
        await calls.close()
    }

    /// Gives up what producers have not delivered.
    func abandonProducers(_ error: ChangeLogError) {
        for producer in state.withLock({ Array($0.producers.values) }) { producer.abandon(error) }
    }

    private func register() throws(ChangeLogError) -> Int {
        let number: Int? = state.withLock { state in
            if state.isClosed { return nil }
            state.lastNumber += 1
            return state.lastNumber
        }
        guard let number else { throw .closed("the log") }
        return number
    }

    /// Keeps something to be closed with the log, unless that is closed.
    private func keep(_ body: (inout sending State) -> Void) -> Bool {
        state.withLock { state in
            if state.isClosed { return false }
            body(&state)
            return true
        }
    }
}
