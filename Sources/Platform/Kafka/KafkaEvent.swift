import CRdkafka

/// An event of a client; frees librdkafka's event.
package struct KafkaEvent: ~Copyable {
    package enum Kind: Sendable, Hashable {
        /// Delivery reports.
        case deliveries
        /// Partitions were assigned to this member or revoked from it.
        case rebalance
        /// The result of a commit.
        case commit
        case error
        case log
        /// Any other event, which is not handled through ``KafkaClient/poll(milliseconds:)``.
        case other
    }

    /// The delivery report of a record.
    package struct Delivery: Sendable {
        package let tag: UInt
        /// Undefined if there is an error.
        package let offset: Int64
        package let error: KafkaError?

        package init(tag: UInt, offset: Int64, error: KafkaError?) {
            self.tag = tag
            self.offset = offset
            self.error = error
        }
    }

    package enum Rebalance: Sendable {
        case assigned([KafkaPosition])
        case revoked([KafkaPosition])
        case failed(KafkaError)
    }

    package struct LogLine: Sendable {
        /// syslog's level, from 0 for emergency to 7 for debug.
        package let level: Int
        package let facility: String
        package let text: String
    }

    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { rd_kafka_event_destroy(pointer) }

    package var kind: Kind {
        switch rd_kafka_event_type(pointer) {
        case RD_KAFKA_EVENT_DR: .deliveries
        case RD_KAFKA_EVENT_REBALANCE: .rebalance
        case RD_KAFKA_EVENT_OFFSET_COMMIT: .commit
        case RD_KAFKA_EVENT_ERROR: .error
        case RD_KAFKA_EVENT_LOG: .log
        default: .other
        }
    }

    package var error: KafkaError? {
        let code = rd_kafka_event_error(pointer)
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let text = rd_kafka_event_error_string(pointer).map { String(cString: $0) } ?? ""
        return KafkaError(
            KafkaErrorCode(code), message: text, isFatal: rd_kafka_event_error_is_fatal(pointer) != 0)
    }

    /// The delivery reports, in their order.
    package func deliveries() -> [Delivery] {
        var deliveries: [Delivery] = []
        deliveries.reserveCapacity(rd_kafka_event_message_count(pointer))
        while let message = rd_kafka_event_message_next(pointer) {
            // Valid as long as the event.
            let report = message.pointee
            deliveries.append(
                Delivery(
                    tag: UInt(bitPattern: report._private), offset: report.offset, error: KafkaError(report.err)))
        }
        return deliveries
    }

    package func rebalance() -> Rebalance {
        let partitions = rd_kafka_event_topic_partition_list(pointer).map { KafkaPosition.all(in: $0) } ?? []
        let code = rd_kafka_event_error(pointer)
        switch code {
        case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: return .assigned(partitions)
        case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: return .revoked(partitions)
        default: return .failed(error ?? KafkaError(KafkaErrorCode(code), message: "the rebalance failed"))
        }
    }

    /// The tag of the commit.
    package var tag: UInt { UInt(bitPattern: rd_kafka_event_opaque(pointer)) }

    /// The error of the commit as a whole, or of one of its partitions.
    package var commitError: KafkaError? {
        if let error { return error }
        guard let list = rd_kafka_event_topic_partition_list(pointer) else { return nil }
        return KafkaPosition.all(in: list).lazy.compactMap(\.error).first
    }

    package func logLine() -> LogLine {
        var facility: UnsafePointer<CChar>?
        var text: UnsafePointer<CChar>?
        var level: Int32 = 7
        rd_kafka_event_log(pointer, &facility, &text, &level)
        // Copied: both are valid as long as the event.
        return LogLine(
            level: Int(level), facility: facility.map { String(cString: $0) } ?? "",
            text: text.map { String(cString: $0) } ?? "")
    }
}
