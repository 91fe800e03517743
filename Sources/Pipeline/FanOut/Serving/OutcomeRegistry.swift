import AsyncPrimitives
import FanOutLink
import SyncModel
import Synchronization

/// What became of a part of an upload.
enum PartDecision: Sendable, Hashable {
    /// Ordered now, after which the partition's newest timeStamp was this.
    case ordered([ChangeResult], BatchSummary?, TimeStamp)
    /// Sent before: the first outcome counts, which the file keeps.
    case repeated
    /// Nothing applied.
    case refused(BatchRefusal)
}

/// Where results of parts meet those who wait for them.
///
/// The newest results stay for a while, since a caller may come after its result; older ones are found in the file where
/// the batch has a number.
final class OutcomeRegistry: Sendable {
    /// What a caller gets.
    enum Answer: Sendable {
        /// The result.
        case verdict(PartDecision)
        /// The result is complete, and no longer here.
        case stored
        /// It did not come in time.
        case late
        /// Too many wait.
        case crowded
        /// The caller was cancelled, or the fan-out stops.
        case closed
    }

    /// A part of an upload.
    struct Part: Hashable {
        let upload: UploadReference
        let number: Int
    }

    /// What a caller waits for.
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

    /// Waits for a part's result.
    func answer(for part: Part, within limit: Duration, clock: any Clock<Duration>) async -> Answer {
        let waiter = Promise<Answer>()
        let known = state.withLock { state -> Answer? in
            if let verdict = state.recent[part] { return .verdict(verdict) }
            if state.position.covers(part.upload, part: part.number) { return .stored }
            return state.add(waiter, for: .part(part), limits)
        }
        if let known { return known }
        defer { state.withLock { $0.remove(waiter, for: .part(part)) } }
        return await waiter.value(within: limit, clock: clock, late: .late, cancelled: .closed)
    }

    /// Waits for a device's batch to be ordered, unless `find` finds its outcome; when it does not come, `find` is asked
    /// once more, since a rebuild may have brought it.
    func outcome<Outcome>(
        of batch: Int64, for key: DeviceKey, within limit: Duration, clock: any Clock<Duration>,
        find: () async throws(FanOutError) -> Outcome?
    ) async throws(FanOutError) -> Outcome? {
        let subject = Subject.batch(batch, key)
        let waiter = Promise<Answer>()
        // Registered before the first look, so that nothing passes in between.
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
        case .verdict, .stored, .late: return try await find()
        case .crowded: throw .notReady("too many callers wait for outcomes")
        case .closed: throw .closed
        }
    }

    /// Takes in pieces that were applied, after which the stream stands at the position.
    func post(_ pieces: [OrderedPiece], position: StreamPosition) {
        let answers = state.withLock { state -> [(Promise<Answer>, Answer)] in
            var answers: [(Promise<Answer>, Answer)] = []
            for piece in pieces {
                if piece.piece == 0 { state.joining = DecisionAssembly(piece) } else { state.joining?.add(piece) }
                guard piece.isLast else { continue }
                let part = Part(upload: piece.upload, number: piece.uploadPart)
                // A result whose first pieces came before a restart is whole in the file alone.
                let answer: Answer = state.joining.map { .verdict($0.verdict) } ?? .stored
                if case .verdict(let verdict) = answer { state.recent.add(verdict, for: part, limits) }
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

    /// Takes in where a stream stands that was opened or rebuilt.
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

    /// Ends all waiting, for good.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            return state.waiters.keys.flatMap { state.take($0) }
        }
        for waiter in waiters { waiter.fulfil(.closed) }
    }

    /// How many wait.
    var waiterCount: Int { state.withLock { $0.waiterCount } }
}

extension OutcomeRegistry.State {
    /// Puts a waiter on the board, or says why not.
    fileprivate mutating func add(
        _ waiter: Promise<OutcomeRegistry.Answer>, for subject: OutcomeRegistry.Subject, _ limits: FanOutConfiguration
    ) -> OutcomeRegistry.Answer? {
        if isClosed { return .closed }
        guard waiterCount < limits.maximumWaiters else { return .crowded }
        waiters[subject, default: []].append(waiter)
        waiterCount += 1
        return nil
    }

    /// Takes a waiter off the board, if it is still there.
    fileprivate mutating func remove(_ waiter: Promise<OutcomeRegistry.Answer>, for subject: OutcomeRegistry.Subject) {
        guard let waiting = waiters[subject] else { return }
        let others = waiting.filter { $0 !== waiter }
        waiterCount -= waiting.count - others.count
        waiters[subject] = others.isEmpty ? nil : others
    }

    /// Takes the waiters for something off the board.
    fileprivate mutating func take(_ subject: OutcomeRegistry.Subject) -> [Promise<OutcomeRegistry.Answer>] {
        let waiting = waiters.removeValue(forKey: subject) ?? []
        waiterCount -= waiting.count
        return waiting
    }
}

/// A result of which not all pieces have come.
private struct DecisionAssembly {
    private(set) var verdict: PartDecision

    init(_ first: OrderedPiece) {
        switch first.verdict {
        case .ordered: verdict = .ordered(first.results, first.summary, first.timeStamp)
        case .repeated: verdict = .repeated
        case .refused(let refusal): verdict = .refused(refusal)
        }
    }

    mutating func add(_ piece: OrderedPiece) {
        guard case .ordered(let results, var summary, let timeStamp) = verdict else { return }
        summary?.refusals += piece.summary?.refusals ?? []
        verdict = .ordered(results + piece.results, summary, timeStamp)
    }
}

/// The newest results, as many as the limits allow.
private struct RecentDecisions {
    private var verdicts: [OutcomeRegistry.Part: (verdict: PartDecision, size: Int)] = [:]
    /// The parts by age; those before `oldest` are gone.
    private var order: [OutcomeRegistry.Part] = []
    private var oldest = 0
    private var size = 0

    subscript(part: OutcomeRegistry.Part) -> PartDecision? { verdicts[part]?.verdict }

    mutating func add(_ verdict: PartDecision, for part: OutcomeRegistry.Part, _ limits: FanOutConfiguration) {
        // A part comes again only where a stream that was made again is behind, with the same result.
        let size = verdict.size
        guard verdicts.updateValue((verdict, size), forKey: part) == nil else { return }
        order.append(part)
        self.size += size
        while order.count - oldest > limits.recentResults || self.size > limits.recentResultBytes {
            self.size -= verdicts.removeValue(forKey: order[oldest])?.size ?? 0
            oldest += 1
        }
        if oldest > order.count / 2 {
            order.removeFirst(oldest)
            oldest = 0
        }
    }
}

extension PartDecision {
    /// About how many bytes it takes.
    fileprivate var size: Int {
        guard case .ordered(let results, let summary, _) = self else { return 128 }
        let refusals = summary?.refusals.reduce(0) { $0 + 64 + $1.message.utf8.count } ?? 0
        return results.reduce(128 + refusals) { size, result in
            guard case .refused(_, let message) = result.status else { return size + 320 + result.id.text.utf8.count }
            return size + 320 + result.id.text.utf8.count + message.utf8.count
        }
    }
}
