import CRdkafka

/// A partition, in most calls with an offset.
package struct KafkaPosition: Sendable, Hashable {
    package let topic: String
    package let partition: Int32
    /// ``none`` if there is no offset.
    package var offset: Int64
    /// The metadata of a committed offset.
    package var metadata: String
    /// The error of this partition, in the result of a call.
    package let error: KafkaError?

    package static let none = Int64(RD_KAFKA_OFFSET_INVALID)

    package init(_ topic: String, _ partition: Int32, offset: Int64 = KafkaPosition.none, metadata: String = "") {
        self.init(topic, partition, offset: offset, metadata: metadata, error: nil)
    }

    init(_ topic: String, _ partition: Int32, offset: Int64, metadata: String, error: KafkaError?) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.metadata = metadata
        self.error = error
    }

    static func all(in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> [KafkaPosition] {
        UnsafeBufferPointer(start: list.pointee.elems, count: Int(list.pointee.cnt)).map { element in
            let metadata = UnsafeRawBufferPointer(start: element.metadata, count: Int(element.metadata_size))
            return KafkaPosition(
                String(cString: element.topic), element.partition, offset: element.offset,
                metadata: String(decoding: metadata, as: UTF8.self), error: KafkaError(element.err))
        }
    }
}

/// librdkafka's list of partitions, which it frees.
struct TopicPartitionList: ~Copyable {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    init(_ positions: [KafkaPosition] = []) {
        pointer = rd_kafka_topic_partition_list_new(Int32(positions.count))
        for position in positions {
            let element = rd_kafka_topic_partition_list_add(pointer, position.topic, position.partition)!
            element.pointee.offset = position.offset
            guard !position.metadata.isEmpty else { continue }
            // The list frees it with `free`, which is allowed for rd_kafka_mem_malloc.
            let bytes = Array(position.metadata.utf8)
            let copy = rd_kafka_mem_malloc(nil, bytes.count)!
            copy.copyMemory(from: bytes, byteCount: bytes.count)
            element.pointee.metadata = copy
            element.pointee.metadata_size = bytes.count
        }
    }

    init(taking pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) { self.pointer = pointer }

    deinit { rd_kafka_topic_partition_list_destroy(pointer) }

    var positions: [KafkaPosition] { KafkaPosition.all(in: pointer) }
}
