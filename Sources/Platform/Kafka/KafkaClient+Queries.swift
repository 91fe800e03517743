import CRdkafka

/// What a cluster knows of a topic.
package struct KafkaTopicDescription: Sendable {
    /// How many partitions it has.
    package let partitionCount: Int
    /// The smallest number of copies of a partition.
    package let replicationFactor: Int
}

/// Questions whose calls block until there is an answer or the time is up, so they belong on a thread of their own.
extension KafkaClient {
    /// What the cluster knows of a topic.
    ///
    /// - Throws: ``KafkaErrorCode/unknownTopicOrPartition`` and its like where there is none.
    package func describe(topic name: String, milliseconds: Int) throws(KafkaError) -> KafkaTopicDescription {
        try use { (handle) throws(KafkaError) in
            let topic = try topic(name, handle)
            var answer: UnsafePointer<rd_kafka_metadata_t>?
            let code = rd_kafka_metadata(handle, 0, topic, &answer, Int32(clamping: milliseconds))
            if let error = KafkaError(code, during: "asking for \(name)") { throw error }
            guard let answer else { throw KafkaError(.unknownTopic, message: name) }
            // Copied before it is freed; the counts are those of the arrays.
            defer { rd_kafka_metadata_destroy(answer) }
            guard answer.pointee.topic_cnt == 1 else { throw KafkaError(.unknownTopic, message: name) }
            let found = answer.pointee.topics[0]
            if let error = KafkaError(found.err, during: name) { throw error }
            let partitions = UnsafeBufferPointer(start: found.partitions, count: Int(found.partition_cnt))
            return KafkaTopicDescription(
                partitionCount: partitions.count,
                replicationFactor: Int(partitions.map(\.replica_cnt).min() ?? 0))
        }
    }

    /// The offset of a partition's oldest record, and that of the next.
    package func range(
        topic: String, partition: Int32, milliseconds: Int
    ) throws(KafkaError) -> (start: Int64, end: Int64) {
        // Kafka takes these for moments, too. librdkafka has a call of its own for both, which in 2.0 goes on for ever
        // while the broker is away, whatever the time-out.
        let moments = [RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END].map(Int64.init)
        let partitions = partition..<(partition + 1)
        let start = try offsets(topic: topic, partitions: partitions, at: moments[0], milliseconds: milliseconds)
        let end = try offsets(topic: topic, partitions: partitions, at: moments[1], milliseconds: milliseconds)
        return (start[0].offset, end[0].offset)
    }

    /// The offset of the next record of each of a topic's first partitions.
    package func ends(topic: String, partitionCount: Int, milliseconds: Int) throws(KafkaError) -> [Int64] {
        try offsets(
            topic: topic, partitions: 0..<Int32(partitionCount), at: Int64(RD_KAFKA_OFFSET_END),
            milliseconds: milliseconds
        ).map(\.offset)
    }

    /// The id of the cluster that the brokers are of, as they said last; `nil` before they have said it.
    package var clusterID: String? {
        do throws(KafkaError) {
            return try use { handle in
                guard let text = rd_kafka_clusterid(handle, 0) else { return nil }
                defer { rd_kafka_mem_free(handle, text) }
                return String(cString: text)
            }
        } catch {
            // A client that was closed says nothing more.
            return nil
        }
    }

    /// The offset of each partition's first record at or after a moment; negative where there is none.
    ///
    /// - Parameter time: milliseconds since 1970.
    package func offsets(
        topic: String, partitions: Range<Int32>, at time: Int64, milliseconds: Int
    ) throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions.map { KafkaPosition(topic, $0, offset: time) })
            let code = rd_kafka_offsets_for_times(handle, list.pointer, Int32(clamping: milliseconds))
            if let error = KafkaError(code, during: "asking \(topic) for a moment") { throw error }
            let positions = list.positions
            if let error = positions.lazy.compactMap(\.error).first { throw error }
            return positions
        }
    }
}
