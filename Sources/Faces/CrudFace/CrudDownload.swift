import FanOutLink
import Gateway
import HTTP
import JSONText
import SyncModel
import Synchronization

/// `GET /api/{table}` and `GET /api/{table}/{id}`: the rows that are not deleted.
struct CrudDownload: Sendable {
    private let table: FaceTable
    private let rows: CrudRows

    init(_ table: FaceTable, _ session: any FaceSession) {
        self.table = table
        rows = CrudRows(session)
    }

    /// One record.
    func record(_ id: RowID) async throws -> HTTPResponse {
        let row = try await rows.row(table.index, id, leastHead: rows.written())
        guard let row, !row.isDeleted else { throw Problem(.notFound, "there is no record of this id") }
        var writer = JSONWriter(capacity: 256)
        writer.record(row, table.table, rows.synced)
        return .uncached(200, writer.take())
    }

    /// All records, or some by id.
    func list(_ request: FaceRequest) async throws -> HTTPResponse {
        var after: RowID?
        if let text = try request.query("after"), !text.isEmpty {
            after = RowID(text)
            if after == nil { throw Problem(.invalidRequest, "after must be an id: 1 to 255 bytes without NUL") }
        }
        let limit = try request.number("limit", in: 1...Int64(Int32.max)).map(Int.init) ?? .max
        let headers = [HTTPField("Content-Type", "application/json"), HTTPField("Cache-Control", "no-store")]
        if request.http.method == .head { return HTTPResponse(status: 200, headers: headers) }
        let pages = CrudPages(
            table, rows, after: after, limit: limit, leastHead: try await rows.written(isFresh: true))
        return try await rows.session.stream(headers) { try await pages.next() }
    }
}

/// The rows of one answer, read in pages.
///
/// Used by one task at a time.
private final class CrudPages: Sendable {
    private struct State {
        var rest: StreamSelection?
        /// How many more rows may be sent.
        var left: Int
        /// What the stream had in which rows were read last.
        var head: TimeStamp?
        var array = FaceArray()
    }

    private let table: FaceTable
    private let rows: CrudRows
    private let leastHead: TimeStamp
    private let state: Mutex<State>

    init(_ table: FaceTable, _ rows: CrudRows, after: RowID?, limit: Int, leastHead: TimeStamp) {
        self.table = table
        self.rows = rows
        self.leastHead = leastHead
        // Only one who continues somewhere needs the order of ids. In that of timeStamps a row that is written in the meantime moves
        // to the end, so it may come twice, and is never left out.
        let isWhole = after == nil && limit == .max
        let selection =
            isWhole
            ? StreamSelection.changes(above: .zero, upTo: .maximum, table: table.index)
            : .table(table.index, after: after)
        state = Mutex(State(rest: selection, left: limit))
    }

    /// The next piece of the array.
    func next() async throws -> FacePiece {
        while let (rest, left, head) = state.withLock({ state in
            state.rest.map { ($0, state.left, state.head) }
        }) {
            let limit = min(left, StreamQuery.maximumRows)
            let found = try await rows.rows(rest, limit: limit, leastHead: leastHead, continuing: head)
            let piece: FacePiece? = state.withLock { state in
                state.head = found.head
                state.rest = found.rest
                append(found.rows, &state)
                return state.array.hasMore && state.rest != nil ? state.array.piece() : nil
            }
            if let piece { return piece }
        }
        return state.withLock { $0.array.end() }
    }

    private func append(_ found: [FaceRow], _ state: inout State) {
        state.array.reserve(rows: found.count)
        for row in found where !row.isDeleted {
            state.array.add { $0.record(row, table.table, rows.synced) }
            state.left -= 1
        }
        // At most as many rows were asked for as may be sent.
        if state.left == 0 { state.rest = nil }
    }
}
