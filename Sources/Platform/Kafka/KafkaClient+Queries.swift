import CRdkafka

package struct KafkaTopicDescription: Sendable {
    package let partitionCount: Int
    /// The smallest number of replicas of a partition.
    package let replicationFactor: Int
}

/// Queries, which block until the response or the time limit, so they need a dedicated thread.
extension KafkaClient {
    /// - Throws: ``KafkaErrorCode/unknownTopicOrPartition`` or a similar code if the topic does not exist.
    package func describe(topic name: String, milliseconds: Int) throws(KafkaError) -> KafkaTopicDescription {
        try use { (handle) throws(KafkaError) in
            let topic = try topic(name, handle)
            var metadata: UnsafePointer<rd_kafka_metadata_t>?
            let code = rd_kafka_metadata(handle, 0, topic, &metadata, Int32(clamping: milliseconds))
            if let error = KafkaError(code, during: "reading the metadata of \(name)") { throw error }
            guard let metadata else { throw KafkaError(.unknownTopic, message: name) }
            // Copied before it is freed.
            defer { rd_kafka_metadata_destroy(metadata) }
            guard metadata.pointee.topic_cnt == 1 else { throw KafkaError(.unknownTopic, message: name) }
            let found = metadata.pointee.topics[0]
            if let error = KafkaError(found.err, during: name) { throw error }
            let partitions = UnsafeBufferPointer(start: found.partitions, count: Int(found.partition_cnt))
            return KafkaTopicDescription(
                partitionCount: partitions.count,
                replicationFactor: Int(partitions.map(\.replica_cnt).min() ?? 0))
        }
    }

    /// The offset of a partition's oldest record, and the offset that the next record will get.
    package func range(
        topic: String, partition: Int32, milliseconds: Int
    ) throws(KafkaError) -> (start: Int64, end: Int64) {
        // Both are valid timestamps for Kafka. librdkafka's own call for the range ignores its time limit in 2.0 while the
        // broker is unavailable.
        let times = [RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END].map(Int64.init)
        let partitions = partition..<(partition + 1)
        let start = try offsets(topic: topic, partitions: partitions, at: times[0], milliseconds: milliseconds)
        let end = try offsets(topic: topic, partitions: partitions, at: times[1], milliseconds: milliseconds)
        return (start[0].offset, end[0].offset)
    }

    /// The end offset of each of a topic's first partitions.
    package func ends(topic: String, partitionCount: Int, milliseconds: Int) throws(KafkaError) -> [Int64] {
        try offsets(
            topic: topic, partitions: 0..<Int32(partitionCount), at: Int64(RD_KAFKA_OFFSET_END),
            milliseconds: milliseconds
        ).map(\.offset)
    }

    /// The id of the cluster, from the last metadata; `nil` before the first.
    package var clusterID: String? {
        do throws(KafkaError) {
            return try use { handle in
                guard let text = rd_kafka_clusterid(handle, 0) else { return nil }
                defer { rd_kafka_mem_free(handle, text) }
                return String(cString: text)
            }
        } catch {
            // The client was closed.
            return nil
        }
    }

    /// The offset of each partition's first record at or after a time in milliseconds since 1970; negative where there is none.
    package func offsets(
        topic: String, partitions: Range<Int32>, at time: Int64, milliseconds: Int
    ) throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions.map { KafkaPosition(topic, $0, offset: time) })
            let code = rd_kafka_offsets_for_times(handle, list.pointer, Int32(clamping: milliseconds))
            if let error = KafkaError(code, during: "reading offsets of \(topic)") { throw error }
            let positions = list.positions
            if let error = positions.lazy.compactMap(\.error).first { throw error }
            return positions
        }
    }
}
