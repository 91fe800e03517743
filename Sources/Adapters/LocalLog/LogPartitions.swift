import ChangeLog

/// The partitions of a log, each with a place in an array: looking one up costs no hashing.
package struct LogPartitions: Sendable {
    /// How many partitions each topic but `control` has.
    package let count: Int
    /// All of them, each at its place.
    package let all: [TopicPartition]

    /// Lists the partitions of every topic.
    package init(count: Int) {
        self.count = count
        all = Topic.allCases.flatMap { topic in
            (0..<(topic == .control ? 1 : count)).map { TopicPartition(topic, $0) }
        }
    }

    /// The place of a partition; `nil` where the log does not have it.
    package func place(of partition: TopicPartition) -> Int? {
        let number = partition.partition
        // `control` comes last, so that the topics before it are equally long.
        switch partition.topic {
        case .control: return number == 0 ? 4 * count : nil
        case .uploads: return (0..<count).contains(number) ? number : nil
        case .changes: return (0..<count).contains(number) ? count + number : nil
        case .ordered: return (0..<count).contains(number) ? 2 * count + number : nil
        case .deadLetters: return (0..<count).contains(number) ? 3 * count + number : nil
        }
    }

    /// How many partitions a topic has.
    package func count(of topic: Topic) -> Int { topic == .control ? 1 : count }
}
