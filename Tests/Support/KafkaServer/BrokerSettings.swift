import Foundation
import ServerShell

/// What brokers are started with.
enum BrokerSettings {
    /// Where a broker listens.
    struct Place {
        let port: Int
        let controllerPort: Int

        static func find() throws -> Place { Place(port: try FreePort.find(), controllerPort: try FreePort.find()) }
    }

    /// The properties of one broker, numbered from 1, which is a controller, too.
    static func text(of number: Int, at places: [Place], data: String, _ more: [String: String]) -> String {
        let place = places[number - 1]
        let voters = places.enumerated().map { "\($0.offset + 1)@127.0.0.1:\($0.element.controllerPort)" }
        let copies = "\(min(places.count, 3))"
        let inSync = places.count < 3 ? "1" : "2"
        let settings = [
            "process.roles": "broker,controller",
            "node.id": "\(number)",
            "controller.quorum.voters": voters.joined(separator: ","),
            "listeners": "PLAINTEXT://127.0.0.1:\(place.port),CONTROLLER://127.0.0.1:\(place.controllerPort)",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:\(place.port)",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
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
            // Tests do not wait for members, and find out soon that one has died.
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        ]
        return settings.merging(more) { $1 }.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined()
    }

    /// A new cluster's id: 16 random bytes as Kafka writes them.
    static func newClusterID() -> String {
        // A letter first: what begins with - looks like an option.
        let bytes = [UInt8(0)] + (1..<16).map { _ in UInt8.random(in: 0...255) }
        return String(
            Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").prefix(22))
    }

    /// Variables of Kafka's scripts: little memory, a quick start, what they write themselves in the folder.
    static func environment(folder: String) -> [String: String] {
        [
            "KAFKA_HEAP_OPTS": "-Xmx512m", "KAFKA_JVM_PERFORMANCE_OPTS": "-server",
            "KAFKA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", "LOG_DIR": folder,
        ]
    }
}
