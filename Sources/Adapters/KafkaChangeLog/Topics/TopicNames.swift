import ChangeLog
import Kafka

/// The names of the topics and groups in Kafka.
struct TopicNames: Sendable {
    let prefix: String
    /// The number of partitions of each topic except `control`.
    let partitionCount: Int

    static func name(of topic: Topic, prefix: String) -> String { prefix + topic.rawValue }

    func name(of topic: Topic) -> String { Self.name(of: topic, prefix: prefix) }

    func partitionCount(of topic: Topic) -> Int { topic == .control ? 1 : partitionCount }

    func contains(_ partition: TopicPartition) -> Bool {
        (0..<partitionCount(of: partition.topic)).contains(partition.partition)
    }

    func position(_ partition: TopicPartition, offset: Int64 = KafkaPosition.none) -> KafkaPosition {
        KafkaPosition(name(of: partition.topic), Int32(partition.partition), offset: offset)
    }

    /// Every partition of a topic, without offsets.
    func positions(of topic: Topic) -> [KafkaPosition] {
        (0..<partitionCount(of: topic)).map { position(TopicPartition(topic, $0)) }
    }

    /// A group's name in Kafka: each topic has groups of its own.
    func group(_ name: String, on topic: Topic) -> String { "\(prefix)\(name).\(topic)" }

    /// Whether a group in Kafka is one of this topic.
    func isGroup(_ name: String, on topic: Topic) -> Bool { name.hasPrefix(prefix) && name.hasSuffix(".\(topic)") }
}
