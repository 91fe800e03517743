import AsyncPrimitives
import ChangeLog
import Kafka

/// The appends of one producer, in order: those that wait for space in the queue, the one that is being enqueued, and those that
/// wait for the brokers.
///
/// Only one caller enqueues at a time, so that the records of an append stay together and appends keep the order of their calls.
/// An append larger than the queue is enqueued in slices, each when there is space for it.
/// Every change returns actions, which the caller performs after it has released its lock.
struct AppendQueue {
    /// A caller that waits to enqueue: resumed with `nil` when it may, or with the error that refuses it.
    typealias Waiter = CheckedContinuation<ChangeLogError?, Never>

    struct Actions {
        var fulfilled: [(promise: LogPromise<[Int64]>, result: Result<[Int64], ChangeLogError>)] = []
        var resumed: [(waiter: Waiter, refusal: ChangeLogError?)] = []
        var closers: [CheckedContinuation<Void, Never>] = []
        /// The partitions of records that have a delivery report, each as often as it has such records.
        var delivered: [TopicPartition] = []
        /// Whether everything that is not delivered must be dropped.
        var isPurging = false

        func resume() {
            for (promise, result) in fulfilled { promise.fulfilOnce(result) }
            for (waiter, refusal) in resumed { waiter.resume(returning: refusal) }
            for closer in closers { closer.resume() }
        }
    }

    /// A slice of what a caller appends; most are the whole.
    private struct Append {
        let promise: LogPromise<[Int64]>
        let size: Int
        /// The tag of the first record; the others follow it.
        let firstTag: UInt
        let destinations: [TopicPartition]
        var offsets: [Int64]
        /// The number of records without a delivery report.
        var undelivered: Int
        /// The error of one of its records.
        var failure: ChangeLogError?
    }

    private let maximumBytes: Int
    /// In the order of their tags; those before `first` are resolved.
    private var appends: [Append] = []
    private var first = 0
    /// The size of the unresolved appends.
    private var bytes = 0
    private var nextTag: UInt = 1
    /// In the order of their calls; those before `firstWaiting` were resumed.
    private var waiting: [(waiter: Waiter, size: Int)?] = []
    private var firstWaiting = 0
    /// Whether a caller is enqueuing.
    private var isEnqueuing = false
    /// That caller, while it waits for space for its next slice.
    private var waitingForSlice: (waiter: Waiter, size: Int)?
    /// The error of the first record that failed; nothing is appended after it.
    private var failure: ChangeLogError?
    /// Whether an append has failed with that error, and not only with `producerFailed`.
    private var isCauseReported = false
    /// Why what is not delivered was dropped, if no record had failed by then.
    private var abandonedBy: ChangeLogError?
    /// The client's fatal error.
    private var fatal: KafkaError?
    private var closedBy: ChangeLogError?
    private var closers: [CheckedContinuation<Void, Never>] = []

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    private var isIdle: Bool { first == appends.count && firstWaiting == waiting.count && !isEnqueuing }

    /// Why further appends fail.
    private var refusal: ChangeLogError? {
        guard let failure else { return fatal == nil ? closedBy : .producerFailed }
        return failure.code == .closed ? failure : .producerFailed
    }

    // MARK: Enqueuing

    /// Begins to enqueue, if there is space and no other caller is enqueuing or waiting.
    ///
    /// - Returns: false if the caller must wait, see ``wait(_:size:)``.
    mutating func acquire(size: Int) throws(ChangeLogError) -> Bool {
        if let refusal { throw refusal }
        guard !isEnqueuing, firstWaiting == waiting.count, hasSpace(size) else { return false }
        isEnqueuing = true
        return true
    }

    /// Waits for space for the next slice of the caller that is enqueuing, which has the turn until ``release()``.
    mutating func waitForSlice(_ waiter: Waiter, size: Int) -> Actions {
        var actions = Actions()
        // A producer that was only closed still enqueues the rest of an append.
        if failure != nil || fatal != nil, let refusal {
            actions.resumed.append((waiter, refusal))
        } else {
            waitingForSlice = (waiter, size)
            resumeNext(&actions)
        }
        return actions
    }

    mutating func wait(_ waiter: Waiter, size: Int) -> Actions {
        var actions = Actions()
        if let refusal {
            actions.resumed.append((waiter, refusal))
        } else {
            waiting.append((waiter, size))
            resumeNext(&actions)
        }
        return actions
    }

    /// Adds an append whose records are about to be enqueued; returns the tag of the first record.
    mutating func begin(_ records: ArraySlice<NewRecord>, size: Int, _ promise: LogPromise<[Int64]>) -> UInt {
        let append = Append(
            promise: promise, size: size, firstTag: nextTag, destinations: records.map(\.destination),
            offsets: Array(repeating: -1, count: records.count), undelivered: records.count)
        appends.append(append)
        bytes += size
        nextTag += UInt(records.count)
        return append.firstTag
    }

    /// Ends the turn of the caller that was enqueuing.
    mutating func release() -> Actions {
        var actions = Actions()
        isEnqueuing = false
        finishResolved(&actions)
        return actions
    }

    // MARK: Delivery

    mutating func record(_ deliveries: [KafkaEvent.Delivery]) -> Actions {
        var actions = Actions()
        for delivery in deliveries {
            guard let index = index(of: delivery.tag) else {
                preconditionFailure("a record that was enqueued is reported once")
            }
            let number = Int(delivery.tag - appends[index].firstTag)
            report(index, number, offset: delivery.offset, delivery.error, &actions)
        }
        finishResolved(&actions)
        return actions
    }

    /// Records the client's fatal error: it delivers nothing more, and reports each record as failed.
    mutating func fail(_ error: KafkaError) -> Actions {
        var actions = Actions()
        guard fatal == nil else { return actions }
        fatal = error
        actions.isPurging = true
        refuseWaiting(.producerFailed, &actions)
        finishResolved(&actions)
        return actions
    }

    // MARK: Closing

    /// Refuses further appends.
    ///
    /// - Parameter isRefusingWaiting: whether callers that wait for space are refused, too.
    mutating func close(_ error: ChangeLogError, isRefusingWaiting: Bool) -> Actions {
        var actions = Actions()
        if closedBy == nil { closedBy = error }
        if isRefusingWaiting { refuseWaiting(error, &actions) }
        finishResolved(&actions)
        return actions
    }

    /// Refuses further appends, and drops what is not delivered.
    mutating func abandon(_ error: ChangeLogError) -> Actions {
        var actions = close(error, isRefusingWaiting: true)
        if failure == nil {
            failure = error
            abandonedBy = error
            actions.isPurging = true
        }
        return actions
    }

    /// Returns true if nothing is pending; else the closer is resumed then.
    mutating func waitUntilIdle(_ closer: CheckedContinuation<Void, Never>) -> Bool {
        if isIdle { return true }
        closers.append(closer)
        return false
    }

    // MARK: Implementation

    private func hasSpace(_ size: Int) -> Bool {
        // A record larger than the queue is accepted when the queue is empty.
        bytes == 0 || bytes + size <= maximumBytes
    }

    /// Records the delivery of one record of an append.
    private mutating func report(
        _ index: Int, _ number: Int, offset: Int64, _ error: KafkaError?, _ actions: inout Actions
    ) {
        appends[index].undelivered -= 1
        appends[index].offsets[number] = offset
        actions.delivered.append(appends[index].destinations[number])
        if let error = error ?? Self.missingOffset(offset) {
            // Most records fail because an earlier one did, because they were dropped, or because of the fatal error: then that
            // is the cause.
            let isConsequence = Self.consequences.contains(error.code)
            let reported = ChangeLogError(
                isConsequence ? fatal ?? error : error, partition: appends[index].destinations[number], needing: .write)
            let cause = isConsequence ? abandonedBy ?? reported : reported
            fail(cause, &actions)
            // One append fails with the cause, if possible the one that failed first. The others, whose reports may arrive
            // earlier, fail with `producerFailed`.
            if let failure, failure.code == .closed {
                appends[index].failure = failure
            } else if appends[index].failure == nil || !isConsequence {
                let reportsCause = !isCauseReported && (!isConsequence || index == first)
                appends[index].failure = reportsCause ? cause : appends[index].failure ?? .producerFailed
                if reportsCause { isCauseReported = true }
            }
        }
        guard appends[index].undelivered == 0 else { return }
        if index == first { skipResolved() }
        let append = appends[index]
        bytes -= append.size
        actions.fulfilled.append((append.promise, append.failure.map { .failure($0) } ?? .success(append.offsets)))
    }

    private static let consequences: Set<KafkaErrorCode> = [
        .fatal, .gaplessGuarantee, .purgedFromQueue, .purgedInFlight,
    ]

    /// The error of a record that is in the log at an unknown offset, as librdkafka has inferred from a later response.
    ///
    /// The offset is needed, so the record counts as failed and is appended again; readers drop such duplicates (I2).
    private static func missingOffset(_ offset: Int64) -> KafkaError? {
        guard offset < 0 else { return nil }
        return KafkaError(
            .messageTimedOut, message: "the record was delivered, but its offset is unknown", isRetriable: true)
    }

    private mutating func fail(_ error: ChangeLogError, _ actions: inout Actions) {
        guard failure == nil else { return }
        failure = error
        actions.isPurging = true
        refuseWaiting(.producerFailed, &actions)
    }

    private mutating func refuseWaiting(_ error: ChangeLogError, _ actions: inout Actions) {
        if let (waiter, _) = waitingForSlice.take() { actions.resumed.append((waiter, error)) }
        actions.resumed += waiting[firstWaiting...].compactMap { $0 }.map { ($0.waiter, error) }
        waiting = []
        firstWaiting = 0
    }

    private mutating func finishResolved(_ actions: inout Actions) {
        skipResolved()
        // Moving the others costs at most as much as what was resolved since the last time.
        if first * 2 >= appends.count {
            appends.removeFirst(first)
            first = 0
        }
        resumeNext(&actions)
        guard isIdle else { return }
        actions.closers += closers
        closers = []
    }

    private mutating func skipResolved() {
        while first < appends.count, appends[first].undelivered == 0 { first += 1 }
    }

    /// Lets the next waiting caller enqueue, if there is space.
    private mutating func resumeNext(_ actions: inout Actions) {
        if let (waiter, size) = waitingForSlice, hasSpace(size) {
            waitingForSlice = nil
            actions.resumed.append((waiter, nil))
        }
        guard !isEnqueuing, firstWaiting < waiting.count, let next = waiting[firstWaiting], hasSpace(next.size) else {
            return
        }
        isEnqueuing = true
        waiting[firstWaiting] = nil
        firstWaiting += 1
        if firstWaiting * 2 >= waiting.count {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
        actions.resumed.append((next.waiter, nil))
    }

    /// The index of the append with a tag; `nil` if it is resolved.
    private func index(of tag: UInt) -> Int? {
        var low = first
        var high = appends.count
        while low < high {
            let middle = (low + high) / 2
            if appends[middle].firstTag <= tag { low = middle + 1 } else { high = middle }
        }
        guard low > first, appends[low - 1].undelivered > 0 else { return nil }
        return low - 1
    }
}
