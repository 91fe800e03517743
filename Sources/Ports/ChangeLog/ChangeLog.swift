/// The durable, partitioned log between the stages: Kafka, or SQLite on one machine.
///
/// Every adapter passes the same conformance suite. Failures are ``ChangeLogError``. A log that is closed ends what came
/// from it with ``ChangeLogError/Code/closed``.
package protocol ChangeLog: Sendable {
    /// Appends records.
    associatedtype Producer: LogProducer
    /// Reads one partition.
    associatedtype Reader: LogReader
    /// Shares the partitions of a topic with the other members of a group.
    associatedtype Membership: LogMembership

    /// How many partitions `uploads`, `changes`, `ordered` and `dead-letters` have; `control` has one.
    var partitionCount: Int { get }

    /// The largest record, key and value together, that the log takes.
    var maximumRecordSize: Int { get }

    /// Makes a producer. For each partition of `uploads` one producer enqueues at a time (I1).
    func producer() async throws(ChangeLogError) -> Producer

    /// Reads a partition from an offset on, one reader for each caller.
    ///
    /// An offset below the range's start, or above its end, fails with ``ChangeLogError/Code/outOfRange(_:)``: it is never
    /// moved silently.
    func reader(of partition: TopicPartition, from offset: Int64) async throws(ChangeLogError) -> Reader

    /// The offsets that a partition holds now.
    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange

    /// Joins a group that shares the partitions of a topic; from the first join on, retention spares what the group has not
    /// committed.
    func join(group: String, topic: Topic) async throws(ChangeLogError) -> Membership
}

/// Appends records in the order in which they are enqueued, without gaps (I1).
///
/// Once a record fails, whatever the cause, none behind it is appended to its partition: their receipts, and every later
/// call, fail with ``ChangeLogError/Code/producerFailed``. A log of several machines may have taken records of other
/// partitions by then, and the failed one itself where only its acknowledgement was lost. The producer must then be closed
/// and another one made.
package protocol LogProducer: AnyObject, Sendable {
    /// Puts records behind those enqueued before and returns; suspends while the queue is full, in the order of the calls.
    ///
    /// The receipt's records are durable together or in order; nothing enqueued later overtakes them in a partition. Calls
    /// from several tasks are ordered as they arrive; a caller that needs an order makes the calls one after the other.
    /// Cancellation does not cut the wait for room short.
    ///
    /// - Throws: ``ChangeLogError/Code/recordTooLarge(maximum:)`` or ``ChangeLogError/Code/unknownPartition`` for one of the
    ///   records: then none was accepted, and the producer continues. ``ChangeLogError/Code/producerFailed`` and
    ///   ``ChangeLogError/Code/closed`` for a producer that has ended.
    func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt

    /// Refuses further records and waits for what is enqueued; repeating it is harmless.
    func close() async

    /// Refuses further records, also those of calls that wait for room, and waits at most so long for what is enqueued.
    ///
    /// What the log does not have by then is dropped, although the log may still take it: the first of its appends fails with a
    /// retriable error, those behind it with ``ChangeLogError/Code/producerFailed``.
    func close(within limit: Duration) async
}

extension LogProducer {
    /// For logs of one machine, which take or refuse every record soon.
    package func close(within limit: Duration) async { await close() }

    /// Enqueues records and waits until they are durable.
    ///
    /// - Returns: their offsets, in the order of the records.
    @discardableResult
    package func append(_ records: [NewRecord]) async throws(ChangeLogError) -> [Int64] {
        try await enqueue(records).offsets()
    }
}

/// The promise of an append: resolves when the records are durable, or when they cannot be.
package struct AppendReceipt: Sendable {
    private let wait: @Sendable () async -> Result<[Int64], ChangeLogError>

    /// Makes a receipt of what an adapter waits on; ``LogPromise/receipt`` is one of what it will know later.
    package init(_ wait: @escaping @Sendable () async -> Result<[Int64], ChangeLogError>) {
        self.wait = wait
    }

    /// Waits until the records are durable.
    ///
    /// May be called more than once.
    ///
    /// - Returns: the records' offsets, in the order in which they were given.
    @discardableResult
    package func offsets() async throws(ChangeLogError) -> [Int64] { try await wait().get() }
}

/// Reads one partition in order.
package protocol LogReader: Sendable {
    /// The next records, at least one: waits, without polling, until there is one.
    ///
    /// One call at a time: what a call returns is not returned again, what a failing call would have returned is. Fewer
    /// records than the log has may come at once, and some that were fetched before retention took them.
    ///
    /// - Parameter maximumBytes: take no further record once those taken have reached this size (``LogRecord/size``); the
    ///   first is taken whatever its size.
    /// - Throws: ``ChangeLogError``, and `CancellationError` when the task is cancelled.
    func next(maximumBytes: Int) async throws -> [LogRecord]

    /// Ends the reader; a call that waits ends with ``ChangeLogError/Code/closed``.
    func close() async
}

/// A member of a consumer group: it works on the partitions that it is assigned, and commits how far it came.
package protocol LogMembership: Sendable {
    /// Runs a worker for each partition assigned, for as long as it is assigned, until the task is cancelled or the member
    /// leaves; called once.
    ///
    /// The member takes part from this call on. On a rebalance the workers of revoked partitions are cancelled and awaited
    /// before another member gets them, within a limit of the log; what they throw then is ignored. A worker that returns leaves its partition idle
    /// until a rebalance moves it. When a worker throws without having been cancelled, every worker is cancelled and
    /// awaited and the error is rethrown. When this ends, the member has left the group and its partitions go to the others.
    ///
    /// - Throws: what a worker threw; ``ChangeLogError/Code/closed`` when the log was closed, or the member had left before.
    func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws

    /// Leaves the group: ends ``run(_:)``, and returns when its workers have ended; repeating it is harmless.
    ///
    /// Not to be awaited in a worker, for whose end it waits.
    func leave() async
}

/// A partition that this member works on until its worker is cancelled.
package struct Assignment: Sendable {
    /// The partition.
    package let partition: TopicPartition
    private let load: @Sendable () async throws(ChangeLogError) -> Int64?
    private let store: @Sendable (Int64) async throws(ChangeLogError) -> Void

    /// Makes an assignment.
    package init(
        partition: TopicPartition, committed: @escaping @Sendable () async throws(ChangeLogError) -> Int64?,
        commit: @escaping @Sendable (Int64) async throws(ChangeLogError) -> Void
    ) {
        self.partition = partition
        load = committed
        store = commit
    }

    /// The group's committed offset: the next record to work on; `nil` where none is stored.
    package func committed() async throws(ChangeLogError) -> Int64? { try await load() }

    /// Stores the offset of the next record to work on, durably.
    ///
    /// - Throws: ``ChangeLogError/Code/fenced`` when the partition was revoked, even if this member got it again.
    package func commit(_ offset: Int64) async throws(ChangeLogError) { try await store(offset) }
}
