import ChangeLog
import Kafka
import Observability
import Synchronization

/// Appends records through an idempotent, gapless producer of its own.
///
/// Once a record fails the client is discarded with its queue. Of what is behind that record nothing gets into its partition;
/// what brokers had taken of other partitions stays there.
package final class KafkaLogProducer: LogProducer {
    private let topics: LogTopics
    private let topicGuard: TopicGuard
    private let maximumRecordSize: Int
    private let service: ClientService
    private let line: ProducerQueue
    private let hasClosed: @Sendable () -> Void
    private let closing = Mutex<Task<Void, Never>?>(nil)

    /// Starts a producer.
    ///
    /// - Parameter hasClosed: told when its client has ended.
    init(
        _ configuration: KafkaChangeLogConfiguration, topics: LogTopics, topicGuard: TopicGuard, logger: Logger,
        hasClosed: @escaping @Sendable () -> Void
    ) throws(ChangeLogError) {
        self.topics = topics
        self.topicGuard = topicGuard
        self.hasClosed = hasClosed
        maximumRecordSize = configuration.maximumRecordSize
        let line = ProducerQueue(maximumBytes: configuration.queueBytes)
        self.line = line
        service = try ClientService(
            .producer, ClientProperties(configuration: configuration).producer, events: .deliveries,
            name: "weir-kafka-out", logger: logger
        ) { line.handle($0) }
        line.attach(service.client)
    }

    /// Puts records behind those enqueued before.
    package func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        for record in records {
            guard topics.holds(record.destination) else { throw .unknown(record.destination) }
            guard record.key.count + record.value.count <= maximumRecordSize else {
                throw .tooLarge(record, maximum: maximumRecordSize)
            }
        }
        let size = records.reduce(0) { $0 + $1.size }
        try await line.takeTurn(size: size)
        // No brokers would report of it.
        if records.isEmpty { return line.skip().receipt }
        let ticket: TopicGuard.Ticket
        do throws(ChangeLogError) {
            ticket = try topicGuard.admit(records, cluster: service.client.clusterID)
        } catch {
            line.skip()
            throw error
        }
        let receipt = line.enqueue(records, size: size, topics).receipt
        return AppendReceipt { [topicGuard, client = service.client] in
            do throws(ChangeLogError) {
                let offsets = try await receipt.offsets()
                try topicGuard.confirm(offsets, ticket, cluster: client.clusterID)
                return .success(offsets)
            } catch {
                return .failure(error)
            }
        }
    }

    /// Refuses further records and waits for what is enqueued.
    package func close() async { await close(.closed("the producer"), isRefusingWaiting: false) }

    /// Gives up what is not delivered: it might come to another log yet.
    func abandon(_ error: ChangeLogError) { line.abandon(error) }

    /// Closes the producer with its log.
    ///
    /// - Parameter limit: how long to wait for the brokers.
    func close(within limit: Duration) async {
        let error = ChangeLogError.closed("the log")
        let giveUp = Task {
            try await Task.sleep(for: limit)
            line.abandon(error)
        }
        await close(error, isRefusingWaiting: true)
        giveUp.cancel()
    }

    private func close(_ error: ChangeLogError, isRefusingWaiting: Bool) async {
        line.close(error, isRefusingWaiting: isRefusingWaiting)
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let begun = Task {
                await line.waitUntilIdle()
                await service.close()
                hasClosed()
            }
            closing = begun
            return begun
        }
        await closing.value
    }
}

/// The line of a producer's appends with the client that delivers them.
private final class ProducerQueue: Sendable {
    private let line: Mutex<AppendQueue>
    /// Set before the first append.
    private let client = Mutex<KafkaClient?>(nil)

    init(maximumBytes: Int) { line = Mutex(AppendQueue(maximumBytes: maximumBytes)) }

    func attach(_ client: KafkaClient) { self.client.withLock { $0 = client } }

    /// Waits for the turn to enqueue.
    func takeTurn(size: Int) async throws(ChangeLogError) {
        let result: Result<Bool, ChangeLogError> = line.withLock { line in
            Result { () throws(ChangeLogError) in try line.takeTurn(size: size) }
        }
        if try result.get() { return }
        let refusal = await withCheckedContinuation { turn in
            line.withLock { $0.wait(turn, size: size) }.perform(purge: purge)
        }
        if let refusal { throw refusal }
    }

    /// Enqueues records and gives the turn on.
    func enqueue(_ records: [NewRecord], size: Int, _ topics: LogTopics) -> LogPromise<[Int64]> {
        let promise = LogPromise<[Int64]>()
        let firstTag = line.withLock { $0.begin(records, size: size, promise) }
        let messages = records.lazy.map { record in
            KafkaRecord(
                topic: topics.name(of: record.destination.topic), partition: Int32(record.destination.partition),
                key: record.key, value: record.value)
        }
        guard let client = client.withLock({ $0 }) else { preconditionFailure("a producer has its client") }
        let (count, error) = client.produce(messages, firstTag: firstTag)
        line.withLock { $0.end(firstTag: firstTag, count: count, error: error) }.perform(purge: purge)
        return promise
    }

    /// Enqueues nothing and gives the turn on.
    @discardableResult
    func skip() -> LogPromise<[Int64]> {
        let promise = LogPromise<[Int64]>()
        line.withLock { $0.skipTurn() }.perform(purge: purge)
        promise.fulfil(.success([]))
        return promise
    }

    /// Takes what the client reports.
    func handle(_ event: borrowing KafkaEvent) {
        switch event.kind {
        case .deliveries:
            let deliveries = event.deliveries()
            line.withLock { $0.note(deliveries) }.perform(purge: purge)
        case .error:
            guard let error = event.error, error.isFatal else { return }
            let cause = client.withLock { $0 }?.fatalError() ?? error
            line.withLock { $0.end(cause) }.perform(purge: purge)
        default: return
        }
    }

    func close(_ error: ChangeLogError, isRefusingWaiting: Bool) {
        line.withLock { $0.close(error, isRefusingWaiting: isRefusingWaiting) }.perform(purge: purge)
    }

    func abandon(_ error: ChangeLogError) { line.withLock { $0.abandon(error) }.perform(purge: purge) }

    func waitUntilIdle() async {
        await withCheckedContinuation { closer in
            if line.withLock({ $0.waitUntilIdle(closer) }) { closer.resume() }
        }
    }

    private func purge() { client.withLock { $0 }?.purge() }
}
