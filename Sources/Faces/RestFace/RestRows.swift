import FanOutLink
import Gateway
import SyncModel

/// The rows of some ids, of which one page is in memory at a time: together they may be as large as all of an owner's.
struct RestRows {
    private let session: any FaceSession
    private let limit: Int
    private let leastHead: TimeStamp
    private var rest: StreamSelection?
    private var page: ArraySlice<FaceRow> = []

    init(_ ids: [RowID], of table: FaceTable, _ session: any FaceSession, leastHead: TimeStamp) {
        self.session = session
        self.leastHead = leastHead
        limit = ids.count
        rest = ids.isEmpty ? nil : .ids(table: table.index, ids)
    }

    /// The row of an id; `nil` where there is none.
    ///
    /// - Parameter id: the one after that of the call before.
    mutating func row(_ id: RowID) async throws -> FaceRow? {
        while page.isEmpty, let selection = rest {
            // Its rows are gone before the next are read.
            page = []
            let found = try await session.rows(selection, limit: limit, leastHead: leastHead)
            (page, rest) = (found.rows[...], found.rest)
        }
        guard let next = page.first, try next.id == id else { return nil }
        page.removeFirst()
        return next
    }
}
