import ChangeLog
import Kafka

/// The appends of one producer, in order: those that wait for room, the one that is being enqueued, those that wait for
/// the brokers.
///
/// Whoever enqueues has the turn, so that the records of one append stay together and nobody overtakes.
struct AppendQueue {
    /// Whose turn it is: `nil` to go ahead, or why not.
    typealias Turn = CheckedContinuation<ChangeLogError?, Never>

    /// What is to be done once the lock is let go.
    struct Actions {
        var fulfilled: [(promise: LogPromise<[Int64]>, result: Result<[Int64], ChangeLogError>)] = []
        var turns: [(turn: Turn, refusal: ChangeLogError?)] = []
        var closers: [CheckedContinuation<Void, Never>] = []
        /// Everything that is not delivered is to be given up.
        var isPurging = false

        func perform(purge: () -> Void) {
            if isPurging { purge() }
            for (promise, result) in fulfilled { promise.fulfil(result) }
            for (turn, refusal) in turns { turn.resume(returning: refusal) }
            for closer in closers { closer.resume() }
        }
    }

    private struct Append {
        let promise: LogPromise<[Int64]>
        let size: Int
        let firstTag: UInt
        /// Where each record goes.
        let destinations: [TopicPartition]
        var offsets: [Int64]
        /// Records without a report.
        var unreported: Int
        /// Why one of its records failed.
        var failure: ChangeLogError?
    }

    private let maximumBytes: Int
    /// In the order of their tags, without those before `first`, which are resolved.
    private var appends: [Append] = []
    private var first = 0
    private var bytes = 0
    private var nextTag: UInt = 1
    /// In the order of arrival, without those before `firstWaiting`; as many as callers.
    private var waiting: [(turn: Turn, size: Int)?] = []
    private var firstWaiting = 0
    private var isTurnTaken = false
    /// Why nothing is appended any more: what the first failing record failed with.
    private var failure: ChangeLogError?
    /// What ended the client, as it says itself.
    private var fatal: KafkaError?
    private var closedBy: ChangeLogError?
    private var closers: [CheckedContinuation<Void, Never>] = []

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// Whether nothing is under way.
    private var isIdle: Bool { first == appends.count && firstWaiting == waiting.count && !isTurnTaken }

    private var refusal: ChangeLogError? {
        guard let failure else { return fatal == nil ? closedBy : .producerFailed }
        return failure.code == .closed ? failure : .producerFailed
    }

    /// Asks for the turn.
    ///
    /// - Returns: whether it is the caller's at once; else it waits in line, unless it is refused.
    mutating func takeTurn(size: Int) throws(ChangeLogError) -> Bool {
        if let refusal { throw refusal }
        guard !isTurnTaken, firstWaiting == waiting.count, hasRoom(size) else { return false }
        isTurnTaken = true
        return true
    }

    /// Waits in line for the turn.
    mutating func wait(_ turn: Turn, size: Int) -> Actions {
        var actions = Actions()
        if let refusal {
            actions.turns.append((turn, refusal))
        } else {
            waiting.append((turn, size))
            handOverTurn(&actions)
        }
        return actions
    }

    /// Notes an append whose records are about to be enqueued.
    mutating func begin(_ records: [NewRecord], size: Int, _ promise: LogPromise<[Int64]>) -> UInt {
        let append = Append(
            promise: promise, size: size, firstTag: nextTag, destinations: records.map(\.destination),
            offsets: Array(repeating: -1, count: records.count), unreported: records.count)
        appends.append(append)
        bytes += size
        nextTag += UInt(records.count)
        return append.firstTag
    }

    /// Notes that the records before `count` are enqueued, and why those behind are not; the turn goes on.
    mutating func end(firstTag: UInt, count: Int, error: KafkaError?) -> Actions {
        var actions = Actions()
        // Resolved already only if all of its records were enqueued.
        if let error, let place = place(of: firstTag) {
            for number in count..<appends[place].destinations.count {
                report(place, number, offset: -1, error, &actions)
            }
        }
        isTurnTaken = false
        finishResolved(&actions)
        return actions
    }

    /// Gives the turn on without an append.
    mutating func skipTurn() -> Actions {
        var actions = Actions()
        isTurnTaken = false
        finishResolved(&actions)
        return actions
    }

    /// Notes what became of records.
    mutating func note(_ deliveries: [KafkaEvent.Delivery]) -> Actions {
        var actions = Actions()
        for delivery in deliveries {
            guard let place = place(of: delivery.tag) else {
                preconditionFailure("a delivery is reported once, of a record that was enqueued")
            }
            let number = Int(delivery.tag - appends[place].firstTag)
            report(place, number, offset: delivery.offset, delivery.error, &actions)
        }
        finishResolved(&actions)
        return actions
    }

    /// Notes that the client will deliver nothing more; each record's report is still to come.
    mutating func end(_ error: KafkaError) -> Actions {
        var actions = Actions()
        guard fatal == nil else { return actions }
        fatal = error
        actions.isPurging = true
        refuseWaiting(.producerFailed, &actions)
        finishResolved(&actions)
        return actions
    }

    /// Refuses what comes from now on.
    ///
    /// - Parameter isRefusingWaiting: whether those who wait for room are refused, too.
    mutating func close(_ error: ChangeLogError, isRefusingWaiting: Bool) -> Actions {
        var actions = Actions()
        if closedBy == nil { closedBy = error }
        if isRefusingWaiting { refuseWaiting(error, &actions) }
        finishResolved(&actions)
        return actions
    }

    /// Gives up what is not delivered.
    mutating func abandon(_ error: ChangeLogError) -> Actions {
        var actions = close(error, isRefusingWaiting: true)
        if failure == nil {
            failure = error
            actions.isPurging = true
        }
        return actions
    }

    /// Waits until nothing is under way.
    mutating func waitUntilIdle(_ closer: CheckedContinuation<Void, Never>) -> Bool {
        if isIdle { return true }
        closers.append(closer)
        return false
    }

    private func hasRoom(_ size: Int) -> Bool {
        // One append goes through whatever its size, or it never would.
        bytes == 0 || bytes + size <= maximumBytes
    }

    private mutating func report(
        _ place: Int, _ number: Int, offset: Int64, _ error: KafkaError?, _ actions: inout Actions
    ) {
        appends[place].unreported -= 1
        appends[place].offsets[number] = offset
        if let error = error ?? Self.fault(offset) {
            // Most records fail since another did, or the client has ended: then that is the cause.
            let isConsequence = Self.consequences.contains(error.code)
            let cause = ChangeLogError(
                isConsequence ? fatal ?? error : error, partition: appends[place].destinations[number], needing: .write)
            fail(cause, &actions)
            // The append that failed by itself tells why; those behind it, whose reports may come first, tell that the
            // producer has ended.
            if let failure, failure.code == .closed {
                appends[place].failure = failure
            } else if appends[place].failure == nil || !isConsequence {
                let isTelling = !hasToldCause && (!isConsequence || place == first)
                appends[place].failure = isTelling ? cause : appends[place].failure ?? .producerFailed
                if isTelling { hasToldCause = true }
            }
        }
        guard appends[place].unreported == 0 else { return }
        if place == first { skipResolved() }
        let append = appends[place]
        bytes -= append.size
        actions.fulfilled.append((append.promise, append.failure.map { .failure($0) } ?? .success(append.offsets)))
    }

    private static let consequences: Set<KafkaErrorCode> = [
        .fatal, .gaplessGuarantee, .purgedFromQueue, .purgedInFlight,
    ]

    /// A record that is known to be in the log, but not where: librdkafka concluded so from what was taken behind it.
    ///
    /// Nobody could name the record, so it counts as failed and is appended again, which readers must expect anyway.
    private static func fault(_ offset: Int64) -> KafkaError? {
        guard offset < 0 else { return nil }
        return KafkaError(.messageTimedOut, message: "the record's offset was lost on the way", isRetriable: true)
    }

    /// Whether an append has failed with the cause.
    private var hasToldCause = false

    private mutating func fail(_ error: ChangeLogError, _ actions: inout Actions) {
        guard failure == nil else { return }
        failure = error
        actions.isPurging = true
        refuseWaiting(.producerFailed, &actions)
    }

    private mutating func refuseWaiting(_ error: ChangeLogError, _ actions: inout Actions) {
        actions.turns += waiting[firstWaiting...].compactMap { $0 }.map { ($0.turn, error) }
        waiting = []
        firstWaiting = 0
    }

    private mutating func finishResolved(_ actions: inout Actions) {
        skipResolved()
        // Moving the rest down costs no more than what was resolved since the last time.
        if first * 2 >= appends.count {
            appends.removeFirst(first)
            first = 0
        }
        handOverTurn(&actions)
        guard isIdle else { return }
        actions.closers += closers
        closers = []
    }

    private mutating func skipResolved() {
        while first < appends.count, appends[first].unreported == 0 { first += 1 }
    }

    private mutating func handOverTurn(_ actions: inout Actions) {
        guard !isTurnTaken, firstWaiting < waiting.count, let next = waiting[firstWaiting], hasRoom(next.size) else {
            return
        }
        isTurnTaken = true
        waiting[firstWaiting] = nil
        firstWaiting += 1
        if firstWaiting * 2 >= waiting.count {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
        actions.turns.append((next.turn, nil))
    }

    /// The place of the append that a tag belongs to; `nil` where it is resolved.
    private func place(of tag: UInt) -> Int? {
        var low = first
        var high = appends.count
        while low < high {
            let middle = (low + high) / 2
            if appends[middle].firstTag <= tag { low = middle + 1 } else { high = middle }
        }
        guard low > first, appends[low - 1].unreported > 0 else { return nil }
        return low - 1
    }
}
