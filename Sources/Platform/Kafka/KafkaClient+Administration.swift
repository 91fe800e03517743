import CRdkafka

/// A topic to make.
package struct KafkaNewTopic: Sendable {
    /// The topic's name.
    package let name: String
    /// How many partitions it gets.
    package let partitionCount: Int
    /// How many copies of each partition; `nil` for the cluster's default.
    package let replicationFactor: Int?
    /// Its settings.
    package let settings: [(name: String, value: String)]

    /// Describes a topic.
    package init(
        name: String, partitionCount: Int, replicationFactor: Int?, settings: [(name: String, value: String)]
    ) {
        self.name = name
        self.partitionCount = partitionCount
        self.replicationFactor = replicationFactor
        self.settings = settings
    }
}

/// Requests of an administrator, whose calls block until there is an answer or the time is up.
extension KafkaClient {
    /// Makes topics.
    ///
    /// - Returns: those that were not made, each with the reason.
    package func create(
        _ topics: [KafkaNewTopic], milliseconds: Int
    ) throws(KafkaError) -> [(name: String, error: KafkaError)] {
        try use { (handle) throws(KafkaError) in
            var made: [OpaquePointer?] = []
            defer { for topic in made { rd_kafka_NewTopic_destroy(topic) } }
            for topic in topics {
                let (new, words) = withErrorText {
                    rd_kafka_NewTopic_new(
                        topic.name, Int32(clamping: topic.partitionCount),
                        topic.replicationFactor.map { Int32(clamping: $0) } ?? -1, $0, $1)
                }
                guard let new else { throw KafkaError(.invalidArgument, message: "\(topic.name): \(words)") }
                made.append(new)
                for setting in topic.settings {
                    let code = rd_kafka_NewTopic_set_config(new, setting.name, setting.value)
                    if let error = KafkaError(code, during: setting.name) { throw error }
                }
            }
            let event = try ask(RD_KAFKA_ADMIN_OP_CREATETOPICS, milliseconds, handle) { options, answers in
                rd_kafka_CreateTopics(handle, &made, made.count, options, answers)
            }
            var count = 0
            let results = rd_kafka_CreateTopics_result_topics(
                rd_kafka_event_CreateTopics_result(event.pointer), &count)
            return Self.refused(results, count)
        }
    }

    /// Removes topics with all they hold; for tests and measurements.
    ///
    /// - Returns: those that were not removed, each with the reason.
    package func delete(
        topics names: [String], milliseconds: Int
    ) throws(KafkaError) -> [(name: String, error: KafkaError)] {
        try use { (handle) throws(KafkaError) in
            var topics = names.map { Optional(rd_kafka_DeleteTopic_new($0)!) }
            defer { for topic in topics { rd_kafka_DeleteTopic_destroy(topic) } }
            let event = try ask(RD_KAFKA_ADMIN_OP_DELETETOPICS, milliseconds, handle) { options, answers in
                rd_kafka_DeleteTopics(handle, &topics, topics.count, options, answers)
            }
            var count = 0
            let results = rd_kafka_DeleteTopics_result_topics(
                rd_kafka_event_DeleteTopics_result(event.pointer), &count)
            return Self.refused(results, count)
        }
    }

    /// The settings of topics, each by its name.
    package func settings(
        ofTopics names: [String], milliseconds: Int
    ) throws(KafkaError) -> [String: [String: String]] {
        try use { (handle) throws(KafkaError) in
            var resources = names.map { Optional(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0)!) }
            defer { for resource in resources { rd_kafka_ConfigResource_destroy(resource) } }
            let event = try ask(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, milliseconds, handle) { options, answers in
                rd_kafka_DescribeConfigs(handle, &resources, resources.count, options, answers)
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
            let event = try ask(RD_KAFKA_ADMIN_OP_ALTERCONFIGS, milliseconds, handle) { options, answers in
                rd_kafka_AlterConfigs(handle, &resources, 1, options, answers)
            }
            var count = 0
            let results = rd_kafka_AlterConfigs_result_resources(
                rd_kafka_event_AlterConfigs_result(event.pointer), &count)
            for resource in UnsafeBufferPointer(start: results, count: count) {
                if let error = Self.error(of: resource, name) { throw error }
            }
        }
    }

    /// Removes the records of partitions that come before the offsets.
    package func removeRecords(before positions: [KafkaPosition], milliseconds: Int) throws(KafkaError) {
        try use { (handle) throws(KafkaError) in
            let list = TopicPartitionList(positions)
            var removal = rd_kafka_DeleteRecords_new(list.pointer)
            defer { rd_kafka_DeleteRecords_destroy(removal) }
            let event = try ask(RD_KAFKA_ADMIN_OP_DELETERECORDS, milliseconds, handle) { options, answers in
                rd_kafka_DeleteRecords(handle, &removal, 1, options, answers)
            }
            let result = rd_kafka_event_DeleteRecords_result(event.pointer)
            guard let offsets = rd_kafka_DeleteRecords_result_offsets(result) else { return }
            // The list belongs to the event; only read here.
            let answers = KafkaPosition.all(in: UnsafeMutablePointer(mutating: offsets))
            if let error = answers.lazy.compactMap(\.error).first { throw error }
        }
    }

    /// Asks a question and waits for its answer.
    ///
    /// - Parameter send: sends it, with the options and the queue for the answer.
    func ask(
        _ operation: rd_kafka_admin_op_t, _ milliseconds: Int, _ handle: OpaquePointer,
        _ send: (_ options: OpaquePointer, _ answers: OpaquePointer) -> Void
    ) throws(KafkaError) -> KafkaEvent {
        let limit = Int32(clamping: milliseconds)
        let options: OpaquePointer = rd_kafka_AdminOptions_new(handle, operation)
        defer { rd_kafka_AdminOptions_destroy(options) }
        let (code, words) = withErrorText {
            rd_kafka_AdminOptions_set_request_timeout(options, limit, $0, $1)
        }
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(KafkaErrorCode(code), message: words) }
        let answers: OpaquePointer = rd_kafka_queue_new(handle)
        defer { rd_kafka_queue_destroy(answers) }
        send(options, answers)
        // librdkafka answers when the time is up, too; the second more is for it.
        guard let pointer = rd_kafka_queue_poll(answers, limit &+ 1000) else {
            throw KafkaError(.timedOut, message: "no answer within \(milliseconds) ms")
        }
        let event = KafkaEvent(pointer)
        if let error = event.error { throw error }
        return event
    }

    private static func error(of resource: OpaquePointer?, _ name: String) -> KafkaError? {
        let code = rd_kafka_ConfigResource_error(resource)
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let words = rd_kafka_ConfigResource_error_string(resource).map { String(cString: $0) } ?? ""
        return KafkaError(KafkaErrorCode(code), message: "\(name): \(words)")
    }

    private static func refused(
        _ results: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int
    ) -> [(name: String, error: KafkaError)] {
        UnsafeBufferPointer(start: results, count: count).compactMap { result in
            let code = rd_kafka_topic_result_error(result)
            guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
            let words = rd_kafka_topic_result_error_string(result).map { String(cString: $0) } ?? ""
            return (
                String(cString: rd_kafka_topic_result_name(result)),
                KafkaError(KafkaErrorCode(code), message: words)
            )
        }
    }
}
