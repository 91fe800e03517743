import ChangeLog

/// A log as the ordering stage sees it in a replay: `changes` ends at an offset, and what is published to `ordered` is
/// held against what is there.
struct ReplayLog<Base: ChangeLog>: ChangeLog {
    let base: Base
    /// Where `changes` ends.
    let end: Int64
    let published: OrderedComparison<Base>
    let progress: @Sendable (Int) -> Void

    var partitionCount: Int { base.partitionCount }
    var maximumRecordSize: Int { base.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> ReplayProducer<Base> { ReplayProducer(published) }

    func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> BoundedReader<Base.Reader> {
        BoundedReader(try await base.reader(of: partition, from: offset), from: offset, to: end, progress: progress)
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
