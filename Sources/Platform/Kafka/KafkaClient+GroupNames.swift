import CRdkafka

/// Groups, asked about from outside of them; calls block until there is an answer.
extension KafkaClient {
    /// The names of all groups that the cluster knows.
    package func groups(milliseconds: Int) throws(KafkaError) -> [String] {
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
}
