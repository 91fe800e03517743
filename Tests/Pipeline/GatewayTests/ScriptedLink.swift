import FanOutLink
import SyncModel
import Synchronization
import TestSignals

/// A link that answers what a test says; what it is asked is kept.
///
/// By default every owner is drained and without rows, and every outcome is pending.
final class ScriptedLink: FanOutLink {
    /// What is asked of the outcome of a part.
    struct Kept: Hashable {
        let batch: Int64
        let owner: SyncID
    }

    private struct State {
        var rows: [SyncID: OwnerRows] = [:]
        var historyChanged: Set<SyncID> = []
        var answersIdle = true
        var pullFailure: FanOutError?
        var behind: [SyncID: Waiting] = [:]
        var held: [SyncID: Waiting] = [:]
        var headsFailure: FanOutError?
        var kept: [Kept: PartOutcome] = [:]
        var parts: [Int: PartOutcome] = [:]
        var outcomeFailure: FanOutError?
        /// Whether outcomes with rows come from a fan-out that must be waited for.
        var rowsAreBehind = false
        var gate: Waiting?
        var asked: [PartReference] = []
        var windows: [RowWindow?] = []
        var withins: [Duration] = []
        var pulls: [PagePull] = []
        var queries: [StreamQuery] = []
        var answer: (@Sendable (StreamQuery) -> StreamRows)?
        var heldQuery: Waiting?
        var pageCount: Int?
        var next = 0
        var subscribers: [Int: Subscriber] = [:]
    }

    private struct Subscriber {
        let owners: [SyncID]
        let moved: @Sendable (SyncID, TimeStamp) -> Void
    }

    /// Something that is held back until it is let go.
    private final class Waiting: Sendable {
        let signal = Signal<Void>()
    }

    private let state = Mutex(State())
    /// One for each outcome asked for, before it is answered.
    let outcomesAsked = Signal<PartReference>()
    /// One for each pull that was asked for.
    let pullsAsked = Signal<PagePull>()
    /// One for each read of rows that is held back.
    let queriesHeld = Signal<Void>()
    /// One for each outcome that was held back and is answered.
    private let released = Signal<Void>()
    /// One for each subscription, with how many there are.
    let subscriptions = Signal<Int>()
    /// One for each subscription that was cancelled, with how many are left.
    let cancellations = Signal<Int>()

    // MARK: What it is told

    func set(_ rows: OwnerRows, of owner: SyncID) { state.withLock { $0.rows[owner] = rows } }
    func setHistoryChanged(_ owner: SyncID) { state.withLock { _ = $0.historyChanged.insert(owner) } }
    func setIdle(_ answersIdle: Bool) { state.withLock { $0.answersIdle = answersIdle } }
    func failPulls(_ error: FanOutError?) { state.withLock { $0.pullFailure = error } }
    /// Has pulls of an owner wait for its stream, or fail if they do not wait.
    func holdStream(of owner: SyncID) { state.withLock { $0.behind[owner] = Waiting() } }
    func releaseStream(of owner: SyncID) {
        let waiting = state.withLock { $0.behind.removeValue(forKey: owner) }
        waiting?.signal.send(())
    }
    /// Has pulls of an owner take until `releasePulls`, whether they wait for its stream or not.
    func holdPulls(of owner: SyncID) { state.withLock { $0.held[owner] = Waiting() } }
    func releasePulls(of owner: SyncID, count: Int = 1) {
        let waiting = state.withLock { $0.held.removeValue(forKey: owner) }
        for _ in 0..<count { waiting?.signal.send(()) }
    }
    func failHeads(_ error: FanOutError?) { state.withLock { $0.headsFailure = error } }
    func failOutcomes(_ error: FanOutError?) { state.withLock { $0.outcomeFailure = error } }
    /// What is read by id or by time; by default no rows.
    func answerQueries(_ answer: @escaping @Sendable (StreamQuery) -> StreamRows) {
        state.withLock { $0.answer = answer }
    }
    /// Has the next read by id or by time take until it is let go.
    ///
    /// - Returns: what lets it go.
    func holdNextQuery() -> @Sendable () -> Void {
        let waiting = Waiting()
        state.withLock { $0.heldQuery = waiting }
        return { waiting.signal.send(()) }
    }
    /// Has pulls answer no more owners than this.
    func cutPages(at count: Int) { state.withLock { $0.pageCount = count } }
    func keep(_ outcome: PartOutcome, of batch: Int64, with owner: SyncID) {
        state.withLock { $0.kept[Kept(batch: batch, owner: owner)] = outcome }
    }
    /// What becomes of a part of any upload.
    func set(_ outcome: PartOutcome, ofPart part: Int) { state.withLock { $0.parts[part] = outcome } }
    /// Has outcomes with rows come from a fan-out that is behind those without, and is waited for.
    func holdRowsBehind() { state.withLock { $0.rowsAreBehind = true } }
    /// Holds outcomes back until `releaseOutcomes`.
    func holdOutcomes() { state.withLock { $0.gate = Waiting() } }
    func releaseOutcomes() {
        let gate = state.withLock { $0.gate.take() }
        gate?.signal.send(())
    }

    /// Moves an owner's head, with the rows that a pull finds from then on.
    func move(_ owner: SyncID, to head: Int64, rows: OwnerRows? = nil) {
        let subscribers = state.withLock { state in
            if let rows { state.rows[owner] = rows }
            return state.subscribers.values.filter { $0.owners.contains(owner) }
        }
        for subscriber in subscribers { subscriber.moved(owner, TimeStamp(head)) }
    }

    /// Waits until an outcome that was held back has been answered.
    func drained() async { await released.next() }

    // MARK: What it was asked

    var asked: [PartReference] { state.withLock(\.asked) }
    var windows: [RowWindow?] { state.withLock(\.windows) }
    var withins: [Duration] { state.withLock(\.withins) }
    var pulls: [PagePull] { state.withLock(\.pulls) }
    /// The reads of rows by id or by time.
    var queries: [StreamQuery] { state.withLock(\.queries) }
    var subscriberCount: Int { state.withLock(\.subscribers.count) }

    // MARK: FanOutLink

    func idlePage(_ request: OwnerPull) -> OwnerPage? {
        state.withLock { state in
            guard state.answersIdle, !state.historyChanged.contains(request.owner) else { return nil }
            let rows = state.rows[request.owner] ?? OwnerRows()
            guard rows.count == 0, !rows.hasMore else { return nil }
            return OwnerPage(owner: request.owner, content: .rows(Self.echo(rows, request)))
        }
    }

    func pull(_ request: PagePull, within: Duration) async throws(FanOutError) -> [OwnerPage] {
        let behind = state.withLock { state in request.owners.compactMap { state.behind[$0.owner] }.first }
        if let behind {
            if within == .zero { throw .notReady("the stream is behind") }
            pullsAsked.send(request)
            await behind.signal.next()
        }
        let held = state.withLock { state in request.owners.compactMap { state.held[$0.owner] }.first }
        if let held {
            pullsAsked.send(request)
            await held.signal.next()
        }
        let answer: Result<[OwnerPage], FanOutError> = state.withLock { state in
            state.pulls.append(request)
            state.withins.append(within)
            if let failure = state.pullFailure { return .failure(failure) }
            return .success(
                request.owners.prefix(state.pageCount ?? .max).map { pull in
                    if state.historyChanged.contains(pull.owner) {
                        return OwnerPage(owner: pull.owner, content: .historyChanged)
                    }
                    return OwnerPage(
                        owner: pull.owner, content: .rows(Self.echo(state.rows[pull.owner] ?? OwnerRows(), pull)))
                })
        }
        pullsAsked.send(request)
        return try answer.get()
    }

    /// The entries as the contract has them: the request's, never lower, and what the rows bring.
    private static func echo(_ rows: OwnerRows, _ pull: OwnerPull) -> OwnerRows {
        var entries = pull.knowledge.entries
        for entry in rows.entries { entries[entry.device] = max(entries[entry.device] ?? .zero, entry.timeStamp) }
        var rows = rows
        rows.entries = entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return rows
    }

    func outcome(
        of part: PartReference, rows: RowWindow?, within: Duration
    ) async throws(FanOutError) -> PartOutcome {
        let gate = state.withLock { state in
            state.asked.append(part)
            state.windows.append(rows)
            state.withins.append(within)
            return state.gate
        }
        outcomesAsked.send(part)
        if let gate {
            await gate.signal.next()
            released.send(())
        }
        let answer: Result<PartOutcome, FanOutError> = state.withLock { state in
            if let failure = state.outcomeFailure { return .failure(failure) }
            if state.rowsAreBehind, rows != nil, within == .zero { return .failure(.pending) }
            return state.parts[part.part].map { .success(Self.cut($0, to: rows)) } ?? .failure(.pending)
        }
        return try answer.get()
    }

    func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows: RowWindow?, within: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        let answer: Result<PartOutcome?, FanOutError> = state.withLock { state in
            state.withins.append(within)
            state.windows.append(rows)
            if let failure = state.outcomeFailure, failure != .pending { return .failure(failure) }
            if state.rowsAreBehind, rows != nil { return .success(nil) }
            return .success(state.kept[Kept(batch: batch, owner: key.owner)].map { Self.cut($0, to: rows) })
        }
        return try answer.get()
    }

    /// An outcome with the rows of a window.
    private static func cut(_ outcome: PartOutcome, to window: RowWindow?) -> PartOutcome {
        var outcome = outcome
        let rows = outcome.rows.sorted { $0.key < $1.key }
        outcome.rows = [:]
        guard let window else { return outcome }
        var bytes = 0
        for (index, row) in rows where index >= window.from && index < window.end {
            bytes += row.count
            guard index == window.from || bytes <= window.maximumBytes else { break }
            outcome.rows[index] = row
        }
        return outcome
    }

    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        let answer: Result<[TimeStamp], FanOutError> = state.withLock { state in
            if let failure = state.headsFailure { return .failure(failure) }
            return .success(owners.map { state.rows[$0]?.head ?? .zero })
        }
        return try answer.get()
    }

    func rows(_ query: StreamQuery, within: Duration) async throws(FanOutError) -> StreamRows? {
        let (head, answer, held) = state.withLock { state in
            state.queries.append(query)
            return (state.rows[query.owner]?.head ?? .zero, state.answer, state.heldQuery.take())
        }
        if let held {
            queriesHeld.send(())
            await held.signal.next()
        }
        return answer?(query) ?? StreamRows(head: head)
    }

    func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        let (number, count) = state.withLock { state in
            state.next += 1
            state.subscribers[state.next] = Subscriber(owners: owners, moved: moved)
            return (state.next, state.subscribers.count)
        }
        subscriptions.send(count)
        return Subscription(link: self, number: number)
    }

    private func cancel(_ number: Int) {
        let left: Int? = state.withLock { state in
            state.subscribers.removeValue(forKey: number) == nil ? nil : state.subscribers.count
        }
        if let left { cancellations.send(left) }
    }

    private struct Subscription: FanOutSubscription {
        let link: ScriptedLink
        let number: Int

        func cancel() { link.cancel(number) }
    }
}
