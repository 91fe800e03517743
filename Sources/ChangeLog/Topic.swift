/// The topics of a Weir history (design: the stages).
public enum Topic: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
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
    public var description: String { rawValue }

    /// Whether records are kept for ever: `changes`, the truth, and `control`.
    public var isKeptForEver: Bool { self == .changes || self == .control }
}

/// A partition of a topic.
public struct TopicPartition: Sendable, Hashable, CustomStringConvertible {
    /// The topic.
    public let topic: Topic
    /// The partition, from 0.
    public let partition: Int

    /// Names a partition.
    public init(_ topic: Topic, _ partition: Int) {
        self.topic = topic
        self.partition = partition
    }

    /// `topic[partition]`.
    public var description: String { "\(topic)[\(partition)]" }
}

/// A record to append.
public struct NewRecord: Sendable, Hashable {
    /// Where it goes.
    public let destination: TopicPartition
    /// What a compacted topic keeps the newest record of, and what tools show; may be empty.
    public let key: [UInt8]
    /// The message.
    public let value: [UInt8]

    /// Makes a record.
    public init(to destination: TopicPartition, key: [UInt8] = [], value: [UInt8]) {
        self.destination = destination
        self.key = key
        self.value = value
    }

    /// How much of a bound in bytes it takes: key, value, and what memory needs besides.
    public var size: Int { key.count + value.count + 64 }
}

/// A record as the log has it.
public struct LogRecord: Sendable, Hashable {
    /// Its place in the partition; offsets grow, and may skip.
    public let offset: Int64
    /// Microseconds since 1970 at which the log took it: the only clock that anything after `uploads` knows (I4).
    public let time: Int64
    /// The key.
    public let key: [UInt8]
    /// The message.
    public let value: [UInt8]

    /// Makes a record.
    public init(offset: Int64, time: Int64, key: [UInt8], value: [UInt8]) {
        self.offset = offset
        self.time = time
        self.key = key
        self.value = value
    }

    /// How much of a bound in bytes it takes: key, value, and what memory needs besides.
    public var size: Int { key.count + value.count + 64 }
}

/// The offsets that a partition holds.
public struct LogRange: Sendable, Hashable {
    /// The oldest record's offset; retention moves it.
    public let start: Int64
    /// The offset that the next record will get or exceed.
    public let end: Int64

    /// Makes a range.
    public init(start: Int64, end: Int64) {
        self.start = start
        self.end = end
    }
}
