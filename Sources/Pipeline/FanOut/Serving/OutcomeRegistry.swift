import AsyncPrimitives
import FanOutLink
import SyncModel
import Synchronization

/// The decision on a part of an upload, joined from its pieces.
enum PartDecision: Sendable, Hashable {
    /// Ordered; the last value is the partition's newest timeStamp after the part.
    case ordered([ChangeResult], BatchSummary?, TimeStamp)
    /// A repeat: the first outcome applies; the file has it.
    case repeated
    /// Nothing was applied.
    case refused(BatchRefusal)
}

/// Passes the results of parts to the callers that wait for them.
///
/// The newest results are kept in memory, since a caller may start to wait after its result has arrived. Older ones are
/// read from the file if the batch has a number.
final class OutcomeRegistry: Sendable {
    enum Answer: Sendable {
        case decided(PartDecision)
        /// The result is complete, but no longer in memory.
        case stored
        /// The wait timed out.
        case late
        /// Too many callers wait.
        case crowded
        /// The caller was cancelled, or the fan-out stops.
        case closed
    }

    struct Part: Hashable {
        let upload: UploadReference
        let number: Int
    }

    fileprivate enum Subject: Hashable {
        case part(Part)
        case batch(Int64, DeviceKey)
    }

    fileprivate struct State {
        var recent = RecentDecisions()
        var joining: DecisionAssembly?
        var position = StreamPosition()
        /// As many as ``FanOutConfiguration/maximumWaiters``.
        var waiters: [Subject: [Promise<Answer>]] = [:]
        var waiterCount = 0
        var isClosed = false
    }

    private let limits: FanOutConfiguration
    private let state = Mutex(State())

    init(limits: FanOutConfiguration) { self.limits = limits }

    func answer(for part: Part, within limit: Duration, clock: any Clock<Duration>) async -> Answer {
        let waiter = Promise<Answer>()
        let known = state.withLock { state -> Answer? in
            if let decision = state.recent[part] { return .decided(decision) }
            if state.position.covers(part.upload, part: part.number) { return .stored }
            return state.add(waiter, for: .part(part), limits)
        }
        if let known { return known }
        defer { state.withLock { $0.remove(waiter, for: .part(part)) } }
        return await waiter.value(within: limit, clock: clock, late: .late, cancelled: .closed)
    }

    /// Returns the result of `find` if there is one, else waits until the device's batch is ordered.
    ///
    /// After a timeout calls `find` again, since a rebuild may have loaded the outcome.
    func outcome<Outcome>(
        of batch: Int64, for key: DeviceKey, within limit: Duration, clock: any Clock<Duration>,
        find: () async throws(FanOutError) -> Outcome?
    ) async throws(FanOutError) -> Outcome? {
        let subject = Subject.batch(batch, key)
        let waiter = Promise<Answer>()
        // Registered before the first call of `find`, so that no result is missed in between.
        let refused = state.withLock { $0.add(waiter, for: subject, limits) }
        defer { state.withLock { $0.remove(waiter, for: subject) } }
        if let found = try await find() { return found }
        let answer: Answer
        if let refused {
            answer = refused
        } else {
            answer = await waiter.value(within: limit, clock: clock, late: .late, cancelled: .closed)
        }
        switch answer {
        case .decided, .stored, .late: return try await find()
        case .crowded: throw .notReady("too many callers wait for outcomes")
        case .closed: throw .closed
        }
    }

    /// Passes on applied pieces.
    func post(_ pieces: [OrderedPiece], position: StreamPosition) {
        let answers = state.withLock { state -> [(Promise<Answer>, Answer)] in
            var answers: [(Promise<Answer>, Answer)] = []
            for piece in pieces {
                if piece.piece == 0 { state.joining = DecisionAssembly(piece) } else { state.joining?.add(piece) }
                guard piece.isLast else { continue }
                let part = Part(upload: piece.upload, number: piece.uploadPart)
                // A result whose first pieces were applied before a restart is complete only in the file.
                let answer: Answer = state.joining.map { .decided($0.decision) } ?? .stored
                if case .decided(let decision) = answer { state.recent.add(decision, for: part, limits) }
                state.joining = nil
                answers += state.take(.part(part)).map { ($0, answer) }
                if let batch = piece.batch, piece.verdict == .ordered {
                    let key = DeviceKey(owner: piece.owner, device: piece.device)
                    answers += state.take(.batch(batch, key)).map { ($0, .stored) }
                }
            }
            state.position = position
            return answers
        }
        for (waiter, answer) in answers { waiter.fulfil(answer) }
    }

    /// Sets the position of a stream that was opened or rebuilt.
    func reset(_ position: StreamPosition) {
        let covered = state.withLock { state in
            state.position = position
            state.joining = nil
            let covered = state.waiters.keys.filter { subject in
                guard case .part(let part) = subject else { return false }
                return position.covers(part.upload, part: part.number)
            }
            return covered.flatMap { state.take($0) }
        }
        for waiter in covered { waiter.fulfil(.stored) }
    }

    /// Ends all waits permanently.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            return state.waiters.keys.flatMap { state.take($0) }
        }
        for waiter in waiters { waiter.fulfil(.closed) }
    }

    var waiterCount: Int { state.withLock { $0.waiterCount } }
}

extension OutcomeRegistry.State {
    /// Adds a waiter, or returns why not.
    fileprivate mutating func add(
        _ waiter: Promise<OutcomeRegistry.Answer>, for subject: OutcomeRegistry.Subject, _ limits: FanOutConfiguration
    ) -> OutcomeRegistry.Answer? {
        if isClosed { return .closed }
        guard waiterCount < limits.maximumWaiters else { return .crowded }
        waiters[subject, default: []].append(waiter)
        waiterCount += 1
        return nil
    }

    /// Removes a waiter if it is still registered.
    fileprivate mutating func remove(_ waiter: Promise<OutcomeRegistry.Answer>, for subject: OutcomeRegistry.Subject) {
        guard let waiting = waiters[subject] else { return }
        let others = waiting.filter { $0 !== waiter }
        waiterCount -= waiting.count - others.count
        waiters[subject] = others.isEmpty ? nil : others
    }

    /// Removes and returns the waiters for a subject.
    fileprivate mutating func take(_ subject: OutcomeRegistry.Subject) -> [Promise<OutcomeRegistry.Answer>] {
        let waiting = waiters.removeValue(forKey: subject) ?? []
        waiterCount -= waiting.count
        return waiting
    }
}

/// A result of which not all pieces have arrived.
private struct DecisionAssembly {
    private(set) var decision: PartDecision

    init(_ first: OrderedPiece) {
        switch first.verdict {
        case .ordered: decision = .ordered(first.results, first.summary, first.timeStamp)
        case .repeated: decision = .repeated
        case .refused(let refusal): decision = .refused(refusal)
        }
    }

    mutating func add(_ piece: OrderedPiece) {
        guard case .ordered(let results, var summary, let timeStamp) = decision else { return }
        summary?.refusals += piece.summary?.refusals ?? []
        decision = .ordered(results + piece.results, summary, timeStamp)
    }
}

/// The newest results, within the configured limits.
private struct RecentDecisions {
    private var decisions: [OutcomeRegistry.Part: (decision: PartDecision, size: Int)] = [:]
    /// The parts by age; those before `oldest` are removed.
    private var order: [OutcomeRegistry.Part] = []
    private var oldest = 0
    private var size = 0

    subscript(part: OutcomeRegistry.Part) -> PartDecision? { decisions[part]?.decision }

    mutating func add(_ decision: PartDecision, for part: OutcomeRegistry.Part, _ limits: FanOutConfiguration) {
        // A part recurs only when a rebuilt stream is behind, with the same result.
        let size = decision.size
        guard decisions.updateValue((decision, size), forKey: part) == nil else { return }
        order.append(part)
        self.size += size
        while order.count - oldest > limits.recentResults || self.size > limits.recentResultBytes {
            self.size -= decisions.removeValue(forKey: order[oldest])?.size ?? 0
            oldest += 1
        }
        if oldest > order.count / 2 {
            order.removeFirst(oldest)
            oldest = 0
        }
    }
}

extension PartDecision {
    /// The approximate size in bytes.
    fileprivate var size: Int {
        guard case .ordered(let results, let summary, _) = self else { return 128 }
        let refusals = summary?.refusals.reduce(0) { $0 + 64 + $1.message.utf8.count } ?? 0
        return results.reduce(128 + refusals) { size, result in
            guard case .refused(_, let message) = result.status else { return size + 320 + result.id.text.utf8.count }
            return size + 320 + result.id.text.utf8.count + message.utf8.count
        }
    }
}
