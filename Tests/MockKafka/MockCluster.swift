import CRdkafka
import Foundation

/// A cluster of Kafka brokers within the process, as librdkafka has one for tests.
///
/// It knows records, offsets, groups and idempotent producers; no retention, no settings of topics, no time of its own.
///
/// `@unchecked Sendable`: librdkafka's handles may be used by any thread; they are freed with this object.
public final class MockCluster: @unchecked Sendable {
    private let client: OpaquePointer
    private let cluster: OpaquePointer

    /// Where clients find it.
    public let servers: String

    /// Starts a cluster.
    public init(brokers: Int = 1) {
        let configuration: OpaquePointer = rd_kafka_conf_new()
        var text = [CChar](repeating: 0, count: 512)
        rd_kafka_conf_set(configuration, "log_level", "0", &text, text.count)
        client = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, &text, text.count)!
        cluster = rd_kafka_mock_cluster_new(client, Int32(brokers))!
        servers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    }

    deinit {
        let (client, cluster) = (SendableHandle(pointer: client), SendableHandle(pointer: cluster))
        // Takes a second, which no test needs to wait for.
        Thread.detachNewThread {
            rd_kafka_mock_cluster_destroy(cluster.pointer)
            rd_kafka_destroy(client.pointer)
        }
    }

    private struct SendableHandle: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    /// Makes a topic.
    public func createTopic(_ name: String, partitions: Int) {
        let code = rd_kafka_mock_topic_create(cluster, name, Int32(partitions), 1)
        precondition(code == RD_KAFKA_RESP_ERR_NO_ERROR, "the mock cluster makes topics")
    }

    /// Has a topic be unknown.
    public func failTopic(_ name: String) {
        rd_kafka_mock_topic_set_error(cluster, name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    }

    /// Has the next requests of a kind fail, each with one of the codes.
    ///
    /// - Parameter request: Kafka's number of the kind: 0 produces, 1 fetches.
    public func failRequests(_ request: Int16, codes: [Int32]) {
        rd_kafka_mock_push_request_errors_array(
            cluster, request, codes.count, codes.map { rd_kafka_resp_err_t(rawValue: $0) })
    }

    /// Has no more requests of a kind fail.
    public func clearFailures(of request: Int16) { rd_kafka_mock_clear_request_errors(cluster, request) }

    /// Ends every connection and accepts no other.
    public func goDown() { rd_kafka_mock_broker_set_down(cluster, -1) }

    /// Accepts connections again.
    public func comeUp() { rd_kafka_mock_broker_set_up(cluster, -1) }

    /// Has every answer take so many milliseconds.
    public func delayAnswers(milliseconds: Int) { rd_kafka_mock_broker_set_rtt(cluster, -1, Int32(milliseconds)) }
}

/// Codes that requests may fail with.
extension MockCluster {
    /// The connection breaks; the request may have been served.
    public static let disconnect = RD_KAFKA_RESP_ERR__TRANSPORT.rawValue
    /// The partition's leader is another broker.
    public static let notLeader = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION.rawValue
    /// Too few replicas.
    public static let notEnoughReplicas = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS.rawValue
    /// The broker was too slow.
    public static let requestTimedOut = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT.rawValue
    /// The producer may not write the topic.
    public static let topicForbidden = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED.rawValue
    /// The offset is not there.
    public static let offsetOutOfRange = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE.rawValue
}
