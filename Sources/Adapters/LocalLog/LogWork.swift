import ChangeLog

/// Records of one producer that are written together.
package struct Append: Sendable {
    /// The records.
    package let records: [NewRecord]
    /// The place of each record's partition.
    package let places: [Int]
    /// How much of the queue they take.
    package let size: Int
    private let producer: ProducerState
    private let promise: LogPromise<[Int64]>

    /// Enqueued records; `producer` has let them in.
    init(records: [NewRecord], places: [Int], producer: ProducerState, promise: LogPromise<[Int64]>) {
        self.records = records
        self.places = places
        size = records.reduce(0) { $0 + $1.size }
        self.producer = producer
        self.promise = promise
    }

    /// Whether a record before these failed, so that these may not be written.
    package var isBlocked: Bool { producer.hasFailed }

    /// Tells the producer how it ended; called once.
    package func resolve(_ result: Result<[Int64], ChangeLogError>) {
        let hasFailed = if case .failure = result { true } else { false }
        // First the producer: whoever learns of the failure finds it refusing.
        producer.leave(failed: hasFailed)
        promise.fulfil(result)
    }
}

/// What the writer does besides appending, in the order of the requests.
package struct LogRequest: Sendable {
    /// What is to be done.
    package enum Action: Sendable {
        /// Remembers that a group reads a topic.
        case register(GroupName)
        /// A group's committed offset.
        case load(GroupName, partition: Int)
        /// Stores a group's offset, unless the partition was revoked meanwhile.
        case store(GroupName, partition: Int, offset: Int64, isHeld: @Sendable () -> Bool)
        /// Removes records of a topic that are older than a moment, below each partition's floor.
        case remove(Topic, before: Int64, floors: [Int: Int64])
    }

    /// What is to be done.
    package let action: Action
    /// Where the answer goes: the offset that was asked for, `nil` for none and for the other actions.
    package let promise: LogPromise<Int64?>
}

/// What waits for the writer.
package struct LogWork: Sendable {
    /// Records, in the order of their arrival.
    package var appends: [Append]
    /// Everything else, in the order of its arrival.
    package var requests: [LogRequest]

    /// Work to be done together.
    package init(appends: [Append] = [], requests: [LogRequest] = []) {
        self.appends = appends
        self.requests = requests
    }

    /// Whether there is nothing to do.
    package var isEmpty: Bool { appends.isEmpty && requests.isEmpty }

    /// Two parts, the first of which is to be done before the second; `nil` for a single piece of work.
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
    /// The name's UTF-8, as names compare byte by byte.
    package let utf8: [UInt8]
    /// The topic.
    package let topic: Topic

    /// Names a group.
    package init(_ name: String, topic: Topic) {
        utf8 = Array(name.utf8)
        self.topic = topic
    }
}
