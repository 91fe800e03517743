import ChangeLog

/// Appends records through the log's one writer; a failure of one is a failure of all that follow.
package final class LocalProducer: LogProducer {
    private let queue: WorkQueue
    private let partitions: LogPartitions
    private let maximumRecordSize: Int
    private let state = ProducerState()

    /// Makes a producer.
    package init(queue: WorkQueue, partitions: LogPartitions, maximumRecordSize: Int) {
        self.queue = queue
        self.partitions = partitions
        self.maximumRecordSize = maximumRecordSize
    }

    /// Puts records behind those enqueued before; they become durable together.
    package func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        var places: [Int] = []
        places.reserveCapacity(records.count)
        for record in records {
            guard let place = partitions.place(of: record.destination) else { throw .unknown(record.destination) }
            guard record.key.count + record.value.count <= maximumRecordSize else {
                throw .tooLarge(record, maximum: maximumRecordSize)
            }
            places.append(place)
        }
        let promise = LogPromise<[Int64]>()
        try state.enter()
        do throws(ChangeLogError) {
            try await queue.add(Append(records: records, places: places, producer: state, promise: promise))
        } catch {
            // The log is closed: nothing follows, and what was enqueued before is still written.
            state.leave(failed: false)
            throw error
        }
        return promise.receipt
    }

    /// Refuses further records and waits for what is enqueued.
    package func close() async { await state.close() }
}
