import CRdkafka

/// Calls of a consumer group member; they wait for librdkafka's own thread at most, unless they say that they block.
extension KafkaClient {
    /// Joins the client's group for a topic.
    package func subscribe(to topic: String) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList([KafkaPosition(topic, -1)])
            if let error = KafkaError(rd_kafka_subscribe(handle, list.pointer)) { throw error }
        }
    }

    /// Begins to leave the group; the assigned partitions, if any, are revoked by an event.
    package func unsubscribe() throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            if let error = KafkaError(rd_kafka_unsubscribe(handle)) { throw error }
        }
    }

    /// Accepts an assignment, without fetching.
    package func accept(_ partitions: [KafkaPosition]) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            // From the end, so that librdkafka neither reads the committed offset nor fetches before the pause.
            let list = TopicPartitionList(
                partitions.map { KafkaPosition($0.topic, $0.partition, offset: Int64(RD_KAFKA_OFFSET_END)) })
            if let error = rd_kafka_incremental_assign(handle, list.pointer) { throw KafkaError(taking: error) }
            if let error = KafkaError(rd_kafka_pause_partitions(handle, list.pointer)) { throw error }
        }
    }

    package func release(_ partitions: [KafkaPosition]) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions)
            if let error = rd_kafka_incremental_unassign(handle, list.pointer) { throw KafkaError(taking: error) }
        }
    }

    /// Whether the group took the partitions from this member without a revocation.
    package func hasLostAssignment() throws(KafkaError) -> Bool {
        try use { (handle) throws(KafkaError) in rd_kafka_assignment_lost(handle) != 0 }
    }

    package func assignment() throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            var list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
            if let error = KafkaError(rd_kafka_assignment(handle, &list)) { throw error }
            return list.map { TopicPartitionList(taking: $0).positions } ?? []
        }
    }

    /// Whether the client has an id in its group: from its join until it has sent its request to leave.
    package var isMember: Bool {
        do throws(KafkaError) {
            return try use { (handle) throws(KafkaError) in
                guard let id = rd_kafka_memberid(handle) else { return false }
                defer { rd_kafka_mem_free(handle, id) }
                return id.pointee != 0
            }
        } catch {
            // The client was closed.
            return false
        }
    }

    /// Commits an offset; an event of the kind `commit` with the tag reports the result.
    package func commit(_ position: KafkaPosition, tag: UInt) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList([position])
            let code = rd_kafka_commit_queue(
                handle, list.pointer, queue, nil, UnsafeMutableRawPointer(bitPattern: tag))
            if let error = KafkaError(code) { throw error }
        }
    }

    /// The offsets that the client's group has committed, ``KafkaPosition/none`` where there is none; blocks.
    ///
    /// The client need not be a member. librdkafka 2.0 has a call for the offsets of any group, but it crashes the process when the
    /// coordinator becomes unavailable during the call.
    package func committed(
        _ partitions: [KafkaPosition], milliseconds: Int
    ) throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions)
            let code = rd_kafka_committed(handle, list.pointer, Int32(clamping: milliseconds))
            if let error = KafkaError(code, during: "reading the group's committed offsets") { throw error }
            let positions = list.positions
            if let error = positions.lazy.compactMap(\.error).first { throw error }
            return positions
        }
    }

    /// Commits offsets for the client's group while that has no members; blocks.
    ///
    /// - Throws: ``KafkaErrorCode/unknownMember`` or a similar code if the group has members.
    package func setCommitted(_ positions: [KafkaPosition], milliseconds: Int) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(positions)
            let responses: OpaquePointer = rd_kafka_queue_new(handle)
            defer { rd_kafka_queue_destroy(responses) }
            let code = rd_kafka_commit_queue(handle, list.pointer, responses, nil, nil)
            if let error = KafkaError(code, during: "committing for the group") { throw error }
            guard let pointer = rd_kafka_queue_poll(responses, Int32(clamping: milliseconds)) else {
                throw KafkaError(.timedOut, message: "no response from the coordinator")
            }
            if let error = KafkaEvent(pointer).commitError { throw error }
        }
    }

    /// Leaves the group; blocks until the coordinator has responded or the request has failed.
    ///
    /// Only for a member that has unsubscribed and released its partitions: librdkafka 2.0 may hang when it is closed during an
    /// assignment.
    package func leaveGroup() throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            if let error = KafkaError(rd_kafka_consumer_close(handle)) { throw error }
        }
    }
}
