import CRdkafka

/// A partition with an offset, as most questions and answers name one.
package struct KafkaPosition: Sendable, Hashable {
    /// The topic's name.
    package let topic: String
    /// The partition, from 0.
    package let partition: Int32
    /// The offset; ``none`` for none.
    package var offset: Int64
    /// What was stored with a committed offset.
    package var metadata: String
    /// What went wrong with this partition.
    package let error: KafkaError?

    /// No offset.
    package static let none = Int64(RD_KAFKA_OFFSET_INVALID)

    /// Names a position.
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

    /// Copies the positions of a list.
    static func all(in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> [KafkaPosition] {
        // The list has `cnt` elements, which are copied here.
        UnsafeBufferPointer(start: list.pointee.elems, count: Int(list.pointee.cnt)).map { element in
            let metadata = UnsafeRawBufferPointer(start: element.metadata, count: Int(element.metadata_size))
            return KafkaPosition(
                String(cString: element.topic), element.partition, offset: element.offset,
                metadata: String(decoding: metadata, as: UTF8.self), error: KafkaError(element.err))
        }
    }
}

/// librdkafka's list of partitions; freed with its owner.
struct TopicPartitionList: ~Copyable {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    init(_ positions: [KafkaPosition] = []) {
        pointer = rd_kafka_topic_partition_list_new(Int32(positions.count))
        for position in positions {
            let element = rd_kafka_topic_partition_list_add(pointer, position.topic, position.partition)!
            element.pointee.offset = position.offset
            guard !position.metadata.isEmpty else { continue }
            // The list frees it with `free`, which is what rd_kafka_mem_malloc's memory may be given to.
            let bytes = Array(position.metadata.utf8)
            let copy = rd_kafka_mem_malloc(nil, bytes.count)!
            copy.copyMemory(from: bytes, byteCount: bytes.count)
            element.pointee.metadata = copy
            element.pointee.metadata_size = bytes.count
        }
    }

    /// Takes over a list.
    init(taking pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) { self.pointer = pointer }

    deinit { rd_kafka_topic_partition_list_destroy(pointer) }

    var positions: [KafkaPosition] { KafkaPosition.all(in: pointer) }
}
