import CRdkafka

/// What Kafka or librdkafka said: the code, and whether trying again or only another client may help.
package struct KafkaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong.
    package let code: KafkaErrorCode
    /// The cause, for an operator.
    package let message: String
    /// Whether the same call may succeed later.
    package let isRetriable: Bool
    /// Whether the client is of no use any more and another one must be made.
    package let isFatal: Bool

    /// States an error.
    package init(_ code: KafkaErrorCode, message: String, isRetriable: Bool? = nil, isFatal: Bool = false) {
        self.code = code
        self.message = message
        self.isRetriable = isRetriable ?? code.isTransient
        self.isFatal = isFatal || code == .fatal
    }

    /// The error of a code, in librdkafka's words; `nil` for none.
    init?(_ code: rd_kafka_resp_err_t, during action: String? = nil) {
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let words = String(cString: rd_kafka_err2str(code))
        self.init(KafkaErrorCode(code), message: action.map { "\($0): \(words)" } ?? words)
    }

    /// Takes over an error object and destroys it.
    init(taking error: OpaquePointer, during action: String? = nil) {
        defer { rd_kafka_error_destroy(error) }
        let code = KafkaErrorCode(rd_kafka_error_code(error))
        let words = String(cString: rd_kafka_error_string(error))
        self.init(
            code, message: action.map { "\($0): \(words)" } ?? words,
            isRetriable: rd_kafka_error_is_retriable(error) != 0 || code.isTransient,
            isFatal: rd_kafka_error_is_fatal(error) != 0)
    }

    /// The code's name and the cause.
    package var description: String { "\(code.name): \(message)" }
}

/// A code of Kafka's protocol, or, below zero, of librdkafka itself.
package struct KafkaErrorCode: RawRepresentable, Sendable, Hashable {
    /// The number.
    package let rawValue: Int32

    /// Makes a code of its number.
    package init(rawValue: Int32) { self.rawValue = rawValue }

    init(_ code: rd_kafka_resp_err_t) { self.init(rawValue: code.rawValue) }

    /// The name in librdkafka, such as `UNKNOWN_TOPIC_OR_PART`.
    package var name: String { String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue: rawValue))) }
}

extension KafkaErrorCode {
    /// The topic or partition does not exist, says a broker.
    package static let unknownTopicOrPartition = KafkaErrorCode(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    /// The topic does not exist, as far as the client knows.
    package static let unknownTopic = KafkaErrorCode(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
    /// The partition does not exist, as far as the client knows.
    package static let unknownPartition = KafkaErrorCode(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    /// The topic exists already.
    package static let topicAlreadyExists = KafkaErrorCode(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    /// The record, or the batch that it is in, is larger than allowed.
    package static let messageTooLarge = KafkaErrorCode(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    /// The partition does not hold the offset.
    package static let offsetOutOfRange = KafkaErrorCode(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
    /// The partition does not hold the offset, and the client may not choose another.
    package static let noOffsetReset = KafkaErrorCode(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
    /// The client has raised an error that ends it.
    package static let fatal = KafkaErrorCode(RD_KAFKA_RESP_ERR__FATAL)
    /// A batch failed and those behind it would leave a gap.
    package static let gaplessGuarantee = KafkaErrorCode(RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE)
    /// The message was removed before it was sent.
    package static let purgedFromQueue = KafkaErrorCode(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
    /// The message was given up while a broker may have it.
    package static let purgedInFlight = KafkaErrorCode(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
    /// The queue of the producer is full.
    package static let queueFull = KafkaErrorCode(RD_KAFKA_RESP_ERR__QUEUE_FULL)
    /// The reader came to the end; no error.
    package static let partitionEnd = KafkaErrorCode(RD_KAFKA_RESP_ERR__PARTITION_EOF)
    /// The time was up.
    package static let timedOut = KafkaErrorCode(RD_KAFKA_RESP_ERR__TIMED_OUT)
    /// A message was not delivered in its time.
    package static let messageTimedOut = KafkaErrorCode(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
    /// No broker can be reached.
    package static let allBrokersDown = KafkaErrorCode(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
    /// The member belongs to an earlier generation of the group.
    package static let illegalGeneration = KafkaErrorCode(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
    /// The group does not know the member.
    package static let unknownMember = KafkaErrorCode(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
    /// Another member took this one's name.
    package static let fencedInstance = KafkaErrorCode(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
    /// The group shares its partitions anew.
    package static let rebalanceInProgress = KafkaErrorCode(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS)
    /// A broker's disk fails.
    package static let storage = KafkaErrorCode(RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR)
    /// A setting is not allowed.
    package static let invalidArgument = KafkaErrorCode(RD_KAFKA_RESP_ERR__INVALID_ARG)
    /// The topic does not take this.
    package static let policyViolation = KafkaErrorCode(RD_KAFKA_RESP_ERR_POLICY_VIOLATION)
    /// The broker or the mock cluster does not know the request.
    package static let unsupported = KafkaErrorCode(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
    /// Too few replicas have the data for `acks=all`.
    package static let notEnoughReplicas = KafkaErrorCode(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS)
    /// The client is not allowed to use the topic.
    package static let topicForbidden = KafkaErrorCode(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    /// The client is not allowed to do this in the cluster.
    package static let clusterForbidden = KafkaErrorCode(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
    /// The client is not allowed to be in the group.
    package static let groupForbidden = KafkaErrorCode(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
    /// The group's members share its partitions in another way.
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

    /// Whether the state behind this code passes by itself, or with another client.
    ///
    /// librdkafka says so of error objects alone, not of codes.
    var isTransient: Bool { Self.transient.contains(self) }
}
