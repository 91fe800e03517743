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
            try await stage.outcome(of: part, rows: rows, within: limit)
        }
    }

    func keptOutcome(
        of batch: Int64, for key: DeviceKey, rows: RowWindow?, within limit: Duration
    ) async throws(FanOutError) -> PartOutcome? {
        try await exchange { stage throws(FanOutError) in
            try await stage.keptOutcome(of: batch, for: key, rows: rows, within: limit)
        }
    }

    func heads(of owners: [SyncID]) async throws(FanOutError) -> [TimeStamp] {
        try await exchange { stage throws(FanOutError) in try await stage.heads(of: owners) }
    }

    func subscribe(
        to owners: [SyncID], moved: @escaping @Sendable (SyncID, TimeStamp) -> Void
    ) -> any FanOutSubscription {
        world.anyFanOut()?.subscribe(to: owners, moved: moved) ?? Unsubscribed()
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

/// No fan-out runs: the subscriber asks again after its wait.
private struct Unsubscribed: FanOutSubscription {
    func cancel() {}
}
