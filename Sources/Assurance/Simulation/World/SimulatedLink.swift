import DeviceModel
import FanOut
import FanOutLink
import SyncModel

/// A gateway's link to the fan-outs: each request goes to a running one.
struct SimulatedLink: FanOutLink {
    let world: World
    let process: SimulatedProcess

    private typealias Stage = FanOut<SimulatedLog, SimulatedStore>

    func idlePage(_ request: OwnerPull) -> OwnerPage? {
        guard let stage = world.anyFanOut(), let page = stage.idlePage(request) else { return nil }
        world.streams.check(PagePull(owners: [request], limit: 1, maximumBytes: 1), [page])
        return page
    }

    func pull(_ request: PagePull, within limit: Duration) async throws(FanOutError) -> [OwnerPage] {
        let pages = try await exchange { stage throws(FanOutError) in try await stage.pull(request, within: limit) }
        world.streams.check(request, pages)
        return pages
    }

    func outcome(
        of part: PartReference, rows: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome {
        try await exchange { stage throws(FanOutError) in
            let head = await Head(of: part.key.owner, in: stage, world)
            let outcome = try await stage.outcome(of: part, rows: rows, within: limit)
            world.streams.check(outcome, of: part.key.owner, in: rows, notBefore: head.known)
            return outcome
        }
    }

    func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        try await exchange { stage throws(FanOutError) in
            let head = await Head(of: key.owner, in: stage, world)
            let outcome = try await stage.keptOutcome(of: batch, for: key, rows: rows, within: limit)
            if let outcome { world.streams.check(outcome, of: key.owner, in: rows, notBefore: head.known) }
            return outcome
        }
    }

    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        try await exchange { stage throws(FanOutError) in try await stage.heads(of: owners) }
    }

    func rows(_ query: StreamQuery, within limit: Duration) async throws(FanOutError) -> StreamRows? {
        try await exchange { stage throws(FanOutError) in try await stage.rows(query, within: limit) }
    }

    func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        world.subscribe(to: owners, moved: moved)
    }

    /// The head of a stream before a request.
    private struct Head {
        private let timeStamp: TimeStamp
        private let changes: Int
        private let world: World

        init(of owner: SyncID, in stage: Stage, _ world: World) async {
            self.world = world
            changes = world.streamChanges
            // A stream that is not served has no head.
            do { timeStamp = try await stage.heads(of: [owner])[0] } catch { timeStamp = .zero }
        }

        /// Rows that were read since are not older; zero where a stream was rebuilt or opened meanwhile.
        var known: TimeStamp { changes == world.streamChanges ? timeStamp : .zero }
    }

    private func exchange<Answer>(
        _ body: (Stage) async throws(FanOutError) -> Answer
    ) async throws(FanOutError) -> Answer {
        await world.delay(process)
        guard let stage = world.anyFanOut() else { throw .notReady("no fan-out runs") }
        let answer = try await body(stage)
        await world.delay(process)
        if world.faults.strikes(.answer) { throw .notReady("the connection was lost") }
        return answer
    }
}

/// A gateway's subscription to all fan-outs, those included that start later: as the network's link, which renews a
/// subscription on another fan-out and reports the head then.
final class LinkSubscription: FanOutSubscription, @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private let owners: [SyncID]
    private let moved: @Sendable (SyncID, TimeStamp) -> Void
    private var parts: [any FanOutSubscription] = []
    private(set) var isCancelled = false

    init(to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void) {
        self.owners = owners
        self.moved = moved
    }

    func add(_ stage: FanOut<SimulatedLog, SimulatedStore>) {
        parts.append(stage.subscribe(to: owners, moved: moved))
    }

    func cancel() {
        isCancelled = true
        for part in parts { part.cancel() }
        parts = []
    }
}
