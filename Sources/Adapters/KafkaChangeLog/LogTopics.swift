import ChangeLog
import Kafka

/// What the topics and groups of this history are called in Kafka.
struct LogTopics: Sendable {
    let prefix: String
    /// How many partitions each topic but `control` has.
    let partitionCount: Int

    static func name(of topic: Topic, prefix: String) -> String { prefix + topic.rawValue }

    func name(of topic: Topic) -> String { Self.name(of: topic, prefix: prefix) }

    func count(of topic: Topic) -> Int { topic == .control ? 1 : partitionCount }

    func holds(_ partition: TopicPartition) -> Bool {
        (0..<count(of: partition.topic)).contains(partition.partition)
    }

    func position(_ partition: TopicPartition, offset: Int64 = KafkaPosition.none) -> KafkaPosition {
        KafkaPosition(name(of: partition.topic), Int32(partition.partition), offset: offset)
    }

    /// Every partition of a topic, without offsets.
    func positions(of topic: Topic) -> [KafkaPosition] {
        (0..<count(of: topic)).map { position(TopicPartition(topic, $0)) }
    }

    /// A group's name: groups of one name on two topics are two.
    func group(_ name: String, on topic: Topic) -> String { "\(prefix)\(name).\(topic)" }

    /// Whether a group reads a topic of this history.
    func isGroup(_ name: String, on topic: Topic) -> Bool { name.hasPrefix(prefix) && name.hasSuffix(".\(topic)") }
}
