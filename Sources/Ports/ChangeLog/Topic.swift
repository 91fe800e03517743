/// The topics of a Weir history (design: the stages).
package enum Topic: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Batches as edges took them.
    case uploads
    /// Parts of batches as ingest admitted them: the truth.
    case changes
    /// What ordering made of them.
    case ordered
    /// What ingest refused, with the reason.
    case deadLetters = "dead-letters"
    /// What all roles must agree on: one partition, the newest record of each key counts.
    case control

    /// The topic's name.
    package var description: String { rawValue }

    /// Whether records are kept permanently: `changes`, the truth, and `control`.
    package var isKeptForEver: Bool { self == .changes || self == .control }
}

/// A partition of a topic.
package struct TopicPartition: Sendable, Hashable, CustomStringConvertible {
    /// The topic.
    package let topic: Topic
    /// The partition, from 0.
    package let partition: Int

    /// Names a partition.
    package init(_ topic: Topic, _ partition: Int) {
        self.topic = topic
        self.partition = partition
    }

    /// `topic[partition]`.
    package var description: String { "\(topic)[\(partition)]" }
}

/// A record to append.
package struct NewRecord: Sendable, Hashable {
    /// Where it goes.
    package let destination: TopicPartition
    /// What a compacted topic keeps the newest record of, and what tools show; may be empty.
    package let key: [UInt8]
    /// The message.
    package let value: [UInt8]

    /// Makes a record.
    package init(to destination: TopicPartition, key: [UInt8] = [], value: [UInt8]) {
        self.destination = destination
        self.key = key
        self.value = value
    }

    /// How much of a bound in bytes it takes: key, value, and what memory needs besides.
    package var size: Int { key.count + value.count + 64 }
}

/// A record as the log has it.
package struct LogRecord: Sendable, Hashable {
    /// Its place in the partition; offsets grow, and may skip.
    package let offset: Int64
    /// Microseconds since 1970 at which the log took it: the only clock that anything after `uploads` knows (I4).
    package let time: Int64
    /// The key.
    package let key: [UInt8]
    /// The message.
    package let value: [UInt8]

    /// Makes a record.
    package init(offset: Int64, time: Int64, key: [UInt8], value: [UInt8]) {
        self.offset = offset
        self.time = time
        self.key = key
        self.value = value
    }

    /// How much of a bound in bytes it takes: key, value, and what memory needs besides.
    package var size: Int { key.count + value.count + 64 }
}

/// The offsets that a partition holds.
package struct LogRange: Sendable, Hashable {
    /// The oldest record's offset; retention moves it.
    package let start: Int64
    /// The offset that the next record will get or exceed.
    package let end: Int64

    /// Makes a range.
    package init(start: Int64, end: Int64) {
        self.start = start
        self.end = end
    }
}
