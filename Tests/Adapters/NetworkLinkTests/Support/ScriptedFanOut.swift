import FanOutLink
import SyncModel
import Synchronization

/// A fan-out whose streams a test writes, and whose waits it ends.
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
    }

    private let state = Mutex(State())
    /// Pulls as they were asked.
    let pulls = Noted<PagePull>()
    /// Waits for outcomes that have begun.
    let waits = Noted<PartReference>()
    /// Waits that were cancelled.
    let cancelled = Noted<PartReference>()
    /// Owners that were subscribed to, and no more.
    let subscribed = Noted<SyncID>()
    let unsubscribed = Noted<SyncID>()
    /// Blocks the thread that subscribes to this owner until it is let go.
    let stall = Stall(SyncID(unchecked: "stall"))
    private let number: Int
    private let asks: Noted<Int>?

    /// - Parameter asks: told the number whenever an outcome is asked for.
    init(number: Int = 0, asks: Noted<Int>? = nil) {
        self.number = number
        self.asks = asks
    }

    func append(_ rows: [Row], to owner: SyncID) {
        let calls = state.withLock { state in
            state.rows[owner, default: []] += rows
            return state.subscribers.values.filter { $0.owners.contains(owner) }.map(\.moved)
        }
        for call in calls { call(owner, rows.last?.timeStamp ?? .zero) }
    }

    /// Whether an owner's stream can be read.
    func setReady(_ isReady: Bool, _ owner: SyncID) {
        state.withLock { state in
            if isReady { state.outOfService.remove(owner) } else { state.outOfService.insert(owner) }
        }
    }

    /// Ends a wait for an outcome.
    func decide(_ part: PartReference, _ outcome: PartOutcome) {
        state.withLock { $0.outcomes.removeValue(forKey: part) }?.resume(returning: outcome)
    }

    func idlePage(_ request: OwnerPull) -> OwnerPage? { nil }

    func pull(_ request: PagePull, within: Duration) async throws(FanOutError) -> [OwnerPage] {
        pulls.note(request)
        try check(request.owners.map(\.owner))
        return state.withLock { state in Self.pages(request, state.rows) }
    }

    func outcome(of part: PartReference, within: Duration) async throws(FanOutError) -> PartOutcome {
        if within <= .zero { throw .pending }
        asks?.note(number)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.outcomes[part] = continuation }
                waits.note(part)
                if Task.isCancelled { end(part) }
            }
        } onCancel: {
            end(part)
        }
        guard let outcome else {
            cancelled.note(part)
            throw .closed
        }
        return outcome
    }

    private func end(_ part: PartReference) {
        state.withLock { $0.outcomes.removeValue(forKey: part) }?.resume(returning: nil)
    }

    func keptOutcome(
        of batch: Int64, for key: DeviceKey, within: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        try check([key.owner])
        return batch == 7 ? PartOutcome(isRepeat: true, rows: [3: Array("{\"a\":1}".utf8)]) : nil
    }

    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        try check(owners)
        return state.withLock { state in owners.map { state.rows[$0]?.last?.timeStamp ?? .zero } }
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
        for owner in owners { subscribed.note(owner) }
        return Subscription(fanOut: self, number: number, owners: owners)
    }

    private struct Subscription: FanOutSubscription {
        let fanOut: ScriptedFanOut
        let number: Int
        let owners: [SyncID]

        func cancel() {
            let isLast = fanOut.state.withLock { $0.subscribers.removeValue(forKey: number) } != nil
            if isLast { for owner in owners { fanOut.unsubscribed.note(owner) } }
        }
    }

    private func check(_ owners: [SyncID]) throws(FanOutError) {
        let isOut = state.withLock { state in owners.contains { state.outOfService.contains($0) } }
        if isOut { throw .notReady("it is rebuilt") }
    }

    /// The pages that one fan-out with all streams gives.
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

/// Holds a thread until it is let go.
final class Stall: Sendable {
    let owner: SyncID
    let held = Noted<Bool>()
    private let gate: Gate

    init(_ owner: SyncID) {
        self.owner = owner
        gate = Gate()
    }

    func wait() {
        held.note(true)
        gate.wait()
    }

    func end() { gate.open() }
}
