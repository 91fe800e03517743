import ChangeLog

/// The partitions of a log, each with an index, which is found without hashing.
package struct LogPartitions: Sendable {
    /// How many partitions each topic but `control` has.
    package let count: Int
    package let all: [TopicPartition]

    package init(count: Int) {
        self.count = count
        all = Topic.allCases.flatMap { topic in
            (0..<(topic == .control ? 1 : count)).map { TopicPartition(topic, $0) }
        }
    }

    /// `nil` if the log does not have the partition.
    package func index(of partition: TopicPartition) -> Int? {
        let number = partition.partition
        // `control` is last, so that the topics before it have equal numbers of partitions.
        switch partition.topic {
        case .control: return number == 0 ? 4 * count : nil
        case .uploads: return (0..<count).contains(number) ? number : nil
        case .changes: return (0..<count).contains(number) ? count + number : nil
        case .ordered: return (0..<count).contains(number) ? 2 * count + number : nil
        case .deadLetters: return (0..<count).contains(number) ? 3 * count + number : nil
        }
    }

    package func count(of topic: Topic) -> Int { topic == .control ? 1 : count }
}
