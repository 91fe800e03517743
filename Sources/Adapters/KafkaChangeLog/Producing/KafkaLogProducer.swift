import AsyncPrimitives
import ChangeLog
import Kafka
import Observability
import Synchronization

/// Appends records through an idempotent, gapless producer of its own.
///
/// After a record has failed, the producer is of no use: its queue is dropped. No record enqueued after the failed one is written
/// to the same partition; those that brokers had accepted for other partitions stay.
package final class KafkaLogProducer: LogProducer {
    private let topics: TopicNames
    private let topicGuard: TopicGuard
    private let maximumRecordSize: Int
    private let service: ClientService
    private let queue: ProducerQueue
    private let hasClosed: @Sendable () -> Void
    private let closing = OneTimeTask()

    /// - Parameter hasClosed: called when the client has ended.
    init(
        _ configuration: KafkaChangeLogConfiguration, topics: TopicNames, topicGuard: TopicGuard, logger: Logger,
        hasClosed: @escaping @Sendable () -> Void
    ) throws(ChangeLogError) {
        self.topics = topics
        self.topicGuard = topicGuard
        self.hasClosed = hasClosed
        maximumRecordSize = configuration.maximumRecordSize
        let queue = ProducerQueue(maximumBytes: configuration.queueBytes)
        self.queue = queue
        service = try ClientService(
            .producer, ClientProperties(configuration: configuration).producer, events: .deliveries,
            name: "weir-kafka-out", logger: logger
        ) { queue.handle($0) }
        queue.attach(service.client)
    }

    /// Enqueues records after those enqueued before; waits while the queue is full.
    package func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        for record in records {
            guard topics.contains(record.destination) else { throw .unknown(record.destination) }
            guard record.key.count + record.value.count <= maximumRecordSize else {
                throw .tooLarge(record, maximum: maximumRecordSize)
            }
        }
        let slices = queue.slices(of: records)
        try await queue.acquire(size: slices[0].size)
        // Without records there is no delivery report.
        if records.isEmpty {
            queue.release()
            return AppendReceipt { .success([]) }
        }
        let ticket: TopicGuard.Ticket
        do throws(ChangeLogError) {
            ticket = try topicGuard.admit(records, cluster: service.client.clusterID)
        } catch {
            queue.release()
            throw error
        }
        let receipts = await queue.enqueue(slices, topics)
        return AppendReceipt { [topicGuard, client = service.client] in
            do throws(ChangeLogError) {
                let offsets = try await Self.offsets(of: receipts)
                try topicGuard.check(offsets, ticket, cluster: client.clusterID)
                return .success(offsets)
            } catch {
                return .failure(error)
            }
        }
    }

    /// The offsets of all slices; where several fail, the error is the cause and not one that follows from it.
    private static func offsets(of receipts: [AppendReceipt]) async throws(ChangeLogError) -> [Int64] {
        var offsets: [Int64] = []
        var failure: ChangeLogError?
        for receipt in receipts {
            do throws(ChangeLogError) {
                offsets += try await receipt.offsets()
            } catch {
                if failure == nil || failure?.code == .producerFailed { failure = error }
            }
        }
        if let failure { throw failure }
        return offsets
    }

    /// Refuses further records, and waits until the brokers have those that are enqueued.
    package func close() async { await close(.closed("the producer"), isRefusingWaiting: false) }

    /// Drops what is not delivered, since brokers with another log might receive it.
    func abandon(_ error: ChangeLogError) { queue.abandon(error) }

    package func close(within limit: Duration) async {
        let late = ChangeLogError(
            .inputOutput, message: "the brokers did not acknowledge within \(limit)", isRetriable: true)
        await close(within: limit, .closed("the producer"), late: late)
    }

    /// Drops what the brokers do not have within the limit, since the log is closed.
    func close(within limit: Duration, _ error: ChangeLogError) async {
        await close(within: limit, error, late: error)
    }

    /// - Parameters:
    ///   - error: of further appends.
    ///   - late: of what is dropped.
    private func close(within limit: Duration, _ error: ChangeLogError, late: ChangeLogError) async {
        let abandoning = Task {
            try await Task.sleep(for: limit)
            queue.abandon(late)
        }
        await close(error, isRefusingWaiting: true)
        abandoning.cancel()
    }

    private func close(_ error: ChangeLogError, isRefusingWaiting: Bool) async {
        queue.close(error, isRefusingWaiting: isRefusingWaiting)
        await closing.run { [queue, service, hasClosed] in
            await queue.waitUntilIdle()
            await service.close()
            hasClosed()
        }
    }
}

/// The queue of a producer's appends, with the client that delivers them.
private final class ProducerQueue: Sendable {
    struct Slice {
        let records: ArraySlice<NewRecord>
        let size: Int
    }

    private let appends: Mutex<AppendQueue>
    /// Locked while records are handed over, which keeps their order.
    private let unsent = Mutex(UnsentRecords(maximumBytes: 512 << 10))
    private let maximumBytes: Int
    /// Set before the first append.
    private let client = Mutex<KafkaClient?>(nil)

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
        appends = Mutex(AppendQueue(maximumBytes: maximumBytes))
    }

    /// An append as a whole where it fits into the queue, else in slices of at least one record.
    ///
    /// Several slices fit into the queue, so that one is enqueued while the brokers write another.
    func slices(of records: [NewRecord]) -> [Slice] {
        let size = records.reduce(0) { $0 + $1.size }
        if size <= maximumBytes { return [Slice(records: records[...], size: size)] }
        var slices: [Slice] = []
        var (first, bytes) = (0, 0)
        for (index, record) in records.enumerated() {
            if index > first, bytes + record.size > maximumBytes / 4 {
                slices.append(Slice(records: records[first..<index], size: bytes))
                (first, bytes) = (index, 0)
            }
            bytes += record.size
        }
        slices.append(Slice(records: records[first...], size: bytes))
        return slices
    }

    func attach(_ client: KafkaClient) { self.client.withLock { $0 = client } }

    /// Waits until the caller may enqueue; ``enqueue(_:_:)`` or ``release()`` must follow.
    func acquire(size: Int) async throws(ChangeLogError) {
        let result: Result<Bool, ChangeLogError> = appends.withLock { appends in
            Result { () throws(ChangeLogError) in try appends.acquire(size: size) }
        }
        if try result.get() { return }
        let refusal = await withCheckedContinuation { waiter in
            perform(appends.withLock { $0.wait(waiter, size: size) })
        }
        if let refusal { throw refusal }
    }

    /// Enqueues slices one after the other, the first at once, each further one when there is space for it.
    ///
    /// - Returns: a receipt for each slice, up to the first that is refused since the producer has failed meanwhile.
    func enqueue(_ slices: [Slice], _ topics: TopicNames) async -> [AppendReceipt] {
        defer { release() }
        var receipts = [enqueue(slices[0], topics).receipt]
        for slice in slices.dropFirst() {
            let refusal = await withCheckedContinuation { waiter in
                perform(appends.withLock { $0.waitForSlice(waiter, size: slice.size) })
            }
            if let refusal {
                receipts.append(AppendReceipt { .failure(refusal) })
                break
            }
            receipts.append(enqueue(slice, topics).receipt)
        }
        return receipts
    }

    private func enqueue(_ slice: Slice, _ topics: TopicNames) -> LogPromise<[Int64]> {
        let promise = LogPromise<[Int64]>()
        let firstTag = appends.withLock { $0.begin(slice.records, size: slice.size, promise) }
        handOver { $0.add(slice.records, firstTag: firstTag, topics) }
        return promise
    }

    /// Ends the caller's turn.
    func release() { perform(appends.withLock { $0.release() }) }

    /// Gives librdkafka the records that it may have after a change.
    private func handOver(_ change: (inout UnsentRecords) -> [UnsentRecords.Entry]) {
        guard let client = client.withLock({ $0 }) else { preconditionFailure("a producer has its client") }
        let failed: [KafkaEvent.Delivery] = unsent.withLock { unsent in
            let entries = change(&unsent)
            // The producer may have failed since the records were accepted.
            if unsent.isDropped { return Self.reports(of: unsent.drop(), Self.dropped) }
            if entries.isEmpty { return [] }
            let (count, error) = client.produce(entries)
            guard let error else { return [] }
            // None may follow one that was refused.
            return Self.reports(of: entries[count...] + unsent.drop(), error)
        }
        if !failed.isEmpty { perform(appends.withLock { $0.record(failed) }) }
    }

    private func perform(_ actions: AppendQueue.Actions) {
        if actions.isPurging { purge() }
        if !actions.delivered.isEmpty { handOver { $0.remove(actions.delivered) } }
        actions.resume()
    }

    /// Drops every record that is not delivered.
    private func purge() {
        let reports = Self.reports(of: unsent.withLock { $0.drop() }, Self.dropped)
        client.withLock { $0 }?.purge()
        if !reports.isEmpty { perform(appends.withLock { $0.record(reports) }) }
    }

    private static let dropped = KafkaError(.purgedFromQueue, message: "the record was dropped before it was sent")

    private static func reports(
        of entries: some Sequence<UnsentRecords.Entry>, _ error: KafkaError
    ) -> [KafkaEvent.Delivery] {
        entries.map { KafkaEvent.Delivery(tag: $0.tag, offset: -1, error: error) }
    }

    /// Handles the client's delivery reports and fatal errors.
    func handle(_ event: borrowing KafkaEvent) {
        switch event.kind {
        case .deliveries:
            let deliveries = event.deliveries()
            perform(appends.withLock { $0.record(deliveries) })
        case .error:
            guard let error = event.error, error.isFatal else { return }
            let cause = client.withLock { $0 }?.fatalError() ?? error
            perform(appends.withLock { $0.fail(cause) })
        default: return
        }
    }

    func close(_ error: ChangeLogError, isRefusingWaiting: Bool) {
        perform(appends.withLock { $0.close(error, isRefusingWaiting: isRefusingWaiting) })
    }

    func abandon(_ error: ChangeLogError) { perform(appends.withLock { $0.abandon(error) }) }

    func waitUntilIdle() async {
        await withCheckedContinuation { closer in
            if appends.withLock({ $0.waitUntilIdle(closer) }) { closer.resume() }
        }
    }
}
