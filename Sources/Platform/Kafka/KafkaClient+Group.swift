import CRdkafka

/// What a member of a group does; each call returns quickly.
extension KafkaClient {
    /// Takes part in a group, in a topic's partitions.
    package func subscribe(to topic: String) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList([KafkaPosition(topic, -1)])
            if let error = KafkaError(rd_kafka_subscribe(handle, list.pointer)) { throw error }
        }
    }

    /// Ends the part in a group; the partitions are revoked by an event, if there are some.
    package func unsubscribe() throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            if let error = KafkaError(rd_kafka_unsubscribe(handle)) { throw error }
        }
    }

    /// Accepts partitions, without reading them.
    package func accept(_ partitions: [KafkaPosition]) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            // At the end, so that neither a committed offset is asked for nor anything fetched before the pause.
            let list = TopicPartitionList(
                partitions.map { KafkaPosition($0.topic, $0.partition, offset: Int64(RD_KAFKA_OFFSET_END)) })
            if let error = rd_kafka_incremental_assign(handle, list.pointer) { throw KafkaError(taking: error) }
            if let error = KafkaError(rd_kafka_pause_partitions(handle, list.pointer)) { throw error }
        }
    }

    /// Gives partitions back.
    package func release(_ partitions: [KafkaPosition]) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions)
            if let error = rd_kafka_incremental_unassign(handle, list.pointer) { throw KafkaError(taking: error) }
        }
    }

    /// Whether the group gave this member's partitions away without asking.
    package func hasLostAssignment() throws(KafkaError) -> Bool {
        try use { (handle) throws(KafkaError) in rd_kafka_assignment_lost(handle) != 0 }
    }

    /// The partitions that this member has accepted and not given back.
    package func assignment() throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            var list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
            if let error = KafkaError(rd_kafka_assignment(handle, &list)) { throw error }
            return list.map { TopicPartitionList(taking: $0).positions } ?? []
        }
    }

    /// Stores an offset for the group; an event of the kind `commit` with the tag says what came of it.
    package func commit(_ position: KafkaPosition, tag: UInt) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList([position])
            let code = rd_kafka_commit_queue(
                handle, list.pointer, queue, nil, UnsafeMutableRawPointer(bitPattern: tag))
            if let error = KafkaError(code) { throw error }
        }
    }

    /// What the client's group has committed for partitions, ``KafkaPosition/none`` where that is nothing; blocks.
    ///
    /// The client need not take part in the group. librdkafka 2.0 has another call for any group, which ends the process where
    /// the coordinator goes away meanwhile.
    package func committed(
        _ partitions: [KafkaPosition], milliseconds: Int
    ) throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions)
            let code = rd_kafka_committed(handle, list.pointer, Int32(clamping: milliseconds))
            if let error = KafkaError(code, during: "asking what the group has committed") { throw error }
            let positions = list.positions
            if let error = positions.lazy.compactMap(\.error).first { throw error }
            return positions
        }
    }

    /// Stores offsets for the client's group as long as that has no members; blocks.
    ///
    /// - Throws: ``KafkaErrorCode/unknownMember`` or the like where it has some.
    package func setCommitted(_ positions: [KafkaPosition], milliseconds: Int) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(positions)
            let answers: OpaquePointer = rd_kafka_queue_new(handle)
            defer { rd_kafka_queue_destroy(answers) }
            let code = rd_kafka_commit_queue(handle, list.pointer, answers, nil, nil)
            if let error = KafkaError(code, during: "committing for the group") { throw error }
            guard let pointer = rd_kafka_queue_poll(answers, Int32(clamping: milliseconds)) else {
                throw KafkaError(.timedOut, message: "the coordinator does not answer")
            }
            if let error = KafkaEvent(pointer).commitError { throw error }
        }
    }

    /// Leaves the group; blocks until the coordinator was told, or could not be.
    ///
    /// For a member that has unsubscribed and has no partitions: closed around an assignment, librdkafka 2.0 may hang.
    package func leaveGroup() throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            if let error = KafkaError(rd_kafka_consumer_close(handle)) { throw error }
        }
    }
}
