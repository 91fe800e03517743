import CRdkafka

/// An error of Kafka or librdkafka.
package struct KafkaError: Error, Sendable, Hashable, CustomStringConvertible {
    package let code: KafkaErrorCode
    package let message: String
    /// Whether the same call may succeed later.
    package let isRetriable: Bool
    /// Whether the client can no longer be used: a new one must be created.
    package let isFatal: Bool

    package init(_ code: KafkaErrorCode, message: String, isRetriable: Bool? = nil, isFatal: Bool = false) {
        self.code = code
        self.message = message
        self.isRetriable = isRetriable ?? code.isTransient
        self.isFatal = isFatal || code == .fatal
    }

    /// The error for a code, with librdkafka's text; `nil` for success.
    init?(_ code: rd_kafka_resp_err_t, during action: String? = nil) {
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let text = String(cString: rd_kafka_err2str(code))
        self.init(KafkaErrorCode(code), message: action.map { "\($0): \(text)" } ?? text)
    }

    /// Copies an error object and destroys it.
    init(taking error: OpaquePointer, during action: String? = nil) {
        defer { rd_kafka_error_destroy(error) }
        let code = KafkaErrorCode(rd_kafka_error_code(error))
        let text = String(cString: rd_kafka_error_string(error))
        self.init(
            code, message: action.map { "\($0): \(text)" } ?? text,
            isRetriable: rd_kafka_error_is_retriable(error) != 0 || code.isTransient,
            isFatal: rd_kafka_error_is_fatal(error) != 0)
    }

    package var description: String { "\(code.name): \(message)" }
}

/// A code of Kafka's protocol, or, if negative, of librdkafka.
package struct KafkaErrorCode: RawRepresentable, Sendable, Hashable {
    package let rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    init(_ code: rd_kafka_resp_err_t) { self.init(rawValue: code.rawValue) }

    /// librdkafka's name, such as `UNKNOWN_TOPIC_OR_PART`.
    package var name: String { String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue: rawValue))) }
}

extension KafkaErrorCode {
    /// A broker reports that the topic or partition does not exist.
    package static let unknownTopicOrPartition = KafkaErrorCode(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    /// The client's metadata has no such topic.
    package static let unknownTopic = KafkaErrorCode(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
    /// The client's metadata has no such partition.
    package static let unknownPartition = KafkaErrorCode(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    package static let topicAlreadyExists = KafkaErrorCode(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    /// The record, or its batch, is larger than allowed.
    package static let messageTooLarge = KafkaErrorCode(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    /// The partition has no record at the offset.
    package static let offsetOutOfRange = KafkaErrorCode(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
    /// The partition has no record at the offset, and the client must not reset it.
    package static let noOffsetReset = KafkaErrorCode(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
    /// The client has a fatal error.
    package static let fatal = KafkaErrorCode(RD_KAFKA_RESP_ERR__FATAL)
    /// A batch failed, so later batches would leave a gap.
    package static let gaplessGuarantee = KafkaErrorCode(RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE)
    /// The record was purged before it was sent.
    package static let purgedFromQueue = KafkaErrorCode(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
    /// The record was purged after it was sent: the broker may have it.
    package static let purgedInFlight = KafkaErrorCode(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
    /// The producer's queue is full.
    package static let queueFull = KafkaErrorCode(RD_KAFKA_RESP_ERR__QUEUE_FULL)
    /// The consumer has reached the end of the partition; not an error.
    package static let partitionEnd = KafkaErrorCode(RD_KAFKA_RESP_ERR__PARTITION_EOF)
    package static let timedOut = KafkaErrorCode(RD_KAFKA_RESP_ERR__TIMED_OUT)
    /// A record was not delivered in time.
    package static let messageTimedOut = KafkaErrorCode(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
    package static let allBrokersDown = KafkaErrorCode(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
    /// The member belongs to an earlier generation of the group.
    package static let illegalGeneration = KafkaErrorCode(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
    package static let unknownMember = KafkaErrorCode(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
    /// Another member has the same instance id.
    package static let fencedInstance = KafkaErrorCode(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
    package static let rebalanceInProgress = KafkaErrorCode(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS)
    /// A broker's disk failed.
    package static let storage = KafkaErrorCode(RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR)
    package static let invalidArgument = KafkaErrorCode(RD_KAFKA_RESP_ERR__INVALID_ARG)
    /// The topic's settings do not allow the record.
    package static let policyViolation = KafkaErrorCode(RD_KAFKA_RESP_ERR_POLICY_VIOLATION)
    /// The broker or the mock cluster does not support the request.
    package static let unsupported = KafkaErrorCode(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
    /// Fewer replicas than `min.insync.replicas` are in sync.
    package static let notEnoughReplicas = KafkaErrorCode(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS)
    package static let topicForbidden = KafkaErrorCode(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    package static let clusterForbidden = KafkaErrorCode(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
    package static let groupForbidden = KafkaErrorCode(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
    /// The group's members use another assignment strategy.
    package static let inconsistentGroup = KafkaErrorCode(RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL)

    private static let transient: Set<KafkaErrorCode> = Set(
        [
            RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__RESOLVE, RD_KAFKA_RESP_ERR__TIMED_OUT,
            RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__WAIT_COORD,
            RD_KAFKA_RESP_ERR__WAIT_CACHE, RD_KAFKA_RESP_ERR__IN_PROGRESS, RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS,
            RD_KAFKA_RESP_ERR__ISR_INSUFF, RD_KAFKA_RESP_ERR__NODE_UPDATE, RD_KAFKA_RESP_ERR__QUEUE_FULL,
            RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, RD_KAFKA_RESP_ERR__RETRY,
            RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE, RD_KAFKA_RESP_ERR__INCONSISTENT,
            RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__DESTROY,
            RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE,
            RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION,
            RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
            RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
            RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
            RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
            RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER,
            RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
            RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING, RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
            RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH, RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
            RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT,
            RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS,
        ].map { KafkaErrorCode($0) })

    /// Whether the condition passes by itself, or with a new client.
    ///
    /// librdkafka reports this only of error objects, not of codes.
    var isTransient: Bool { Self.transient.contains(self) }
}
