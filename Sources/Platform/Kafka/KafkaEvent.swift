import CRdkafka

/// Something that a client reports; freed with its owner.
package struct KafkaEvent: ~Copyable {
    /// What an event is about.
    package enum Kind: Sendable, Hashable {
        /// What became of messages.
        case deliveries
        /// Partitions were given to this member, or are taken from it.
        case rebalance
        /// What became of a commit.
        case commit
        /// Something fails, or failed for good.
        case error
        /// A line of librdkafka's log.
        case log
        /// A message, in a client of a group.
        case message
        /// The answer to an administrator's request.
        case administration
        /// What this client does not ask for.
        case other
    }

    /// What became of a message.
    package struct Delivery: Sendable {
        /// What the message was produced with.
        package let tag: UInt
        /// Its place in the partition; meaningless where there is an error.
        package let offset: Int64
        /// Why it was not delivered.
        package let error: KafkaError?
    }

    /// A change of what a member of a group works on.
    package enum Rebalance: Sendable {
        /// More partitions.
        case assigned([KafkaPosition])
        /// Fewer partitions.
        case revoked([KafkaPosition])
        /// The group cannot share its partitions.
        case failed(KafkaError)
    }

    /// A line of librdkafka's log.
    package struct LogLine: Sendable {
        /// syslog's level, from 0 for an emergency to 7 for debugging.
        package let level: Int
        /// What it is about.
        package let facility: String
        /// The line.
        package let text: String
    }

    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { rd_kafka_event_destroy(pointer) }

    /// What the event is about.
    package var kind: Kind {
        switch rd_kafka_event_type(pointer) {
        case RD_KAFKA_EVENT_DR: .deliveries
        case RD_KAFKA_EVENT_REBALANCE: .rebalance
        case RD_KAFKA_EVENT_OFFSET_COMMIT: .commit
        case RD_KAFKA_EVENT_ERROR: .error
        case RD_KAFKA_EVENT_LOG: .log
        case RD_KAFKA_EVENT_FETCH: .message
        case RD_KAFKA_EVENT_CREATETOPICS_RESULT, RD_KAFKA_EVENT_DELETETOPICS_RESULT,
            RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, RD_KAFKA_EVENT_ALTERCONFIGS_RESULT,
            RD_KAFKA_EVENT_DELETERECORDS_RESULT, RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT,
            RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT, RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT:
            .administration
        default: .other
        }
    }

    /// What went wrong; `nil` where nothing did.
    package var error: KafkaError? {
        let code = rd_kafka_event_error(pointer)
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let words = rd_kafka_event_error_string(pointer).map { String(cString: $0) } ?? ""
        return KafkaError(
            KafkaErrorCode(code), message: words, isFatal: rd_kafka_event_error_is_fatal(pointer) != 0)
    }

    /// What became of messages, in the order of the reports.
    package func deliveries() -> [Delivery] {
        var deliveries: [Delivery] = []
        deliveries.reserveCapacity(rd_kafka_event_message_count(pointer))
        while let message = rd_kafka_event_message_next(pointer) {
            // The message lives as long as the event, and is not kept.
            let report = message.pointee
            deliveries.append(
                Delivery(
                    tag: UInt(bitPattern: report._private), offset: report.offset, error: KafkaError(report.err)))
        }
        return deliveries
    }

    /// What changes of this member's work.
    package func rebalance() -> Rebalance {
        let partitions = rd_kafka_event_topic_partition_list(pointer).map { KafkaPosition.all(in: $0) } ?? []
        let code = rd_kafka_event_error(pointer)
        switch code {
        case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: return .assigned(partitions)
        case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: return .revoked(partitions)
        default: return .failed(error ?? KafkaError(KafkaErrorCode(code), message: "the rebalance failed"))
        }
    }

    /// What the commit or request was made with.
    package var tag: UInt { UInt(bitPattern: rd_kafka_event_opaque(pointer)) }

    /// Why the commit failed, as a whole or for one of its partitions.
    package var commitError: KafkaError? {
        if let error { return error }
        guard let list = rd_kafka_event_topic_partition_list(pointer) else { return nil }
        return KafkaPosition.all(in: list).lazy.compactMap(\.error).first
    }

    /// The line of an event of the kind `log`.
    package func logLine() -> LogLine {
        var facility: UnsafePointer<CChar>?
        var text: UnsafePointer<CChar>?
        var level: Int32 = 7
        rd_kafka_event_log(pointer, &facility, &text, &level)
        // Both live as long as the event and are copied here.
        return LogLine(
            level: Int(level), facility: facility.map { String(cString: $0) } ?? "",
            text: text.map { String(cString: $0) } ?? "")
    }
}
