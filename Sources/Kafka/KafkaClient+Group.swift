import CRdkafka

/// What a member of a group does; each call returns quickly.
extension KafkaClient {
    /// Takes part in a group, in a topic's partitions.
    public func subscribe(to topic: String) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList([KafkaPosition(topic, -1)])
            if let error = KafkaError(rd_kafka_subscribe(handle, list.pointer)) { throw error }
        }
    }

    /// Ends the part in a group; the partitions are revoked by an event, if there are some.
    public func unsubscribe() throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            if let error = KafkaError(rd_kafka_unsubscribe(handle)) { throw error }
        }
    }

    /// Accepts partitions, without reading them.
    public func accept(_ partitions: [KafkaPosition]) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            // At the end, so that neither a committed offset is asked for nor anything fetched before the pause.
            let list = TopicPartitionList(
                partitions.map { KafkaPosition($0.topic, $0.partition, offset: Int64(RD_KAFKA_OFFSET_END)) })
            if let error = rd_kafka_incremental_assign(handle, list.pointer) { throw KafkaError(taking: error) }
            if let error = KafkaError(rd_kafka_pause_partitions(handle, list.pointer)) { throw error }
        }
    }

    /// Gives partitions back.
    public func release(_ partitions: [KafkaPosition]) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions)
            if let error = rd_kafka_incremental_unassign(handle, list.pointer) { throw KafkaError(taking: error) }
        }
    }

    /// Whether the group gave this member's partitions away without asking.
    public func hasLostAssignment() throws(KafkaError) -> Bool {
        try use { (handle) throws(KafkaError) in rd_kafka_assignment_lost(handle) != 0 }
    }

    /// The partitions that this member has accepted and not given back.
    public func assignment() throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            var list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
            if let error = KafkaError(rd_kafka_assignment(handle, &list)) { throw error }
            return list.map { TopicPartitionList(taking: $0).positions } ?? []
        }
    }

    /// Stores an offset for the group; an event of the kind `commit` with the tag says what came of it.
    public func commit(_ position: KafkaPosition, tag: UInt) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList([position])
            let code = rd_kafka_commit_queue(
                handle, list.pointer, queue, nil, UnsafeMutableRawPointer(bitPattern: tag))
            if let error = KafkaError(code) { throw error }
        }
    }

    /// Leaves the group; blocks until the coordinator was told, or could not be.
    ///
    /// For a member that has unsubscribed and has no partitions: closed around an assignment, librdkafka 2.0 may hang.
    public func leaveGroup() throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            if let error = KafkaError(rd_kafka_consumer_close(handle)) { throw error }
        }
    }
}
