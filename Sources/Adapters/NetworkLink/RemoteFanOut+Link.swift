import FanOutLink
import LinkWire
import Metrics
import SyncModel

/// Outcomes, heads and moves.
extension RemoteFanOut: FanOutLink {
    /// Nothing is known here without asking.
    package func idlePage(_ request: OwnerPull) -> OwnerPage? { nil }

    /// Waits for what became of one part of an upload, at most `within`, then ``FanOutError/pending``.
    ///
    /// A fan-out that goes meanwhile is replaced by another one that serves the owner's partition.
    package func outcome(of part: PartReference, within limit: Duration) async throws(FanOutError) -> PartOutcome {
        let answer = try await ask(.outcome(part), about: part.key.owner, within: limit)
        guard case .outcome(let outcome) = answer else { throw .notReady(Self.strangeAnswer) }
        return outcome
    }

    /// The outcome kept for a device's batch with an owner, waiting for one at most `within`; `nil` where none is by then.
    package func keptOutcome(
        of batch: Int64, for key: DeviceKey, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        let answer = try await ask(.keptOutcome(batch: batch, key: key), about: key.owner, within: limit)
        guard case .keptOutcome(let outcome) = answer else { throw .notReady(Self.strangeAnswer) }
        return outcome
    }

    /// The newest timeStamp of each owner's stream, zero for an owner without rows.
    package func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        var heads: [TimeStamp?] = Array(repeating: nil, count: owners.count)
        var open = Array(owners.indices)
        var routes = Routes(board)
        while !open.isEmpty {
            let groups = try await askGroups(
                open, owners: owners, &routes, within: .zero,
                question: { positions in .heads(positions.map { owners[$0] }) })
            open = []
            for group in groups {
                guard case .heads(let answer) = group.answer, answer.count == group.positions.count else {
                    if group.answer != nil { throw .notReady(Self.strangeAnswer) }
                    open += group.positions
                    continue
                }
                for (position, head) in zip(group.positions, answer) { heads[position] = head }
            }
            open.sort()
        }
        return heads.compactMap(\.self)
    }

    /// Calls `moved` after each move of an owner's head, and with the head whenever moves may have been missed: at first, and
    /// after a connection was lost.
    package func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        let subscriber = Subscriber(moved)
        board.change { state in
            for owner in owners where state.watched.add(subscriber, to: owner) {
                state.watched.move(owner, to: board.place(of: owner, state) { _, _ in false })
            }
            board.flushSubscriptions(&state)
        }
        return RemoteSubscription(subscriber, owners: owners, board)
    }

    static let strangeAnswer = "the fan-out gave an answer of another kind"

    /// Puts a question about one owner to one fan-out after the other.
    private func ask(
        _ question: LinkQuery, about owner: SyncID, within limit: Duration
    ) async throws(FanOutError) -> LinkAnswer {
        let deadline = time.now() + limit
        var routes = Routes(board)
        while true {
            let fanOut = try routes.fanOut(for: owner)
            if routes.failures > 0 { metrics.retries.add() }
            do throws(Failure) {
                return try await ask(question, of: fanOut, within: time.remaining(until: deadline))
            } catch {
                try routes.note(error, fanOut, CollectionOfOne(owner))
            }
        }
    }

    /// What one fan-out says about some owners.
    struct GroupAnswer: Sendable {
        let positions: [Int]
        /// `nil` where it could not answer, which the routes know.
        let answer: LinkAnswer?
    }

    /// What came of one question of several.
    private struct GroupPart: Sendable {
        let fanOut: Int
        let positions: [Int]
        let result: Result<LinkAnswer, Failure>
    }

    /// An answer or its failure as a value: a task of a group that makes its result around a call that throws is compiled wrongly
    /// with optimisation (Swift 6.3).
    private func reply(
        to question: LinkQuery, of fanOut: Int, within limit: Duration
    ) async -> Result<LinkAnswer, Failure> {
        do throws(Failure) {
            return .success(try await ask(question, of: fanOut, within: limit))
        } catch {
            return .failure(error)
        }
    }

    /// Puts questions about several owners to their fan-outs, side by side.
    func askGroups(
        _ positions: [Int], owners: [SyncID], _ routes: inout Routes, within limit: Duration,
        question: ([Int]) -> LinkQuery
    ) async throws(FanOutError) -> [GroupAnswer] {
        var byWay: [Routes.Way: [Int]] = [:]
        for position in positions { byWay[try routes.way(for: owners[position]), default: []].append(position) }
        if routes.failures > 0 { metrics.retries.add(byWay.count) }
        let questions = byWay.map { (fanOut: $0.key.fanOut, positions: $0.value, question: question($0.value)) }
        let parts = await withTaskGroup(of: GroupPart.self) { group in
            for (fanOut, positions, question) in questions {
                group.addTask {
                    let result = await self.reply(to: question, of: fanOut, within: limit)
                    return GroupPart(fanOut: fanOut, positions: positions, result: result)
                }
            }
            return await group.reduce(into: [GroupPart]()) { $0.append($1) }
        }
        var answers: [GroupAnswer] = []
        for part in parts {
            switch part.result {
            case .success(let answer): answers.append(GroupAnswer(positions: part.positions, answer: answer))
            case .failure(let failure):
                try routes.note(failure, part.fanOut, part.positions.map { owners[$0] })
                answers.append(GroupAnswer(positions: part.positions, answer: nil))
            }
        }
        return answers
    }
}

/// What a caller of `subscribe` holds; it ends with this object at the latest.
private final class RemoteSubscription: FanOutSubscription {
    private let subscriber: Subscriber
    private let owners: [SyncID]
    private let board: LinkState

    init(_ subscriber: Subscriber, owners: [SyncID], _ board: LinkState) {
        self.subscriber = subscriber
        self.owners = owners
        self.board = board
    }

    deinit { cancel() }

    func cancel() {
        subscriber.cancel()
        board.change { state in
            for owner in owners { state.watched.remove(subscriber, from: owner) }
            board.flushSubscriptions(&state)
        }
    }
}
