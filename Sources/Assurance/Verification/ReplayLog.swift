import ChangeLog

/// A log as the ordering stage sees it in a replay: `changes` ends at an offset, and what is published to `ordered` is
/// held against what is there.
struct ReplayLog<Base: ChangeLog>: ChangeLog {
    let base: Base
    /// The messages to be ordered: from where the tables stand to where `changes` ends.
    let work: Range<Int64>
    let published: OrderedComparison<Base>
    let progress: @Sendable (Int) -> Void

    var partitionCount: Int { base.partitionCount }
    var maximumRecordSize: Int { base.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> ReplayProducer<Base> { ReplayProducer(published) }

    func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> BoundedReader<Base.Reader> {
        let reader = try await base.reader(of: partition, from: offset)
        // Of results one is looked at to know the topic; they have no end here.
        guard partition.topic == .changes else { return BoundedReader(reader, from: offset, to: .max) }
        return BoundedReader(
            reader, from: offset, to: work.upperBound, countedFrom: work.lowerBound, progress: progress)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try await base.range(of: partition)
    }

    /// A replay orders its partitions itself.
    func join(group: String, topic: Topic) async throws(ChangeLogError) -> Base.Membership {
        preconditionFailure("a replay joins no group")
    }
}

/// Takes what ordering publishes: nothing is written, each record's offset is where `ordered` has it already.
final class ReplayProducer<Base: ChangeLog>: LogProducer {
    private let published: OrderedComparison<Base>

    init(_ published: OrderedComparison<Base>) { self.published = published }

    func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        var offsets: [Int64] = []
        offsets.reserveCapacity(records.count)
        for record in records { offsets.append(try await published.place(of: record)) }
        let found = offsets
        return AppendReceipt { .success(found) }
    }

    func close() async {}
}
