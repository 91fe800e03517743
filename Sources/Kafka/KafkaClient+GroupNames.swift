import CRdkafka

/// What groups have committed, asked and set from outside of them; calls block until there is an answer.
extension KafkaClient {
    /// The names of all groups that the cluster knows.
    public func groups(milliseconds: Int) throws(KafkaError) -> [String] {
        try use { (handle) throws(KafkaError) in
            let event = try ask(RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, milliseconds, handle) { options, answers in
                rd_kafka_ListConsumerGroups(handle, options, answers)
            }
            let result = rd_kafka_event_ListConsumerGroups_result(event.pointer)
            var count = 0
            // A broker that does not answer may be the one that knows of a group: half an answer is none.
            if let errors = rd_kafka_ListConsumerGroups_result_errors(result, &count), count > 0 {
                throw KafkaError(
                    KafkaErrorCode(rd_kafka_error_code(errors[0])),
                    message: String(cString: rd_kafka_error_string(errors[0])))
            }
            let groups = rd_kafka_ListConsumerGroups_result_valid(result, &count)
            return UnsafeBufferPointer(start: groups, count: count).map {
                String(cString: rd_kafka_ConsumerGroupListing_group_id($0))
            }
        }
    }

    /// What a group has committed for partitions; ``KafkaPosition/none`` where that is nothing.
    public func committed(
        by group: String, _ partitions: [KafkaPosition], milliseconds: Int
    ) throws(KafkaError) -> [KafkaPosition] {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(partitions)
            var question = rd_kafka_ListConsumerGroupOffsets_new(group, list.pointer)
            defer { rd_kafka_ListConsumerGroupOffsets_destroy(question) }
            let event = try ask(
                RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, milliseconds, handle
            ) { options, answers in
                rd_kafka_ListConsumerGroupOffsets(handle, &question, 1, options, answers)
            }
            var count = 0
            let results = rd_kafka_ListConsumerGroupOffsets_result_groups(
                rd_kafka_event_ListConsumerGroupOffsets_result(event.pointer), &count)
            return try Self.positions(of: group, results, count)
        }
    }

    /// Commits offsets for a group that has no members.
    ///
    /// - Throws: ``KafkaErrorCode/unknownMember`` or the like where it has some.
    public func setCommitted(
        by group: String, _ positions: [KafkaPosition], milliseconds: Int
    ) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(positions)
            var request = rd_kafka_AlterConsumerGroupOffsets_new(group, list.pointer)
            defer { rd_kafka_AlterConsumerGroupOffsets_destroy(request) }
            let event = try ask(
                RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, milliseconds, handle
            ) { options, answers in
                rd_kafka_AlterConsumerGroupOffsets(handle, &request, 1, options, answers)
            }
            var count = 0
            let results = rd_kafka_AlterConsumerGroupOffsets_result_groups(
                rd_kafka_event_AlterConsumerGroupOffsets_result(event.pointer), &count)
            _ = try Self.positions(of: group, results, count)
        }
    }

    /// The answer about one group, which lives as long as its event.
    private static func positions(
        of group: String, _ results: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int
    ) throws(KafkaError) -> [KafkaPosition] {
        guard count == 1, let results else { throw KafkaError(.timedOut, message: "no answer about \(group)") }
        if let error = rd_kafka_group_result_error(results[0]) {
            // Belongs to the result.
            throw KafkaError(
                KafkaErrorCode(rd_kafka_error_code(error)),
                message: "\(group): \(String(cString: rd_kafka_error_string(error)))")
        }
        guard let list = rd_kafka_group_result_partitions(results[0]) else { return [] }
        let positions = KafkaPosition.all(in: UnsafeMutablePointer(mutating: list))
        if let error = positions.lazy.compactMap(\.error).first { throw error }
        return positions
    }
}
