import ChangeLog
import Kafka

/// The records that wait while librdkafka could not send them, in the order of each partition.
///
/// librdkafka 2.0 sends nothing of a partition while five of its records are under way, and its thread polls without a pause as long
/// as it has one that it may not send. So it gets a partition's next records when fewer than five are under way, and about as many as
/// fit into a request. It still polls where it sends the first of those before it has the others.
struct UnsentRecords {
    typealias Entry = (tag: UInt, record: KafkaRecord)

    private struct Partition {
        /// The number of records that librdkafka has.
        var underWay = 0
        /// Those before `first` were handed over.
        var waiting: [Entry?] = []
        var first = 0

        /// Takes what librdkafka may have now.
        mutating func take(_ maximumBytes: Int, into entries: inout [Entry]) {
            while underWay < UnsentRecords.maximumUnderWay {
                var bytes = 0
                while first < waiting.count, let entry = waiting[first] {
                    let size = entry.record.key.count + entry.record.value.count
                    if bytes > 0, bytes + size > maximumBytes { break }
                    entries.append(entry)
                    waiting[first] = nil
                    bytes += size
                    underWay += 1
                    first += 1
                }
                if bytes == 0 { break }
            }
            // Moving the others costs at most as much as what was taken since the last time.
            guard first * 2 >= waiting.count else { return }
            waiting.removeFirst(first)
            first = 0
        }
    }

    /// librdkafka's `RD_KAFKA_IDEMP_MAX_INFLIGHT`, which it compares with a number of records.
    private static let maximumUnderWay = 5

    private let maximumBytes: Int
    private var partitions: [TopicPartition: Partition] = [:]
    /// Whether nothing is handed over any more.
    private(set) var isDropped = false

    /// - Parameter maximumBytes: of a partition's records that are handed over at once; a larger one is alone.
    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// Adds records with consecutive tags; returns what librdkafka may have now.
    mutating func add(_ records: ArraySlice<NewRecord>, firstTag: UInt, _ topics: TopicNames) -> [Entry] {
        var destinations: Set<TopicPartition> = []
        var tag = firstTag
        for record in records {
            let destination = record.destination
            let unsent = KafkaRecord(
                topic: topics.name(of: destination.topic), partition: Int32(destination.partition), key: record.key,
                value: record.value)
            partitions[destination, default: Partition()].waiting.append((tag, unsent))
            destinations.insert(destination)
            tag += 1
        }
        return take(from: destinations)
    }

    /// Counts records that were delivered or have failed; returns what librdkafka may have now.
    mutating func remove(_ delivered: [TopicPartition]) -> [Entry] {
        guard !isDropped else { return [] }
        for partition in delivered { partitions[partition]?.underWay -= 1 }
        return take(from: Set(delivered))
    }

    /// Takes everything that waits, also what was added after the first call; nothing is handed over any more.
    mutating func drop() -> [Entry] {
        isDropped = true
        defer { partitions = [:] }
        return partitions.values.flatMap { $0.waiting[$0.first...].compactMap(\.self) }
    }

    private mutating func take(from destinations: Set<TopicPartition>) -> [Entry] {
        var entries: [Entry] = []
        guard !isDropped else { return entries }
        for partition in destinations { partitions[partition]?.take(maximumBytes, into: &entries) }
        return entries
    }
}
