import AsyncPrimitives
import FanOutLink
import LinkWire
import SyncModel
import SyncWire
import Synchronization
import ZeroMQ

/// What callers of a ``RemoteFanOut`` and its thread share: who is connected and serves what, which questions are under way,
/// who wants to know of moves, and what is to be sent.
final class LinkState: Sendable {
    /// What became of a question.
    enum Reply: Sendable {
        case answer(LinkAnswer)
        /// Its connection went, or nothing came.
        case lost(String)
        /// Its caller gave up, or the link stops.
        case cancelled
    }

    /// A message for a fan-out, on one of its connections alone.
    struct Outgoing: Sendable {
        let fanOut: Int
        let connection: Int
        let bytes: [UInt8]
    }

    struct FanOut {
        /// The connection that is up; `nil` while there is none.
        var connection: Int?
        var ready: Set<Int> = []
        var underWay = 0
    }

    struct Question {
        let fanOut: Int
        let deadline: Duration
        let waiter: Promise<Reply>
    }

    struct State {
        var isStopping = false
        var beats = 0
        var fanOuts: [FanOut]
        /// Bounded by `RemoteFanOutConfiguration.maximumRequests` for each fan-out.
        var questions: [Int64: Question] = [:]
        var lastNumber: Int64 = 0
        /// As many as questions are begun and ended, and owners subscribed to, while the thread is on its way.
        var outgoing: [Outgoing] = []
        var watched = OwnerSubscriptions()
        /// The partitions that nobody serves.
        var unserved: Set<Int>
    }

    let bell: ZeroMQWakeup
    let state: Mutex<State>
    let partitioning: Partitioning
    /// One for each fan-out, from its address: the same in every gateway.
    let marks: [UInt32]

    init(addresses: [String], partitions: Int) throws(ZeroMQError) {
        bell = try ZeroMQWakeup()
        partitioning = Partitioning(count: partitions)
        marks = addresses.map { murmur2(Array($0.utf8).span.bytes) }
        state = Mutex(
            State(fanOuts: addresses.map { _ in FanOut() }, unserved: Set(0..<partitions)))
    }

    /// The fan-out that an owner's questions go to, of those that serve its partition; `nil`: nobody does.
    ///
    /// By the highest of pseudo-random numbers (rendezvous hashing): an owner stays with one for as long as it is there, and
    /// owners are spread evenly.
    ///
    /// - Parameter isOut: fan-outs not to ask.
    func place(of owner: SyncID, _ state: State, except isOut: (_ fanOut: Int, _ partition: Int) -> Bool) -> Int? {
        let partition = partitioning.partition(of: owner)
        var best: (fanOut: Int, score: UInt64)?
        for fanOut in state.fanOuts.indices
        where state.fanOuts[fanOut].ready.contains(partition) && !isOut(fanOut, partition) {
            let score = score(of: owner, fanOut)
            if best.map({ score > $0.score }) ?? true { best = (fanOut, score) }
        }
        return best?.fanOut
    }

    private func score(of owner: SyncID, _ fanOut: Int) -> UInt64 {
        var text = owner.text
        let hash = text.withUTF8 { murmur2($0.span.bytes) }
        // SplitMix64's mixing of both.
        var mixed = UInt64(hash) << 32 | UInt64(marks[fanOut])
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Changes the state and wakes the thread, which is what its own changes need, too: they may add to what is to be sent.
    func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let result = state.withLock { body(&$0) }
        bell.ring()
        return result
    }

    // MARK: The thread's side

    /// What has come since the last look.
    func take() -> (outgoing: [Outgoing], beats: Int, isStopping: Bool) {
        state.withLock { state in
            defer {
                state.outgoing = []
                state.beats = 0
            }
            return (state.outgoing, state.beats, state.isStopping)
        }
    }

    /// A fan-out is connected and says what it serves; whether what nobody serves is other than before.
    func describe(_ fanOut: Int, _ connection: Int, ready: Set<Int>) -> Set<Int>? {
        change { state in
            state.fanOuts[fanOut].connection = connection
            state.fanOuts[fanOut].ready = ready
            return settle(&state)
        }
    }

    /// A connection went: its questions are lost; what nobody serves now, if that is other than before.
    func lose(_ fanOut: Int, _ reason: String) -> Set<Int>? {
        let (waiters, unserved) = change { state -> ([Promise<Reply>], Set<Int>?) in
            state.fanOuts[fanOut] = FanOut()
            state.watched.forget(fanOut)
            let lost = state.questions.filter { $0.value.fanOut == fanOut }
            for number in lost.keys { state.questions[number] = nil }
            return (lost.values.map(\.waiter), settle(&state))
        }
        for waiter in waiters { waiter.fulfil(.lost(reason)) }
        return unserved
    }

    /// Has every owner watched where it is served best now, and says what nobody serves if that has changed.
    private func settle(_ state: inout State) -> Set<Int>? {
        for owner in state.watched.owners {
            let place = place(of: owner, state) { _, _ in false }
            state.watched.move(owner, to: place)
        }
        flushSubscriptions(&state)
        var unserved = Set(0..<partitioning.count)
        for fanOut in state.fanOuts { unserved.subtract(fanOut.ready) }
        guard unserved != state.unserved else { return nil }
        state.unserved = unserved
        return unserved
    }

    /// Writes what fan-outs are to be told of subscriptions.
    func flushSubscriptions(_ state: inout State) {
        let changes = state.watched.takeChanges()
        for (fanOut, owners) in changes.begun { send(.subscribe(owners), to: fanOut, &state) }
        for (fanOut, owners) in changes.ended { send(.unsubscribe(owners), to: fanOut, &state) }
    }

    /// Puts messages about owners in the line, in pieces far below the largest message.
    private func send(_ request: LinkRequest, to fanOut: Int, _ state: inout State) {
        guard let connection = state.fanOuts[fanOut].connection else { return }
        let pieces: [LinkRequest]
        switch request {
        case .subscribe(let owners): pieces = owners.pieces.map { .subscribe($0) }
        case .unsubscribe(let owners): pieces = owners.pieces.map { .unsubscribe($0) }
        default: pieces = [request]
        }
        for piece in pieces {
            state.outgoing.append(Outgoing(fanOut: fanOut, connection: connection, bytes: piece.encode()))
        }
    }

    /// An answer came.
    func answer(_ number: Int64, _ answer: LinkAnswer) {
        let question = state.withLock { state in
            let question = state.questions.removeValue(forKey: number)
            if let question { state.fanOuts[question.fanOut].underWay -= 1 }
            return question
        }
        // One that was cancelled may cross its answer.
        question?.waiter.fulfil(.answer(answer))
    }

    /// Gives up the questions whose time is long over.
    func expire(at now: Duration) {
        let waiters = change { state -> [Promise<Reply>] in
            let late = state.questions.filter { $0.value.deadline <= now }
            for (number, question) in late { end(number, question, &state) }
            for owner in state.watched.beat() { state.watched.end(owner) }
            flushSubscriptions(&state)
            return late.values.map(\.waiter)
        }
        for waiter in waiters { waiter.fulfil(.lost("the fan-out gave no answer in time")) }
    }

    /// Takes a question back from its fan-out.
    func end(_ number: Int64, _ question: Question, _ state: inout State) {
        state.questions[number] = nil
        state.fanOuts[question.fanOut].underWay -= 1
        send(.cancel([number]), to: question.fanOut, &state)
    }

    /// Those who want to know that owners moved.
    func moved(_ moves: [SyncID: TimeStamp]) -> [(Subscriber, SyncID, TimeStamp)] {
        state.withLock { state in
            moves.flatMap { owner, head in state.watched.subscribers(of: owner).map { ($0, owner, head) } }
        }
    }

    /// Ends every question, for good.
    func close() {
        let waiters = state.withLock { state in
            state.isStopping = true
            for fanOut in state.fanOuts.indices { state.fanOuts[fanOut] = FanOut() }
            defer { state.questions = [:] }
            return state.questions.values.map(\.waiter)
        }
        for waiter in waiters { waiter.fulfil(.cancelled) }
    }
}

extension [SyncID] {
    /// At most a thousand together.
    fileprivate var pieces: [[SyncID]] {
        stride(from: 0, to: count, by: 1000).map { Array(self[$0..<Swift.min($0 + 1000, count)]) }
    }
}
