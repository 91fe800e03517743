import AsyncPrimitives
import FanOutLink
import SyncModel
import Synchronization

/// The state of a partition in memory: whether it is served, the heads of all owners, and waiting callers.
///
/// A pair (owner, device) takes 40 bytes, an owner about 150 more; plus the ids.
final class ServedPartition: Sendable {
    enum Interruption: Sendable, Hashable {
        case stop
        case damage(String)
        case reopen
    }

    /// An owner's heads and the generation of their file.
    struct HeadSnapshot: Sendable {
        let heads: OwnerHeads
        /// Incremented for every new file; readers reject reads of another generation.
        let generation: Int
    }

    fileprivate enum Phase {
        case notReady(String)
        case ready
        case stopped
    }

    fileprivate struct State {
        var phase = Phase.notReady("the stream is being opened")
        var generation = 0
        var owners: [SyncID: OwnerHeads] = [:]
        var nextOffset: Int64 = 0
        /// While the stream catches up after it was opened: the offset from which on it is served.
        var servedFrom: Int64?
        var interruption: Promise<Interruption>?
        /// As many as ``FanOutConfiguration/maximumWaiters``.
        var catchUps: [ObjectIdentifier: CatchUp] = [:]
    }

    let number: Int
    let path: String
    let outcomes: OutcomeRegistry
    let subscriptions = Subscriptions()
    private let maximumWaiters: Int
    private let state = Mutex(State())

    init(number: Int, _ configuration: FanOutConfiguration) {
        self.number = number
        path = "\(configuration.directory)/fanout-\(number).db"
        maximumWaiters = configuration.maximumWaiters
        outcomes = OutcomeRegistry(limits: configuration)
    }

    // MARK: Reading

    func headSnapshot(of owner: SyncID) throws(FanOutError) -> HeadSnapshot {
        try state.withLock { state throws(FanOutError) in
            try state.requireReady()
            return HeadSnapshot(heads: state.owners[owner] ?? OwnerHeads(), generation: state.generation)
        }
    }

    /// `nil` unless the stream is served.
    func readyHeads(of owner: SyncID) -> OwnerHeads? {
        state.withLock { state in
            guard case .ready = state.phase else { return nil }
            return state.owners[owner] ?? OwnerHeads()
        }
    }

    var isReady: Bool {
        state.withLock { state in
            if case .ready = state.phase { true } else { false }
        }
    }

    /// An owner's heads after the last commit; `nil` for an owner that is not in the file.
    func committedHeads(of owner: SyncID) -> OwnerHeads? { state.withLock { $0.owners[owner] } }

    /// Throws unless the file of this generation is served.
    func require(generation: Int) throws(FanOutError) {
        try state.withLock { state throws(FanOutError) in
            try state.requireReady()
            guard state.generation == generation else { throw .notReady("the stream was rebuilt in the meantime") }
        }
    }

    /// The generation of the served file.
    func generation() throws(FanOutError) -> Int {
        try state.withLock { state throws(FanOutError) in
            try state.requireReady()
            return state.generation
        }
    }

    /// The generation of the newest file, served or not.
    var newestGeneration: Int { state.withLock { $0.generation } }

    var ownerCount: Int { state.withLock { $0.owners.count } }

    /// The offset in `ordered` of the next record.
    var nextOffset: Int64 { state.withLock { $0.nextOffset } }

    /// Waits until an owner's head is at least `timeStamp`, or everything before an offset of `ordered` is applied.
    ///
    /// - Returns: false after a timeout.
    func catchUp(
        _ owner: SyncID, to timeStamp: TimeStamp, or offset: Int64, within limit: Duration, clock: any Clock<Duration>
    ) async throws(FanOutError) -> Bool {
        let waiter = Promise<CatchUp.End>()
        let catchUp = CatchUp(owner: owner, timeStamp: timeStamp, offset: offset, waiter: waiter)
        try state.withLock { state throws(FanOutError) in
            if case .stopped = state.phase { throw .closed }
            if catchUp.isReached(state.owners, state.nextOffset) {
                waiter.fulfil(.reached)
            } else if state.catchUps.count < maximumWaiters {
                state.catchUps[ObjectIdentifier(waiter)] = catchUp
            } else {
                throw .notReady("too many callers wait for the stream")
            }
        }
        let end = await waiter.value(within: limit, clock: clock, late: .late, cancelled: .closed)
        state.withLock { _ = $0.catchUps.removeValue(forKey: ObjectIdentifier(waiter)) }
        switch end {
        case .reached: return true
        case .late: return false
        case .closed: throw .closed
        }
    }

    // MARK: Writing

    /// Starts a round of serving, which ends when the waiter is fulfilled; `nil` after ``stop()``.
    func beginServing() -> Promise<Interruption>? {
        state.withLock { state in
            if case .stopped = state.phase { return nil }
            let interruption = Promise<Interruption>()
            state.interruption = interruption
            return interruption
        }
    }

    /// Publishes a file that was opened, and serves it once it has everything before an offset of `ordered`.
    func markOpened(_ owners: [SyncID: OwnerHeads], position: StreamPosition, servedFrom end: Int64) {
        let subscribed = subscriptions.owners
        let (moved, reached) = state.withLock { state -> ([SyncID: OwnerHeads], [CatchUp]) in
            if case .stopped = state.phase { return ([:], []) }
            var moved: [SyncID: OwnerHeads] = [:]
            for owner in subscribed {
                guard let heads = owners[owner], heads.head > state.owners[owner]?.head ?? .zero else { continue }
                moved[owner] = heads
            }
            state.owners = owners
            state.nextOffset = position.nextOffset
            state.generation += 1
            state.servedFrom = end
            state.phase = .notReady("the stream has reached offset \(position.nextOffset) of \(end) of ordered")
            state.serveIfCaughtUp()
            return (moved, state.takeReached())
        }
        for catchUp in reached { catchUp.waiter.fulfil(.reached) }
        outcomes.reset(position)
        subscriptions.notify(moved)
    }

    /// Serves a stream that cannot catch up further.
    ///
    /// - Returns: false where it served before, or is not open.
    func serveWithoutCatchingUp() -> Bool {
        state.withLock { state in
            guard case .notReady = state.phase, state.servedFrom != nil else { return false }
            state.phase = .ready
            state.servedFrom = nil
            return true
        }
    }

    /// Stops serving until ``markOpened(_:position:servedFrom:)``.
    func markNotReady(_ reason: String) {
        state.withLock { state in
            if case .stopped = state.phase { return }
            state.servedFrom = nil
            state.phase = .notReady(reason)
        }
    }

    /// Publishes a committed transaction to readers, waiters and subscribers.
    func publish(_ applied: AppliedRecords) {
        let (moved, reached) = state.withLock { state -> ([SyncID: OwnerHeads], [CatchUp]) in
            var moved: [SyncID: OwnerHeads] = [:]
            for (owner, heads) in applied.heads {
                if heads.head > state.owners[owner]?.head ?? .zero { moved[owner] = heads }
                state.owners[owner] = heads
            }
            state.nextOffset = applied.position.nextOffset
            state.serveIfCaughtUp()
            return (moved, state.takeReached())
        }
        for catchUp in reached { catchUp.waiter.fulfil(.reached) }
        outcomes.post(applied.pieces, position: applied.position)
        subscriptions.notify(moved)
    }

    /// Stops serving a damaged file and interrupts the round, so that the file is rebuilt.
    func reportDamage(_ reason: String, generation: Int) {
        let interruption = state.withLock { state -> Promise<Interruption>? in
            guard case .ready = state.phase, state.generation == generation else { return nil }
            state.phase = .notReady("the stream is being rebuilt: \(reason)")
            return state.interruption
        }
        interruption?.fulfil(.damage(reason))
    }

    func stop() {
        let (interruption, waiting) = state.withLock { state in
            state.phase = .stopped
            let waiting = Array(state.catchUps.values)
            state.catchUps = [:]
            return (state.interruption, waiting)
        }
        interruption?.fulfil(.stop)
        for catchUp in waiting { catchUp.waiter.fulfil(.closed) }
        outcomes.close()
    }
}

extension ServedPartition.State {
    fileprivate func requireReady() throws(FanOutError) {
        switch phase {
        case .ready: return
        case .notReady(let reason): throw .notReady(reason)
        case .stopped: throw .closed
        }
    }

    fileprivate mutating func serveIfCaughtUp() {
        guard case .notReady = phase, let end = servedFrom, nextOffset >= end else { return }
        phase = .ready
        servedFrom = nil
    }

    /// Removes and returns the callers whose wait is over.
    fileprivate mutating func takeReached() -> [CatchUp] {
        if catchUps.isEmpty { return [] }
        let reached = catchUps.values.filter { $0.isReached(owners, nextOffset) }
        for catchUp in reached { catchUps[ObjectIdentifier(catchUp.waiter)] = nil }
        return reached
    }
}

/// A caller whose vector is above the stream's head.
private struct CatchUp {
    enum End: Sendable {
        case reached
        case late
        case closed
    }

    let owner: SyncID
    let timeStamp: TimeStamp
    let offset: Int64
    let waiter: Promise<End>

    func isReached(_ owners: [SyncID: OwnerHeads], _ nextOffset: Int64) -> Bool {
        nextOffset >= offset || owners[owner]?.head ?? .zero >= timeStamp
    }
}
