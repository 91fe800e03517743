import CRdkafka

package struct KafkaNewTopic: Sendable {
    package let name: String
    package let partitionCount: Int
    /// `nil` for the cluster's default.
    package let replicationFactor: Int?
    package let settings: [(name: String, value: String)]

    package init(
        name: String, partitionCount: Int, replicationFactor: Int?, settings: [(name: String, value: String)]
    ) {
        self.name = name
        self.partitionCount = partitionCount
        self.replicationFactor = replicationFactor
        self.settings = settings
    }
}

/// Requests of the admin API; the calls block until the response or the time limit.
extension KafkaClient {
    /// - Returns: the topics that were not created, each with the error.
    package func create(
        _ topics: [KafkaNewTopic], milliseconds: Int
    ) throws(KafkaError) -> [(name: String, error: KafkaError)] {
        try use { (handle) throws(KafkaError) in
            var new: [OpaquePointer?] = []
            defer { for topic in new { rd_kafka_NewTopic_destroy(topic) } }
            for topic in topics {
                let (created, text) = withErrorText {
                    rd_kafka_NewTopic_new(
                        topic.name, Int32(clamping: topic.partitionCount),
                        topic.replicationFactor.map { Int32(clamping: $0) } ?? -1, $0, $1)
                }
                guard let created else { throw KafkaError(.invalidArgument, message: "\(topic.name): \(text)") }
                new.append(created)
                for setting in topic.settings {
                    let code = rd_kafka_NewTopic_set_config(created, setting.name, setting.value)
                    if let error = KafkaError(code, during: setting.name) { throw error }
                }
            }
            let event = try request(RD_KAFKA_ADMIN_OP_CREATETOPICS, milliseconds, handle) { options, responses in
                rd_kafka_CreateTopics(handle, &new, new.count, options, responses)
            }
            var count = 0
            let results = rd_kafka_CreateTopics_result_topics(
                rd_kafka_event_CreateTopics_result(event.pointer), &count)
            return Self.failures(results, count)
        }
    }

    /// Deletes topics; for tests and benchmarks.
    ///
    /// - Returns: the topics that were not deleted, each with the error.
    package func delete(
        topics names: [String], milliseconds: Int
    ) throws(KafkaError) -> [(name: String, error: KafkaError)] {
        try use { (handle) throws(KafkaError) in
            var topics = names.map { Optional(rd_kafka_DeleteTopic_new($0)!) }
            defer { for topic in topics { rd_kafka_DeleteTopic_destroy(topic) } }
            let event = try request(RD_KAFKA_ADMIN_OP_DELETETOPICS, milliseconds, handle) { options, responses in
                rd_kafka_DeleteTopics(handle, &topics, topics.count, options, responses)
            }
            var count = 0
            let results = rd_kafka_DeleteTopics_result_topics(
                rd_kafka_event_DeleteTopics_result(event.pointer), &count)
            return Self.failures(results, count)
        }
    }

    /// The settings of topics, by the topic's name.
    package func settings(
        ofTopics names: [String], milliseconds: Int
    ) throws(KafkaError) -> [String: [String: String]] {
        try use { (handle) throws(KafkaError) in
            var resources = names.map { Optional(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0)!) }
            defer { for resource in resources { rd_kafka_ConfigResource_destroy(resource) } }
            let event = try request(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, milliseconds, handle) { options, responses in
                rd_kafka_DescribeConfigs(handle, &resources, resources.count, options, responses)
            }
            var count = 0
            let results = rd_kafka_DescribeConfigs_result_resources(
                rd_kafka_event_DescribeConfigs_result(event.pointer), &count)
            var settings: [String: [String: String]] = [:]
            for resource in UnsafeBufferPointer(start: results, count: count) {
                let name = String(cString: rd_kafka_ConfigResource_name(resource))
                if let error = Self.error(of: resource, name) { throw error }
                var entries = 0
                let list = rd_kafka_ConfigResource_configs(resource, &entries)
                for entry in UnsafeBufferPointer(start: list, count: entries) {
                    guard let value = rd_kafka_ConfigEntry_value(entry) else { continue }
                    settings[name, default: [:]][String(cString: rd_kafka_ConfigEntry_name(entry))] = String(
                        cString: value)
                }
            }
            return settings
        }
    }

    /// Replaces all settings of a topic; for tests.
    package func replaceSettings(
        ofTopic name: String, _ settings: [(name: String, value: String)], milliseconds: Int
    ) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            var resources = [rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name)]
            defer { rd_kafka_ConfigResource_destroy(resources[0]) }
            for setting in settings {
                let code = rd_kafka_ConfigResource_set_config(resources[0], setting.name, setting.value)
                if let error = KafkaError(code, during: setting.name) { throw error }
            }
            let event = try request(RD_KAFKA_ADMIN_OP_ALTERCONFIGS, milliseconds, handle) { options, responses in
                rd_kafka_AlterConfigs(handle, &resources, 1, options, responses)
            }
            var count = 0
            let results = rd_kafka_AlterConfigs_result_resources(
                rd_kafka_event_AlterConfigs_result(event.pointer), &count)
            for resource in UnsafeBufferPointer(start: results, count: count) {
                if let error = Self.error(of: resource, name) { throw error }
            }
        }
    }

    /// Deletes the records of partitions before the offsets.
    package func removeRecords(before positions: [KafkaPosition], milliseconds: Int) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(positions)
            var removal = rd_kafka_DeleteRecords_new(list.pointer)
            defer { rd_kafka_DeleteRecords_destroy(removal) }
            let event = try request(RD_KAFKA_ADMIN_OP_DELETERECORDS, milliseconds, handle) { options, responses in
                rd_kafka_DeleteRecords(handle, &removal, 1, options, responses)
            }
            let result = rd_kafka_event_DeleteRecords_result(event.pointer)
            guard let offsets = rd_kafka_DeleteRecords_result_offsets(result) else { return }
            // The event owns the list, which is only read.
            let results = KafkaPosition.all(in: UnsafeMutablePointer(mutating: offsets))
            if let error = results.lazy.compactMap(\.error).first { throw error }
        }
    }

    /// The names of all groups that the cluster knows.
    package func groups(milliseconds: Int) throws(KafkaError) -> [String] {
        try use { (handle) throws(KafkaError) in
            let event = try request(RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, milliseconds, handle) { options, responses in
                rd_kafka_ListConsumerGroups(handle, options, responses)
            }
            let result = rd_kafka_event_ListConsumerGroups_result(event.pointer)
            var count = 0
            // A broker that did not respond may know further groups, so a partial result is an error.
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

    /// Sends a request and waits for the event with the result.
    ///
    /// - Parameter send: sends the request, with the options and the queue for the result.
    func request(
        _ operation: rd_kafka_admin_op_t, _ milliseconds: Int, _ handle: OpaquePointer,
        _ send: (_ options: OpaquePointer, _ responses: OpaquePointer) -> Void
    ) throws(KafkaError) -> KafkaEvent {
        let limit = Int32(clamping: milliseconds)
        let options: OpaquePointer = rd_kafka_AdminOptions_new(handle, operation)
        defer { rd_kafka_AdminOptions_destroy(options) }
        let (code, text) = withErrorText {
            rd_kafka_AdminOptions_set_request_timeout(options, limit, $0, $1)
        }
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(KafkaErrorCode(code), message: text) }
        let responses: OpaquePointer = rd_kafka_queue_new(handle)
        defer { rd_kafka_queue_destroy(responses) }
        send(options, responses)
        // librdkafka itself reports a timeout at the limit; the second more is for that.
        guard let pointer = rd_kafka_queue_poll(responses, limit &+ 1000) else {
            throw KafkaError(.timedOut, message: "no response within \(milliseconds) ms")
        }
        let event = KafkaEvent(pointer)
        if let error = event.error { throw error }
        return event
    }

    private static func error(of resource: OpaquePointer?, _ name: String) -> KafkaError? {
        let code = rd_kafka_ConfigResource_error(resource)
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let text = rd_kafka_ConfigResource_error_string(resource).map { String(cString: $0) } ?? ""
        return KafkaError(KafkaErrorCode(code), message: "\(name): \(text)")
    }

    private static func failures(
        _ results: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int
    ) -> [(name: String, error: KafkaError)] {
        UnsafeBufferPointer(start: results, count: count).compactMap { result in
            let code = rd_kafka_topic_result_error(result)
            guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
            let text = rd_kafka_topic_result_error_string(result).map { String(cString: $0) } ?? ""
            return (
                String(cString: rd_kafka_topic_result_name(result)),
                KafkaError(KafkaErrorCode(code), message: text)
            )
        }
    }
}
