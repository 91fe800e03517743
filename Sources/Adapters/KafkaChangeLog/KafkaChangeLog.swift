import ChangeLog
import Kafka
import Observability
import Synchronization
import ThreadExecutor

/// The change log in Kafka, shared by any number of processes.
///
/// Producers are idempotent and gapless with `acks=all`; readers fetch without a group and wait for a signal of new records;
/// groups are Kafka's, with cooperative rebalances. The owner of a log closes it.
package final class KafkaChangeLog: PrunableLog {
    /// The largest record, key and value together.
    package let maximumRecordSize: Int
    /// The number of partitions of `uploads`, `changes`, `ordered` and `dead-letters`.
    package let partitionCount: Int

    private struct State {
        var isClosed = false
        var lastNumber = 0
        /// The open producers, readers and memberships.
        var producers: [Int: KafkaLogProducer] = [:]
        var readers: [Int: KafkaLogReader] = [:]
        var memberships: [Int: KafkaMembership] = [:]
        /// The groups in which another process has this one's instance name.
        var fencedGroups: Set<String> = []
    }

    let configuration: KafkaChangeLogConfiguration
    let topics: TopicNames
    let topicGuard: TopicGuard
    let calls: BlockingCalls
    private let queryService: ClientService
    private let wakeup: KafkaWakeup
    private let fetchClients: FetchClients
    let logger: Logger
    private let state = Mutex(State())
    private let closing = OneTimeTask()

    /// Opens the log, whose topics must exist: ``KafkaTopics`` creates and checks them.
    ///
    /// - Throws: ``ChangeLogError/Code/unknownPartition`` if a topic is missing, ``ChangeLogError/Code/other`` if their numbers of
    ///   partitions differ; a retriable error if no broker responds.
    package init(_ configuration: KafkaChangeLogConfiguration, logger: Logger = .disabled) async throws(ChangeLogError)
    {
        let properties = ClientProperties(configuration: configuration)
        let calls = try await BlockingCalls()
        let queryService: ClientService
        do throws(ChangeLogError) {
            queryService = try ClientService(.producer, properties.queries, name: "weir-kafka-ask", logger: logger)
        } catch {
            await calls.close()
            throw error
        }
        let partitionCount: Int
        let wakeup: KafkaWakeup
        do throws(ChangeLogError) {
            partitionCount = try await KafkaTopics.partitionCount(
                prefix: configuration.topicPrefix, queryService.client, calls)
            do throws(KafkaError) { wakeup = try KafkaWakeup() } catch { throw ChangeLogError(error) }
        } catch {
            let explained = queryService.explaining(error)
            await queryService.close()
            await calls.close()
            throw explained
        }
        self.configuration = configuration
        self.partitionCount = partitionCount
        maximumRecordSize = configuration.maximumRecordSize
        topics = TopicNames(prefix: configuration.topicPrefix, partitionCount: partitionCount)
        topicGuard = TopicGuard(topics, cluster: queryService.client.clusterID)
        self.calls = calls
        self.queryService = queryService
        self.wakeup = wakeup
        self.logger = logger
        fetchClients = FetchClients(
            ClientProperties(configuration: configuration, partitionCount: partitionCount), logger: logger)
    }

    /// The client for queries.
    var client: KafkaClient { queryService.client }

    /// Creates a producer, with a client of its own.
    package func producer() async throws(ChangeLogError) -> KafkaLogProducer {
        let number = try register()
        let producer = try KafkaLogProducer(
            configuration, topics: topics, topicGuard: topicGuard, logger: logger
        ) { [weak self] in
            self?.state.withLock { _ = $0.producers.removeValue(forKey: number) }
        }
        if add({ $0.producers[number] = producer }) { return producer }
        await producer.close()
        throw .closed("the log")
    }

    /// Creates a reader of a partition, which begins at an offset.
    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> KafkaLogReader {
        let range = try await range(of: partition)
        guard offset >= range.start, offset <= range.end else { throw .outOfRange(offset, of: partition, range) }
        let number = try register()
        let reader = KafkaLogReader(
            of: partition,
            .init(
                lease: try fetchClients.lease(partition), clients: fetchClients, wakeup: wakeup, calls: calls,
                acceptsProducersTime: configuration.acceptsProducersTime,
                range: { [weak self] () async throws(ChangeLogError) in
                    guard let self else { throw .closed("the log") }
                    return try await self.range(of: partition)
                },
                hasClosed: { [weak self] in self?.state.withLock { _ = $0.readers.removeValue(forKey: number) } }))
        do throws(KafkaError) {
            try reader.begin(topics.name(of: partition.topic), from: offset)
        } catch {
            await reader.close()
            throw ChangeLogError(error, partition: partition, needing: .read)
        }
        if add({ $0.readers[number] = reader }) { return reader }
        await reader.close()
        throw .closed("the log", partition: partition)
    }

    /// The offsets of a partition's records now.
    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        guard topics.contains(partition) else { throw .unknown(partition) }
        if state.withLock({ $0.isClosed }) { throw .closed("the log", partition: partition) }
        let name = topics.name(of: partition.topic)
        let (start, end) = try await calls.runAtLeader(of: partition) { [client] milliseconds throws(KafkaError) in
            try client.range(topic: name, partition: Int32(partition.partition), milliseconds: milliseconds)
        }
        topicGuard.record(end: end, of: partition)
        return LogRange(start: start, end: end)
    }

    /// Joins a consumer group, whose name in Kafka consists of the topic prefix, the group and the topic.
    ///
    /// With an instance name, one membership of a group may run at a time. If another process joins under the same name, the
    /// brokers remove this one, whose next membership is then without a name: were it to take the name back, the two would
    /// remove each other in turns.
    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> KafkaMembership {
        let number = try register()
        let name = topics.group(group, on: topic)
        let isFenced = state.withLock { $0.fencedGroups.contains(name) }
        let instance = isFenced ? nil : configuration.instanceName
        let properties = ClientProperties(configuration: configuration).member(of: name, instance: instance)
        let offsets = try offsetsClient(of: name)
        do throws(ChangeLogError) {
            try await remember(name, on: topic, offsets.client)
        } catch {
            await offsets.close()
            throw error
        }
        let membership = KafkaMembership(
            .init(
                session: .init(
                    topic: topic, group: name, topics: topics, properties: properties, instance: instance,
                    idleLimit: configuration.sessionTimeout, logger: logger,
                    wasFenced: { [weak self] in self?.state.withLock { _ = $0.fencedGroups.insert(name) } }),
                revocationLimit: configuration.sessionTimeout,
                committed: { [weak self] (partition) async throws(ChangeLogError) in
                    guard let self else { throw .closed("the log") }
                    return try await self.committed(TopicPartition(topic, partition), of: name, offsets.client)
                },
                closeOffsetsClient: { await offsets.close() },
                hasEnded: { [weak self] in self?.state.withLock { _ = $0.memberships.removeValue(forKey: number) } }))
        if add({ $0.memberships[number] = membership }) { return membership }
        await membership.leave()
        throw .closed("the log")
    }

    /// Waits until the brokers have what is enqueued, at most for the configured time, and closes every client.
    ///
    /// Calls of readers, producers and memberships fail with ``ChangeLogError/Code/closed``. Closing again has no effect.
    package func close() async {
        await closing.run { await self.closeOnce() }
    }

    private func closeOnce() async {
        let (producers, readers, memberships) = state.withLock { state in
            state.isClosed = true
            return (Array(state.producers.values), Array(state.readers.values), Array(state.memberships.values))
        }
        let limit = configuration.closeTimeout
        await withTaskGroup(of: Void.self) { group in
            for producer in producers { group.addTask { await producer.close(within: limit, .closed("the log")) } }
            for reader in readers { group.addTask { await reader.close(.closed("the log")) } }
            for membership in memberships { group.addTask { await membership.close() } }
        }
        await fetchClients.close()
        await wakeup.close()
        await queryService.close()
        await calls.close()
    }

    /// Drops what producers have not delivered.
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

    /// Adds an object that is closed with the log; false if the log is closed already.
    private func add(_ body: (inout sending State) -> Void) -> Bool {
        state.withLock { state in
            if state.isClosed { return false }
            body(&state)
            return true
        }
    }
}
