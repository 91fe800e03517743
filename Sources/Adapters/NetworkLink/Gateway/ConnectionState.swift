import AsyncPrimitives
import FanOutLink
import SyncModel
import SyncWire
import Synchronization
import ZeroMQ

/// What callers of a ``RemoteFanOut`` and its thread share: the connected fan-outs and what they serve, the pending requests,
/// the subscriptions, and the messages to send.
final class ConnectionState: Sendable {
    /// How a request ended.
    enum Completion: Sendable {
        case response(LinkResponse)
        /// The connection was lost, or no response arrived in time.
        case lost(String)
        /// The caller was cancelled, or the link stops.
        case cancelled
    }

    /// A message for one connection; dropped if the fan-out has another connection by then.
    struct OutgoingMessage: Sendable {
        let fanOut: Int
        let connection: Int
        let bytes: [UInt8]
    }

    struct FanOut {
        /// The number of the connection that is up, or `nil`.
        var connection: Int?
        var ready: Set<Int> = []
        var pendingCount = 0
    }

    struct PendingRequest {
        let fanOut: Int
        let deadline: Duration
        let waiter: Promise<Completion>
    }

    struct State {
        var isStopping = false
        /// Heartbeats since the thread last looked.
        var heartbeats = 0
        var fanOuts: [FanOut]
        var progress: StreamProgress
        /// Bounded by `RemoteFanOutConfiguration.maximumRequests` for each fan-out.
        var pending: [Int64: PendingRequest] = [:]
        var lastNumber: Int64 = 0
        /// Bounded by the requests and subscriptions that begin and end until the thread has woken.
        var outgoing: [OutgoingMessage] = []
        var subscriptions = OwnerSubscriptions()
        /// The partitions that no fan-out serves.
        var unserved: Set<Int>
    }

    let wakeup: ZeroMQWakeup
    let state: Mutex<State>
    let partitioning: Partitioning
    /// A hash of each fan-out's address, so that every gateway gets the same scores.
    private let addressHashes: [UInt32]

    init(addresses: [String], partitions: Int) throws(ZeroMQError) {
        wakeup = try ZeroMQWakeup()
        partitioning = Partitioning(count: partitions)
        addressHashes = addresses.map { murmur2(Array($0.utf8).span.bytes) }
        state = Mutex(
            State(
                fanOuts: addresses.map { _ in FanOut() }, progress: StreamProgress(fanOuts: addresses.count),
                unserved: Set(0..<partitions)))
    }

    /// The fan-out for an owner's requests among those that serve its partition; `nil` if none does.
    ///
    /// Chosen by rendezvous hashing, the highest pseudo-random score: an owner stays with one fan-out for as long as that serves
    /// it, and owners are spread evenly. Fan-outs that lag are chosen only where no other one serves the partition.
    func fanOut(
        of owner: SyncID, _ state: State, except isExcluded: (_ fanOut: Int, _ partition: Int) -> Bool
    ) -> Int? {
        let partition = partitioning.partition(of: owner)
        var best: (fanOut: Int, isCurrent: Bool, score: UInt64)?
        for fanOut in state.fanOuts.indices
        where state.fanOuts[fanOut].ready.contains(partition) && !isExcluded(fanOut, partition) {
            let isCurrent = !state.progress.isLagging(fanOut, in: partition)
            let score = score(of: owner, fanOut)
            let isBetter = best.map { isCurrent == $0.isCurrent ? score > $0.score : isCurrent } ?? true
            if isBetter { best = (fanOut, isCurrent, score) }
        }
        return best?.fanOut
    }

    private func score(of owner: SyncID, _ fanOut: Int) -> UInt64 {
        var text = owner.text
        let hash = text.withUTF8 { murmur2($0.span.bytes) }
        // The finalizer of SplitMix64.
        var mixed = UInt64(hash) << 32 | UInt64(addressHashes[fanOut])
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Changes the state and wakes the thread; used by the thread, too, since a change may add outgoing messages.
    func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let result = state.withLock { body(&$0) }
        wakeup.wake()
        return result
    }

    // MARK: The thread's side

    /// Takes what was added since the last call.
    func take() -> (outgoing: [OutgoingMessage], heartbeats: Int, isStopping: Bool) {
        state.withLock { state in
            defer { (state.outgoing, state.heartbeats) = ([], 0) }
            return (state.outgoing, state.heartbeats, state.isStopping)
        }
    }

    /// Records a fan-out's description.
    ///
    /// - Returns: the unserved partitions if they have changed, else `nil`.
    func connected(_ fanOut: Int, _ connection: Int, ready: Set<Int>) -> Set<Int>? {
        change { state in
            state.fanOuts[fanOut].connection = connection
            state.fanOuts[fanOut].ready = ready
            return reassign(&state)
        }
    }

    /// Records the loss of a connection, which fails its requests.
    ///
    /// - Returns: the unserved partitions if they have changed, else `nil`.
    func disconnected(_ fanOut: Int, _ reason: String) -> Set<Int>? {
        let (waiters, unserved) = change { state -> ([Promise<Completion>], Set<Int>?) in
            state.fanOuts[fanOut] = FanOut()
            state.progress.forget(fanOut)
            state.subscriptions.removeAll(of: fanOut)
            let lost = state.pending.filter { $0.value.fanOut == fanOut }
            for number in lost.keys { state.pending[number] = nil }
            return (lost.values.map(\.waiter), reassign(&state))
        }
        for waiter in waiters { waiter.fulfil(.lost(reason)) }
        return unserved
    }

    /// Records what a fan-out serves.
    func passed(_ upload: UploadReference, of fanOut: Int) {
        state.withLock { $0.progress.record(upload, of: fanOut) }
    }

    /// Compares the fan-outs' streams, and moves the subscriptions of owners to those that do not lag.
    func compareProgress() {
        change { state in
            // Others serve the same partitions, so none becomes unserved.
            if state.progress.heartbeat(ready: state.fanOuts.map(\.ready)) { _ = reassign(&state) }
        }
    }

    /// Moves subscriptions to the fan-outs that now serve their owners; returns the unserved partitions if they have changed.
    private func reassign(_ state: inout State) -> Set<Int>? {
        for owner in state.subscriptions.owners {
            let fanOut = fanOut(of: owner, state) { _, _ in false }
            state.subscriptions.move(owner, to: fanOut)
        }
        sendSubscriptions(&state)
        var unserved = Set(0..<partitioning.count)
        for fanOut in state.fanOuts { unserved.subtract(fanOut.ready) }
        guard unserved != state.unserved else { return nil }
        state.unserved = unserved
        return unserved
    }

    /// Enqueues the messages for changed subscriptions.
    func sendSubscriptions(_ state: inout State) {
        let changes = state.subscriptions.takeChanges()
        for (fanOut, owners) in changes.begun {
            for chunk in owners.chunks { send(.subscribe(chunk), to: fanOut, &state) }
        }
        for (fanOut, owners) in changes.ended {
            for chunk in owners.chunks { send(.unsubscribe(chunk), to: fanOut, &state) }
        }
    }

    private func send(_ message: GatewayMessage, to fanOut: Int, _ state: inout State) {
        guard let connection = state.fanOuts[fanOut].connection else { return }
        state.outgoing.append(OutgoingMessage(fanOut: fanOut, connection: connection, bytes: message.encode()))
    }

    /// Completes a request; a response to a request that was cancelled meanwhile is dropped.
    func complete(_ number: Int64, _ response: LinkResponse) {
        let request = state.withLock { state in
            let request = state.pending.removeValue(forKey: number)
            if let request { state.fanOuts[request.fanOut].pendingCount -= 1 }
            return request
        }
        request?.waiter.fulfil(.response(response))
    }

    /// Fails the requests past their deadline, and ends the subscriptions that have had no subscriber for long enough.
    func expire(at now: Duration) {
        let waiters = change { state -> [Promise<Completion>] in
            let late = state.pending.filter { $0.value.deadline <= now }
            for (number, request) in late { cancel(number, request, &state) }
            for owner in state.subscriptions.heartbeat() { state.subscriptions.end(owner) }
            sendSubscriptions(&state)
            return late.values.map(\.waiter)
        }
        for waiter in waiters { waiter.fulfil(.lost("the fan-out did not respond in time")) }
    }

    /// Removes a request and cancels it at its fan-out.
    func cancel(_ number: Int64, _ request: PendingRequest, _ state: inout State) {
        state.pending[number] = nil
        state.fanOuts[request.fanOut].pendingCount -= 1
        send(.cancel([number]), to: request.fanOut, &state)
    }

    /// The subscribers of each owner whose head has moved.
    func subscribers(to moves: [SyncID: TimeStamp]) -> [(Subscriber, SyncID, TimeStamp)] {
        state.withLock { state in
            moves.flatMap { owner, head in state.subscriptions.subscribers(to: owner).map { ($0, owner, head) } }
        }
    }

    /// Ends every request, and refuses further ones.
    func close() {
        let waiters = state.withLock { state in
            state.isStopping = true
            for fanOut in state.fanOuts.indices { state.fanOuts[fanOut] = FanOut() }
            defer { state.pending = [:] }
            return state.pending.values.map(\.waiter)
        }
        for waiter in waiters { waiter.fulfil(.cancelled) }
    }
}

extension [SyncID] {
    /// At most a thousand owners each, far below the largest message.
    fileprivate var chunks: [[SyncID]] {
        stride(from: 0, to: count, by: 1000).map { Array(self[$0..<Swift.min($0 + 1000, count)]) }
    }
}
