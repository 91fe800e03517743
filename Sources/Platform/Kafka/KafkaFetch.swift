import CRdkafka
import Synchronization

/// A message as a consumer gets it; freed with its owner.
package struct KafkaMessage: ~Copyable {
    private let pointer: UnsafeMutablePointer<rd_kafka_message_t>

    init(_ pointer: UnsafeMutablePointer<rd_kafka_message_t>) { self.pointer = pointer }

    deinit { rd_kafka_message_destroy(pointer) }

    /// What went wrong, where this stands for an error and not for a message.
    package var error: KafkaError? {
        let code = pointer.pointee.err
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let words = rd_kafka_message_errstr(pointer).map { String(cString: $0) } ?? ""
        return KafkaError(KafkaErrorCode(code), message: words)
    }

    /// The place in the partition.
    package var offset: Int64 { pointer.pointee.offset }

    /// Milliseconds since 1970, and whether the log itself gave them.
    package var time: (milliseconds: Int64, isLogAppendTime: Bool) {
        var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let time = rd_kafka_message_timestamp(pointer, &kind)
        return (time, kind == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
    }

    /// The key; empty where there is none.
    package var key: [UInt8] { Self.copy(pointer.pointee.key, pointer.pointee.key_len) }

    /// The value; empty where there is none.
    package var value: [UInt8] { Self.copy(pointer.pointee.payload, pointer.pointee.len) }

    private static func copy(_ bytes: UnsafeMutableRawPointer?, _ count: Int) -> [UInt8] {
        // librdkafka owns so many bytes there as long as the message lives.
        [UInt8](UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }
}

/// A partition that a client reads without a group.
///
/// Messages are taken without waiting; a ``KafkaWakeup`` tells when there are some again. ``stop()`` ends it.
package final class KafkaFetch: Sendable {
    private let client: KafkaClient
    private let topic: SendablePointer
    private let name: String
    private let partition: Int32
    /// `nil` once it was stopped.
    private let queue: Mutex<SendablePointer?>

    /// Begins to read at an offset; a client reads a partition once at a time.
    package init(
        _ client: KafkaClient, topic topicName: String, partition: Int32, from offset: Int64, bell: KafkaWakeup,
        ring: KafkaWakeup.Number
    ) throws(KafkaError) {
        let (topic, queue) = try client.use { (handle) throws(KafkaError) in
            let topic = try client.topic(topicName, handle)
            let queue: OpaquePointer = rd_kafka_queue_new(handle)
            bell.attach(ring, to: queue)
            guard rd_kafka_consume_start_queue(topic, partition, offset, queue) == 0 else {
                let error = KafkaError(rd_kafka_last_error(), during: "reading a partition")
                rd_kafka_queue_destroy(queue)
                throw error ?? KafkaError(.unknownPartition, message: "the partition cannot be read")
            }
            return (SendablePointer(pointer: topic), SendablePointer(pointer: queue))
        }
        self.client = client
        name = topicName
        self.topic = topic
        self.partition = partition
        self.queue = Mutex(queue)
    }

    deinit { assert(queue.withLock { $0 == nil }, "the reading of a partition is stopped by whoever began it") }

    /// Takes messages that are here until the body has enough; returns at once.
    ///
    /// - Parameter body: gets each message, and says whether it wants another.
    package func take(_ body: (consuming KafkaMessage) -> Bool) {
        queue.withLock { queue in
            guard let queue = queue?.pointer else { return }
            while let message = rd_kafka_consume_queue(queue, 0) {
                if !body(KafkaMessage(message)) { return }
            }
        }
    }

    /// Has the client fetch on at once, when much was taken from a full queue; blocks until the broker answers.
    ///
    /// librdkafka 2.0 looks for room in a queue that was full once a second. A question to the same broker wakes it.
    package func nudge(milliseconds: Int) throws(KafkaError) {
        _ = try client.offsets(
            topic: name, partitions: partition..<(partition + 1), at: Int64(RD_KAFKA_OFFSET_END),
            milliseconds: milliseconds)
    }

    /// Ends the reading and drops what was fetched; blocks until librdkafka has let go of the partition.
    package func stop() {
        let queue = queue.withLock { queue in
            defer { queue = nil }
            return queue
        }
        guard let queue else { return }
        do throws(KafkaError) {
            try client.use { _ in
                // Fails only for a partition that is not read, which leaves nothing to do.
                _ = rd_kafka_consume_stop(topic.pointer, partition)
            }
        } catch {
            assertionFailure("a client is closed after what reads with it: \(error)")
        }
        rd_kafka_queue_io_event_enable(queue.pointer, -1, nil, 0)
        rd_kafka_queue_destroy(queue.pointer)
    }
}
