import Dispatch
import Kafka
import LoadTools

/// The baseline of the log: the same bytes through librdkafka alone, with a producer as reliable as Weir's.
struct RawTopic: Sendable {
    let space: ClusterSpace

    /// Acknowledged by all copies, without duplicates or gaps, compressed as by Weir.
    private static let producer = [
        ("enable.idempotence", "true"), ("acks", "all"), ("enable.gapless.guarantee", "true"), ("linger.ms", "0"),
        ("compression.codec", "lz4"), ("message.timeout.ms", "0"), ("queue.buffering.max.messages", "0"),
    ]

    /// Never fills its queue: librdkafka checks only once a second whether a full queue has room again.
    private static let consumer = [
        ("queued.max.messages.kbytes", "2097151"), ("queued.min.messages", "10000000"), ("fetch.max.bytes", "16777216"),
        ("enable.auto.commit", "false"),
    ]

    /// Bytes that wait for their acknowledgements, as for Weir's producers.
    private static let maximumBytes = 32 << 20

    /// How many changes per second the log alone accepts and returns.
    struct Rates {
        let produced: Double
        let consumed: Double
    }

    struct Seconds {
        let produce: Double
        let consume: Double

        func per(_ changes: Int) -> Rates {
            Rates(produced: Double(changes) / produce, consumed: Double(changes) / consume)
        }
    }

    /// Appends values to the partitions in turn, then reads them; returns the seconds of both.
    func run(_ values: [[UInt8]]) async throws -> Seconds {
        let topic = space.rawTopic
        let produced = try await space.cluster.withClient(.producer, Self.producer, events: .deliveries) { client in
            try await LoadThreads.run { try Self.produce(values, to: topic, client) }
        }
        let consumed = try await space.cluster.withClient(.consumer, Self.consumer) { client in
            try await Self.consume(produced.offsets, of: topic, client)
        }
        return Seconds(produce: produced.seconds, consume: consumed)
    }

    /// Appends values one by one, each after the acknowledgement of the one before; returns the milliseconds of each.
    func times(_ values: [[UInt8]]) async throws -> [Double] {
        let topic = space.rawTopic
        return try await space.cluster.withClient(.producer, Self.producer, events: .deliveries) { client in
            try await LoadThreads.run {
                try values.indices.map { index in
                    1000 * (try Self.produce([values[index]], to: topic, client, firstTag: UInt(index + 1)).seconds)
                }
            }
        }
    }

    /// The offsets of the records in each partition.
    private typealias Offsets = [Int32: ClosedRange<Int64>]

    private static func produce(
        _ values: [[UInt8]], to topic: String, _ client: KafkaClient, firstTag: UInt = 1
    ) throws -> (seconds: Double, offsets: Offsets) {
        let start = SystemCall.nanoseconds()
        var offsets: Offsets = [:]
        var (sent, answered, bytes) = (0, 0, 0)
        func partition(_ index: Int) -> Int32 { Int32(index % Owners.partitions) }
        while answered < values.count {
            while sent < values.count, bytes < maximumBytes {
                let record = KafkaRecord(topic: topic, partition: partition(sent), key: [], value: values[sent])
                if let error = client.produce([(firstTag + UInt(sent), record)]).error { throw error }
                bytes += values[sent].count
                sent += 1
            }
            guard let event = try client.poll() else { continue }
            if event.kind == .error, let error = event.error, error.isFatal { throw error }
            guard event.kind == .deliveries else { continue }
            for delivery in event.deliveries() {
                if let error = delivery.error { throw error }
                let index = Int(delivery.tag - firstTag)
                answered += 1
                bytes -= values[index].count
                let before = offsets[partition(index)] ?? delivery.offset...delivery.offset
                offsets[partition(index)] =
                    min(before.lowerBound, delivery.offset)...max(before.upperBound, delivery.offset)
            }
        }
        return (SystemCall.seconds(since: start), offsets)
    }

    private static func consume(_ offsets: Offsets, of topic: String, _ client: KafkaClient) async throws -> Double {
        let wakeup = try KafkaWakeup()
        let fetched = DispatchSemaphore(value: 0)
        let listener = wakeup.add { fetched.signal() }
        let result: Result<Double, any Error>
        do {
            result = .success(
                try await LoadThreads.run {
                    let start = SystemCall.nanoseconds()
                    var fetches: [KafkaFetch] = []
                    defer { for fetch in fetches { fetch.stop() } }
                    for (partition, range) in offsets {
                        fetches.append(
                            try KafkaFetch(
                                client, topic: topic, partition: partition, from: range.lowerBound, wakeup: wakeup,
                                listener: listener))
                    }
                    try read(offsets.values.reduce(0) { $0 + Int($1.count) }, from: fetches, fetched)
                    return SystemCall.seconds(since: start)
                })
        } catch {
            result = .failure(error)
        }
        wakeup.remove(listener)
        await wakeup.close()
        return try result.get()
    }

    private static func read(_ count: Int, from fetches: [KafkaFetch], _ fetched: DispatchSemaphore) throws {
        var taken = 0
        var bytes = 0
        var failure: KafkaError?
        while true {
            for fetch in fetches {
                fetch.take { message in
                    failure = failure ?? message.error
                    bytes += message.value.count
                    taken += 1
                    return failure == nil
                }
            }
            if let failure { throw failure }
            if taken >= count { return }
            fetched.wait()
        }
    }
}
