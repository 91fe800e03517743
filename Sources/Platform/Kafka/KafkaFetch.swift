import CRdkafka
import Synchronization

/// A record that was fetched, or an error in its place; frees librdkafka's message.
package struct KafkaMessage: ~Copyable {
    private let pointer: UnsafeMutablePointer<rd_kafka_message_t>

    init(_ pointer: UnsafeMutablePointer<rd_kafka_message_t>) { self.pointer = pointer }

    deinit { rd_kafka_message_destroy(pointer) }

    /// The error, if this is not a record.
    package var error: KafkaError? {
        let code = pointer.pointee.err
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let text = rd_kafka_message_errstr(pointer).map { String(cString: $0) } ?? ""
        return KafkaError(KafkaErrorCode(code), message: text)
    }

    package var offset: Int64 { pointer.pointee.offset }

    /// Milliseconds since 1970, and whether the broker assigned them.
    package var time: (milliseconds: Int64, isLogAppendTime: Bool) {
        var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let time = rd_kafka_message_timestamp(pointer, &kind)
        return (time, kind == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
    }

    /// Empty for a null key.
    package var key: [UInt8] { Self.copy(pointer.pointee.key, pointer.pointee.key_len) }

    /// Empty for a null value.
    package var value: [UInt8] { Self.copy(pointer.pointee.payload, pointer.pointee.len) }

    private static func copy(_ bytes: UnsafeMutableRawPointer?, _ count: Int) -> [UInt8] {
        // librdkafka's bytes are valid as long as the message.
        [UInt8](UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }
}

/// Fetches a partition without a group, until ``stop()``.
///
/// ``take(_:)`` does not block; a ``KafkaWakeup`` signals when the queue is no longer empty.
package final class KafkaFetch: Sendable {
    private let client: KafkaClient
    private let topic: SendablePointer
    private let name: String
    private let partition: Int32
    /// `nil` after ``stop()``.
    private let queue: Mutex<SendablePointer?>

    /// Begins to fetch at an offset; a client can fetch a partition only once at a time.
    package init(
        _ client: KafkaClient, topic topicName: String, partition: Int32, from offset: Int64, wakeup: KafkaWakeup,
        listener: KafkaWakeup.Listener
    ) throws(KafkaError) {
        let (topic, queue) = try client.use { (handle) throws(KafkaError) in
            let topic = try client.topic(topicName, handle)
            let queue: OpaquePointer = rd_kafka_queue_new(handle)
            wakeup.attach(listener, to: queue)
            guard rd_kafka_consume_start_queue(topic, partition, offset, queue) == 0 else {
                let error = KafkaError(rd_kafka_last_error(), during: "fetching \(topicName)[\(partition)]")
                rd_kafka_queue_destroy(queue)
                throw error ?? KafkaError(.unknownPartition, message: "\(topicName)[\(partition)] cannot be fetched")
            }
            return (SendablePointer(pointer: topic), SendablePointer(pointer: queue))
        }
        self.client = client
        name = topicName
        self.topic = topic
        self.partition = partition
        self.queue = Mutex(queue)
    }

    deinit { assert(queue.withLock { $0 == nil }, "the owner of a fetch stops it") }

    /// Takes fetched messages until the queue is empty or the body returns false; does not block.
    package func take(_ body: (consuming KafkaMessage) -> Bool) {
        queue.withLock { queue in
            guard let queue = queue?.pointer else { return }
            while let message = rd_kafka_consume_queue(queue, 0) {
                if !body(KafkaMessage(message)) { return }
            }
        }
    }

    /// Makes the client fetch again at once after messages were taken from a full queue; blocks until the broker responds.
    ///
    /// librdkafka 2.0 checks a full queue only once a second. A request to the same broker makes it check.
    package func nudge(milliseconds: Int) throws(KafkaError) {
        _ = try client.offsets(
            topic: name, partitions: partition..<(partition + 1), at: Int64(RD_KAFKA_OFFSET_END),
            milliseconds: milliseconds)
    }

    /// Stops, and drops the fetched messages; blocks until librdkafka has released the partition.
    package func stop() {
        let queue = queue.withLock { queue in
            defer { queue = nil }
            return queue
        }
        guard let queue else { return }
        do throws(KafkaError) {
            try client.use { _ in
                // Fails only for a partition that is not fetched.
                _ = rd_kafka_consume_stop(topic.pointer, partition)
            }
        } catch {
            assertionFailure("a client is closed after its fetches: \(error)")
        }
        rd_kafka_queue_io_event_enable(queue.pointer, -1, nil, 0)
        rd_kafka_queue_destroy(queue.pointer)
    }
}
