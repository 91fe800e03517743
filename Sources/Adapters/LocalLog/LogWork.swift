import AsyncPrimitives
import ChangeLog

/// What keeps its order: the appends of a producer; of uploads, those to a partition, since the producer of a gateway is shared by all callers.
struct AppendOrder: Hashable {
    let producer: ObjectIdentifier
    let uploads: Int?
}

/// Records of one producer that are written together.
package struct Append: Sendable {
    package let records: [NewRecord]
    /// The index of each record's partition.
    package let partitions: [Int]
    /// In bytes, against the queue's capacity.
    package let size: Int
    private let producer: ProducerState
    private let promise: LogPromise<[Int64]>

    /// - Parameter producer: has begun this append.
    init(records: [NewRecord], partitions: [Int], producer: ProducerState, promise: LogPromise<[Int64]>) {
        self.records = records
        self.partitions = partitions
        size = records.reduce(0) { $0 + $1.size }
        self.producer = producer
        self.promise = promise
    }

    var order: AppendOrder {
        // Others have records of several topics in one append.
        let uploads = records.first.flatMap { $0.destination.topic == .uploads ? $0.destination.partition : nil }
        return AppendOrder(producer: ObjectIdentifier(producer), uploads: uploads)
    }

    /// Whether an earlier append of the producer failed, so that this one must not be written.
    package var isBlocked: Bool { producer.hasFailed }

    /// Must be called once.
    package func resolve(_ result: Result<[Int64], ChangeLogError>) {
        let hasFailed = if case .failure = result { true } else { false }
        // First the producer, so that it rejects appends before its caller sees the failure.
        producer.end(failed: hasFailed)
        promise.fulfilOnce(result)
    }
}

/// What the writer does besides appending, in the order of the requests.
package struct LogRequest: Sendable {
    package enum Action: Sendable {
        /// Records that a group reads a topic.
        case register(GroupName)
        /// Returns a group's committed offset.
        case load(GroupName, partition: Int)
        /// Stores a group's offset, unless the partition was revoked meanwhile.
        case store(GroupName, partition: Int, offset: Int64, isCurrent: @Sendable () -> Bool)
        /// Removes records of a topic that are older than a time and below their partition's floor.
        case remove(Topic, before: Int64, floors: [Int: Int64], consumers: [GroupName])
    }

    package let action: Action
    /// Gets the offset of `load`; `nil` if there is none, and for other actions.
    package let promise: LogPromise<Int64?>
}

/// What the writer writes in one transaction.
package struct LogWork: Sendable {
    /// Of each producer, and of its uploads to a partition, in the order of arrival.
    package var appends: [Append]
    /// In the order of arrival.
    package var requests: [LogRequest]

    package init(appends: [Append] = [], requests: [LogRequest] = []) {
        self.appends = appends
        self.requests = requests
    }

    package var isEmpty: Bool { appends.isEmpty && requests.isEmpty }

    /// Two halves in order; `nil` for a single append or request.
    package var halves: (LogWork, LogWork)? {
        if !appends.isEmpty, !requests.isEmpty { return (LogWork(appends: appends), LogWork(requests: requests)) }
        guard appends.count + requests.count > 1 else { return nil }
        let append = appends.count / 2
        let request = requests.count / 2
        return (
            LogWork(appends: Array(appends[..<append]), requests: Array(requests[..<request])),
            LogWork(appends: Array(appends[append...]), requests: Array(requests[request...]))
        )
    }
}

/// A group that shares a topic; groups of the same name on two topics are two.
package struct GroupName: Sendable, Hashable {
    /// Names compare byte by byte.
    package let utf8: [UInt8]
    package let topic: Topic

    package init(_ name: String, topic: Topic) {
        utf8 = Array(name.utf8)
        self.topic = topic
    }
}
