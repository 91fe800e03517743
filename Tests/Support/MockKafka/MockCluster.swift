import CRdkafka
import Foundation
import Glibc
import Synchronization

/// librdkafka's mock of a Kafka cluster, within the process.
///
/// It has records, offsets, groups and idempotent producers, but no retention, topic settings or LogAppendTime.
///
/// `@unchecked Sendable`: librdkafka's handles may be used by any thread; they are freed with this object.
package final class MockCluster: @unchecked Sendable {
    private let client: OpaquePointer
    private let cluster: OpaquePointer

    /// `bootstrap.servers` for clients.
    package let servers: String

    package init(brokers: Int = 1) {
        let configuration: OpaquePointer = rd_kafka_conf_new()
        var text = [CChar](repeating: 0, count: 512)
        rd_kafka_conf_set(configuration, "log_level", "0", &text, text.count)
        client = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, &text, text.count)!
        cluster = rd_kafka_mock_cluster_new(client, Int32(brokers))!
        servers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    }

    deinit {
        let (client, cluster) = (SendableHandle(pointer: client), SendableHandle(pointer: cluster))
        // Takes a second, in the background.
        Thread.detachNewThread {
            rd_kafka_mock_cluster_destroy(cluster.pointer)
            rd_kafka_destroy(client.pointer)
        }
    }

    private struct SendableHandle: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    package func createTopic(_ name: String, partitions: Int) {
        let code = promptly { rd_kafka_mock_topic_create(cluster, name, Int32(partitions), 1) }
        precondition(code == RD_KAFKA_RESP_ERR_NO_ERROR, "the mock cluster creates topics")
    }

    /// Makes a topic unknown.
    package func failTopic(_ name: String) {
        promptly { rd_kafka_mock_topic_set_error(cluster, name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) }
    }

    /// Makes the next requests of a kind fail, each with one of the codes.
    ///
    /// - Parameter request: Kafka's API key: 0 is Produce, 1 is Fetch.
    package func failRequests(_ request: Int16, codes: [Int32]) {
        rd_kafka_mock_push_request_errors_array(
            cluster, request, codes.count, codes.map { rd_kafka_resp_err_t(rawValue: $0) })
    }

    /// Ends the failures of a kind of request.
    package func clearFailures(of request: Int16) { rd_kafka_mock_clear_request_errors(cluster, request) }

    /// Closes every connection and accepts no new one.
    package func goDown() { promptly { _ = rd_kafka_mock_broker_set_down(cluster, -1) } }

    /// Accepts connections again.
    package func comeUp() { promptly { _ = rd_kafka_mock_broker_set_up(cluster, -1) } }

    /// Runs a request to the cluster's thread, and connects to wake the thread: alone it might take a second.
    private func promptly<Result>(_ request: () -> Result) -> Result {
        let isDone = Done()
        let port = servers.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
        Thread.detachNewThread {
            while !isDone.value {
                usleep(2000)
                Self.connect(to: port)
            }
        }
        defer { isDone.set() }
        return request()
    }

    private final class Done: Sendable {
        private let state = Mutex(false)
        var value: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    /// Connects to a port of this machine and disconnects at once.
    private static func connect(to port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                // Fails while the cluster is down.
                _ = connectSocket(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// Error codes for requests.
extension MockCluster {
    /// The connection is closed; the request may have been processed.
    package static let disconnect = RD_KAFKA_RESP_ERR__TRANSPORT.rawValue
    package static let notLeader = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION.rawValue
    package static let notEnoughReplicas = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS.rawValue
    package static let requestTimedOut = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT.rawValue
    package static let topicForbidden = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED.rawValue
    package static let fencedInstance = RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID.rawValue
    package static let offsetOutOfRange = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE.rawValue
}

/// The system's `connect`, which the cluster's own hides.
private func connectSocket(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    connect(descriptor, address, length)
}
