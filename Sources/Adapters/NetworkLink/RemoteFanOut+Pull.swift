import FanOutLink
import LinkWire
import Metrics
import SyncModel

/// Pulls of one page from several fan-outs.
extension RemoteFanOut {
    /// Reads one page of each owner's stream, owner after owner, until the page's limits are reached.
    ///
    /// Where several fan-outs are concerned, all of them say first what their owners lack, without a row. Those that lack rows
    /// are then read one after the other, each with what is left of the page, as one fan-out does it.
    package func pull(_ request: PagePull, within limit: Duration) async throws(FanOutError) -> [OwnerPage] {
        let deadline = time.now() + limit
        var pull = RemotePull(request, Routes(board))
        let all = Array(request.owners.indices)
        if try pull.isSpread(all) { try await look(all, &pull, until: deadline) }
        try await read(pull.lacking, &pull, until: deadline)
        // Owners that come after a full page: whether there is more is all that they say.
        try await look(pull.unknown, &pull, until: deadline)
        return pull.pages.compactMap(\.self)
    }

    /// Asks for pages without rows, of all fan-outs side by side.
    private func look(_ positions: [Int], _ pull: inout RemotePull, until deadline: Duration) async throws(FanOutError)
    {
        var open = positions
        while !open.isEmpty {
            let request = pull.request
            let answers = try await askGroups(
                open, owners: request.owners.map(\.owner), &pull.routes, within: time.remaining(until: deadline),
                question: { .pull(request.part($0, limit: 0, maximumBytes: 0, isContinued: true)) })
            open = []
            for group in answers {
                if let answer = group.answer {
                    try pull.fill(group.positions, answer)
                } else {
                    open += group.positions
                }
            }
            open.sort()
        }
    }

    /// Reads rows, of one fan-out after the other, while the page has room.
    private func read(_ positions: [Int], _ pull: inout RemotePull, until deadline: Duration) async throws(FanOutError)
    {
        var rest = positions[...]
        while !rest.isEmpty, !pull.isFull {
            let (fanOut, run) = try pull.run(rest)
            if pull.routes.failures > 0 { metrics.retries.add() }
            let answer: LinkAnswer
            do throws(Failure) {
                answer = try await ask(.pull(pull.next(run)), of: fanOut, within: time.remaining(until: deadline))
            } catch {
                try pull.routes.note(error, fanOut, run.map { pull.request.owners[$0].owner })
                continue
            }
            try pull.take(run, answer)
            rest = rest.dropFirst(run.count)
        }
    }
}
