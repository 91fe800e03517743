import FanOutLink
import LinkWire
import SyncModel

/// A pull under way: what is known of each owner, and what is left of the page.
struct RemotePull {
    let request: PagePull
    var routes: Routes
    /// One for each owner, at its place.
    private(set) var pages: [OwnerPage?]
    private var rows: Int
    private var bytes: Int
    /// Whether the page holds rows.
    private var isContinued: Bool
    /// Whether a row did not fit: then none behind it is sent, however small.
    private var isCut = false

    init(_ request: PagePull, _ routes: Routes) {
        self.request = request
        self.routes = routes
        pages = Array(repeating: nil, count: request.owners.count)
        rows = request.isContinued ? request.limit : max(request.limit, 1)
        bytes = request.maximumBytes
        isContinued = request.isContinued
    }

    /// Whether more than one fan-out must be asked.
    func isSpread(_ positions: [Int]) throws(FanOutError) -> Bool {
        var fanOuts: Set<Int> = []
        for position in positions { fanOuts.insert(try routes.fanOut(for: request.owners[position].owner)) }
        return fanOuts.count > 1
    }

    /// The owners of whom nothing is known.
    var unknown: [Int] { pages.indices.filter { pages[$0] == nil } }

    /// The owners whose rows are to be read: of whom nothing is known, or that there are some.
    var lacking: [Int] {
        pages.indices.filter { position in
            switch pages[position]?.content {
            case nil: true
            case .rows(let rows): rows.hasMore
            case .historyChanged: false
            }
        }
    }

    /// Whether nothing more can be added.
    var isFull: Bool { isCut || isContinued && rows <= 0 }

    /// The first owners that are asked of one fan-out together.
    func run(_ positions: ArraySlice<Int>) throws(FanOutError) -> (fanOut: Int, run: [Int]) {
        var run: [Int] = []
        var first: Routes.Way?
        for position in positions {
            let way = try routes.way(for: request.owners[position].owner)
            if let first, first != way { break }
            first = way
            run.append(position)
        }
        guard let first else { preconditionFailure("a run begins with an owner") }
        return (first.fanOut, run)
    }

    /// What to ask for the next owners: as much as is left.
    func next(_ run: [Int]) -> PagePull {
        request.part(run, limit: rows, maximumBytes: bytes, isContinued: isContinued)
    }

    /// Takes the rows of owners that were asked with ``next(_:)``.
    mutating func take(_ run: [Int], _ answer: LinkAnswer) throws(FanOutError) {
        try fill(run, answer)
        for position in run {
            guard case .rows(let page) = pages[position]?.content else { continue }
            if page.count > 0 {
                // A comma stands between owners' rows, as between all others.
                bytes -= page.json.count + (isContinued ? 1 : 0)
                rows -= page.count
                isContinued = true
            }
            if page.hasMore { isCut = true }
        }
    }

    /// Notes the pages of owners.
    mutating func fill(_ positions: [Int], _ answer: LinkAnswer) throws(FanOutError) {
        guard case .pages(let answer) = answer,
            answer.map(\.owner) == positions.map({ request.owners[$0].owner })
        else { throw .notReady(RemoteFanOut.strangeAnswer) }
        for (position, page) in zip(positions, answer) { pages[position] = page }
    }
}

extension PagePull {
    /// The same of some owners, with other limits.
    func part(_ positions: [Int], limit: Int, maximumBytes: Int, isContinued: Bool) -> PagePull {
        PagePull(
            owners: positions.map { owners[$0] }, limit: limit, maximumBytes: maximumBytes, isContinued: isContinued)
    }
}
