import FanOutLink
import SyncModel
import Synchronization

/// A fan-out whose streams and outcomes a test sets.
final class ScriptedFanOut: FanOutLink {
    struct Row: Sendable {
        let device: KnowledgeID
        let timeStamp: TimeStamp
        let json: [UInt8]
    }

    private struct State {
        var rows: [SyncID: [Row]] = [:]
        var outcomes: [PartReference: CheckedContinuation<PartOutcome?, Never>] = [:]
        var subscribers: [Int: (owners: Set<SyncID>, moved: @Sendable (SyncID, TimeStamp) -> Void)] = [:]
        var next = 0
        var outOfService: Set<SyncID> = []
        var lagging: Set<SyncID> = []
        var listings: [StreamQuery: StreamRows] = [:]
    }

    private let state = Mutex(State())
    /// The pulls received.
    let pulls = Recorder<PagePull>()
    /// The waits for outcomes that have begun.
    let waits = Recorder<PartReference>()
    /// The waits that were cancelled.
    let cancelled = Recorder<PartReference>()
    /// The owners subscribed to, and those unsubscribed from.
    let subscribed = Recorder<SyncID>()
    let unsubscribed = Recorder<SyncID>()
    /// Blocks the thread that subscribes to this owner.
    let stall = Stall(SyncID(unchecked: "stall"))
    private let number: Int
    private let requests: Recorder<Int>?

    /// - Parameter requests: records the number of this fan-out at each request for an outcome.
    init(number: Int = 0, requests: Recorder<Int>? = nil) {
        self.number = number
        self.requests = requests
    }

    func append(_ rows: [Row], to owner: SyncID) {
        let calls = state.withLock { state in
            state.rows[owner, default: []] += rows
            return state.subscribers.values.filter { $0.owners.contains(owner) }.map(\.moved)
        }
        for call in calls { call(owner, rows.last?.timeStamp ?? .zero) }
    }

    /// Sets what a query has; all others are from another history.
    func set(_ rows: StreamRows, for query: StreamQuery) { state.withLock { $0.listings[query] = rows } }

    /// Sets whether an owner's stream can be read.
    func setReady(_ isReady: Bool, _ owner: SyncID) {
        state.withLock { state in
            if isReady { state.outOfService.remove(owner) } else { state.outOfService.insert(owner) }
        }
    }

    /// Sets whether an owner's stream lacks every outcome.
    func setLagging(_ isLagging: Bool, _ owner: SyncID) {
        state.withLock { state in
            if isLagging { state.lagging.insert(owner) } else { state.lagging.remove(owner) }
        }
    }

    /// Sample a wait for an outcome.
    func decide(_ part: PartReference, _ outcome: PartOutcome) {
        state.withLock { $0.outcomes.removeValue(forKey: part) }?.resume(returning: outcome)
    }

    func idlePage(_ request: OwnerPull) -> OwnerPage? { nil }

    func pull(_ request: PagePull, within: Duration) async throws(FanOutError) -> [OwnerPage] {
        pulls.record(request)
        try check(request.owners.map(\.owner))
        return state.withLock { state in Self.pages(request, state.rows) }
    }

    func outcome(
        of part: PartReference, rows: RowWindow?, within: Duration
    ) async throws(FanOutError) -> PartOutcome {
        if within <= .zero { throw .pending }
        requests?.record(number)
        if state.withLock({ $0.lagging.contains(part.key.owner) }) { throw .pending }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.outcomes[part] = continuation }
                waits.record(part)
                if Task.isCancelled { end(part) }
            }
        } onCancel: {
            end(part)
        }
        guard let outcome else {
            cancelled.record(part)
            throw .closed
        }
        return outcome
    }

    private func end(_ part: PartReference) {
        state.withLock { $0.outcomes.removeValue(forKey: part) }?.resume(returning: nil)
    }

    func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows: RowWindow?, within: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        try check([key.owner])
        if state.withLock({ $0.lagging.contains(key.owner) }) { return nil }
        return batch == 7 ? PartOutcome(isRepeat: true, rows: rows == .all ? [3: Array("{\"a\":1}".utf8)] : [:]) : nil
    }

    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        try check(owners)
        return state.withLock { state in owners.map { state.rows[$0]?.last?.timeStamp ?? .zero } }
    }

    func rows(_ query: StreamQuery, within: Duration) async throws(FanOutError) -> StreamRows? {
        try check([query.owner])
        return state.withLock { $0.listings[query] }
    }

    func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        if owners.contains(stall.owner) { stall.wait() }
        let number = state.withLock { state in
            state.next += 1
            state.subscribers[state.next] = (Set(owners), moved)
            return state.next
        }
        for owner in owners { subscribed.record(owner) }
        return Subscription(fanOut: self, number: number, owners: owners)
    }

    private struct Subscription: FanOutSubscription {
        let fanOut: ScriptedFanOut
        let number: Int
        let owners: [SyncID]

        func cancel() {
            let isLast = fanOut.state.withLock { $0.subscribers.removeValue(forKey: number) } != nil
            if isLast { for owner in owners { fanOut.unsubscribed.record(owner) } }
        }
    }

    private func check(_ owners: [SyncID]) throws(FanOutError) {
        let isOut = state.withLock { state in owners.contains { state.outOfService.contains($0) } }
        if isOut { throw .notReady("it is rebuilt") }
    }

    /// The pages that one fan-out with all streams returns.
    func pages(_ request: PagePull) -> [OwnerPage] { state.withLock { Self.pages(request, $0.rows) } }

    private static func pages(_ request: PagePull, _ streams: [SyncID: [Row]]) -> [OwnerPage] {
        var rows = request.isContinued ? request.limit : max(request.limit, 1)
        var bytes = request.maximumBytes
        var isEmpty = !request.isContinued
        var isFull = false
        return request.owners.map { pull in
            let stream = streams[pull.owner] ?? []
            let head = stream.last?.timeStamp ?? .zero
            if pull.knowledge.highest > head { return OwnerPage(owner: pull.owner, content: .historyChanged) }
            var page = OwnerRows(head: head)
            var entries = pull.knowledge.entries
            for row in stream where row.timeStamp > pull.knowledge[row.device] {
                if pull.held.contains(row.timeStamp) {
                    entries[row.device] = row.timeStamp
                    continue
                }
                let size = row.json.count + (isEmpty ? 0 : 1)
                guard !isFull, rows > 0, isEmpty || size <= bytes else {
                    isFull = true
                    page.hasMore = true
                    break
                }
                rows -= 1
                bytes -= size
                isEmpty = false
                if page.count > 0 { page.json.append(UInt8(ascii: ",")) }
                page.json += row.json
                page.count += 1
                entries[row.device] = row.timeStamp
            }
            page.entries = entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            return OwnerPage(owner: pull.owner, content: .rows(page))
        }
    }
}

/// Blocks a thread until `end()`.
final class Stall: Sendable {
    let owner: SyncID
    let held = Recorder<Bool>()
    private let gate: Gate

    init(_ owner: SyncID) {
        self.owner = owner
        gate = Gate()
    }

    func wait() {
        held.record(true)
        gate.wait()
    }

    func end() { gate.open() }
}

extension RowWindow {
    static let all = RowWindow(maximumBytes: 1 << 30)
}
