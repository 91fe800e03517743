import Foundation
import ServerShell

/// The settings of brokers.
enum BrokerSettings {
    /// The ports of a broker.
    struct Ports {
        let port: Int
        let controllerPort: Int

        static func find() throws -> Ports { Ports(port: try FreePort.find(), controllerPort: try FreePort.find()) }
    }

    /// The properties of one broker, numbered from 1, which is also a controller.
    ///
    /// - Parameter proxied: listeners for clients that reach the broker through proxies.
    static func text(
        of number: Int, at ports: [Ports], data: String, proxied: [KafkaServer.ProxiedListener] = [],
        _ more: [String: String]
    ) -> String {
        let own = ports[number - 1]
        let voters = ports.enumerated().map { "\($0.offset + 1)@127.0.0.1:\($0.element.controllerPort)" }
        let copies = "\(min(ports.count, 3))"
        let inSync = ports.count < 3 ? "1" : "2"
        let names = proxied.enumerated().map { ("PROXIED\($0.offset)", $0.element) }
        let settings = [
            "process.roles": "broker,controller",
            "node.id": "\(number)",
            "controller.quorum.voters": voters.joined(separator: ","),
            "listeners":
                (["PLAINTEXT://127.0.0.1:\(own.port)", "CONTROLLER://127.0.0.1:\(own.controllerPort)"]
                + names.map { "\($0)://127.0.0.1:\($1.port)" }).joined(separator: ","),
            "advertised.listeners":
                (["PLAINTEXT://127.0.0.1:\(own.port)"]
                + names.map { "\($0)://127.0.0.1:\($1.proxyPort)" }).joined(separator: ","),
            "listener.security.protocol.map":
                (["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
                + names.map { "\($0.0):PLAINTEXT" }).joined(separator: ","),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": "\(data)/data-\(number)",
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": inSync,
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": inSync,
            // Short delays for joining members and failed brokers.
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        ]
        return settings.merging(more) { $1 }.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined()
    }

    /// A random cluster id: 16 bytes in Kafka's base64.
    static func newClusterID() -> String {
        // The first character is a letter: a leading - would look like an option.
        let bytes = [UInt8(0)] + (1..<16).map { _ in UInt8.random(in: 0...255) }
        return String(
            Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").prefix(22))
    }

    /// Environment of Kafka's scripts: little memory, fast start, logs in the folder.
    static func environment(folder: String) -> [String: String] {
        [
            "KAFKA_HEAP_OPTS": "-Xmx512m", "KAFKA_JVM_PERFORMANCE_OPTS": "-server",
            "KAFKA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", "LOG_DIR": folder,
        ]
    }
}
