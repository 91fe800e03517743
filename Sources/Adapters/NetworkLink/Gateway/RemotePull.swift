import FanOutLink
import Metrics
import SyncModel

extension RemoteFanOut {
    /// Reads one page of each owner's stream, owner after owner, until the page's limits are reached.
    ///
    /// If the owners are served by several fan-outs, pages without rows are requested from all of them first, which show the
    /// owners that have new rows. Those are then read from one fan-out after the other, each with what is left of the limits,
    /// so that the pages are those that a single fan-out would return.
    package func pull(_ request: PagePull, within limit: Duration) async throws(FanOutError) -> [OwnerPage] {
        let deadline = dependencies.clock.now() + limit
        var pull = RemotePull(request, Routes(connections))
        let all = Array(request.owners.indices)
        if try pull.isSpread(all) { try await readHeads(all, &pull, until: deadline) }
        try await readRows(pull.unfinished, &pull, until: deadline)
        // The owners after a full page: only whether they have more rows.
        try await readHeads(pull.unknown, &pull, until: deadline)
        return pull.pages.compactMap(\.self)
    }

    /// Requests pages without rows, from all fan-outs concurrently.
    private func readHeads(
        _ positions: [Int], _ pull: inout RemotePull, until deadline: Duration
    ) async throws(FanOutError) {
        var open = positions
        while !open.isEmpty {
            let request = pull.request
            let responses = try await requestGroups(
                open, owners: request.owners.map(\.owner), &pull.routes,
                within: dependencies.clock.remaining(until: deadline),
                request: { .pull(request.subset($0, limit: 0, maximumBytes: 0, isContinued: true)) })
            open = []
            for group in responses {
                if let response = group.response {
                    try pull.set(group.positions, response)
                } else {
                    open += group.positions
                }
            }
            open.sort()
        }
    }

    /// Requests rows from one fan-out after the other, until the page is full.
    private func readRows(
        _ positions: [Int], _ pull: inout RemotePull, until deadline: Duration
    ) async throws(FanOutError) {
        var rest = positions[...]
        while !rest.isEmpty, !pull.isFull {
            let (fanOut, run) = try pull.firstRun(of: rest)
            if pull.routes.failures > 0 { dependencies.metrics.retries.add() }
            let response: LinkResponse
            do throws(Failure) {
                response = try await send(
                    .pull(pull.request(for: run)), to: fanOut, within: dependencies.clock.remaining(until: deadline))
            } catch {
                try pull.routes.exclude(fanOut, for: run.map { pull.request.owners[$0].owner }, after: error)
                continue
            }
            try pull.append(run, response)
            rest = rest.dropFirst(run.count)
        }
    }
}

/// A pull from several fan-outs: the pages received so far, and what is left of the limits.
private struct RemotePull {
    let request: PagePull
    var routes: Routes
    /// One for each owner of the request, in its order; `nil` until a fan-out has responded.
    private(set) var pages: [OwnerPage?]
    private var rows: Int
    private var bytes: Int
    /// Whether the page has rows.
    private var isContinued: Bool
    /// Whether a row did not fit: then no row after it is sent, however small.
    private var isCut = false

    init(_ request: PagePull, _ routes: Routes) {
        self.request = request
        self.routes = routes
        pages = Array(repeating: nil, count: request.owners.count)
        rows = request.isContinued ? request.limit : max(request.limit, 1)
        bytes = request.maximumBytes
        isContinued = request.isContinued
    }

    /// Whether owners are served by more than one fan-out.
    func isSpread(_ positions: [Int]) throws(FanOutError) -> Bool {
        var fanOuts: Set<Int> = []
        for position in positions { fanOuts.insert(try routes.fanOut(for: request.owners[position].owner)) }
        return fanOuts.count > 1
    }

    /// The owners without a page.
    var unknown: [Int] { pages.indices.filter { pages[$0] == nil } }

    /// The owners without a page, and those with more rows than their page has.
    var unfinished: [Int] {
        pages.indices.filter { position in
            switch pages[position]?.content {
            case nil: true
            case .rows(let rows): rows.hasMore
            case .historyChanged: false
            }
        }
    }

    var isFull: Bool { isCut || isContinued && rows <= 0 }

    /// The first owners that one request can cover, with their fan-out.
    func firstRun(of positions: ArraySlice<Int>) throws(FanOutError) -> (fanOut: Int, run: [Int]) {
        var run: [Int] = []
        var first: Routes.Route?
        for position in positions {
            let route = try routes.route(for: request.owners[position].owner)
            if let first, first != route { break }
            first = route
            run.append(position)
        }
        guard let first else { preconditionFailure("a run has at least one owner") }
        return (first.fanOut, run)
    }

    /// The request for the next owners, with what is left of the limits.
    func request(for run: [Int]) -> PagePull {
        request.subset(run, limit: rows, maximumBytes: bytes, isContinued: isContinued)
    }

    /// Adds the pages that ``request(for:)`` has returned, and takes their rows off the limits.
    mutating func append(_ run: [Int], _ response: LinkResponse) throws(FanOutError) {
        try set(run, response)
        for position in run {
            guard case .rows(let page) = pages[position]?.content else { continue }
            if page.count > 0 {
                // A comma separates two owners' rows.
                bytes -= page.json.count + (isContinued ? 1 : 0)
                rows -= page.count
                isContinued = true
            }
            if page.hasMore { isCut = true }
        }
    }

    /// Sets the pages of owners.
    mutating func set(_ positions: [Int], _ response: LinkResponse) throws(FanOutError) {
        guard case .pages(let received) = response,
            received.map(\.owner) == positions.map({ request.owners[$0].owner })
        else { throw .notReady(RemoteFanOut.unexpectedResponse) }
        for (position, page) in zip(positions, received) { pages[position] = page }
    }
}

extension PagePull {
    /// The request for some of the owners, with other limits.
    fileprivate func subset(_ positions: [Int], limit: Int, maximumBytes: Int, isContinued: Bool) -> PagePull {
        PagePull(
            owners: positions.map { owners[$0] }, limit: limit, maximumBytes: maximumBytes, isContinued: isContinued)
    }
}
