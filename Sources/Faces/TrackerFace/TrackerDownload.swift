import FanOutLink
import Gateway
import HTTP
import JSONText
import SyncModel
import Synchronization

/// `GET /tracker/{table}?after=`: the rows above a time that the device did not write itself, by `updatedOn`, up to the head that its
/// last request for devices froze.
struct TrackerDownload: Sendable {
    private let table: FaceTable
    private let session: any FaceSession

    init(_ table: FaceTable, _ session: any FaceSession) {
        self.table = table
        self.session = session
    }

    func respond(after: TimeStamp) async throws -> HTTPResponse {
        let positions = try await positions()
        let head = positions.head ?? .zero
        let above = try await above(after, positions)
        try await positions.raise(complete: min(above, head), of: table.table)
        let pages = TrackerPages(table, session, above: above, upTo: max(above, head), positions)
        let headers = [HTTPField("Content-Type", "application/json"), HTTPField("Cache-Control", "no-store")]
        return try await session.stream(headers) {
            let piece = try await pages.next()
            if piece.isLast { try await positions.raise(sent: pages.newest, answered: head, of: table.table) }
            return piece
        }
    }

    /// The first request of a device for rows freezes the head where none for devices did.
    private func positions() async throws -> TrackerPositions {
        let positions = try await TrackerPositions(session)
        if positions.head != nil { return positions }
        let newest = try await session.rows(
            .changes(above: .zero, upTo: .maximum, table: nil), limit: 1, leastHead: positions.shown
        ).head
        try await positions.freeze(newest)
        return try await TrackerPositions(session)
    }

    /// Where the answer begins: at the time that the client names, if it can have all rows below.
    ///
    /// It can where it is the time of a row that another device wrote, or where it named no such time before the answers to its
    /// earlier requests. Otherwise the time may be that of an own upload or edit, below which others wrote rows
    /// that no answer had.
    private func above(_ after: TimeStamp, _ positions: TrackerPositions) async throws -> TimeStamp {
        let complete = positions.complete(table.table)
        if after <= complete || after == positions.sent(table.table) { return after }
        let answered = after > positions.doubtful(table.table) ? positions.answered(table.table) : .zero
        if after <= answered { return after }
        let selection = StreamSelection.changes(
            above: TimeStamp(after.rawValue - 1), upTo: after, table: table.index)
        let row = try await session.rows(selection, limit: 1, leastHead: .zero).rows.first
        if let row, row.timeStamp == after, row.writer != .device { return after }
        try await positions.raise(doubtful: after, of: table.table)
        return max(complete, answered)
    }
}

/// The rows of one download, read in pages.
///
/// Used by one task at a time.
private final class TrackerPages: Sendable {
    private struct State {
        var rest: StreamSelection?
        var array = FaceArray()
        /// Of the rows of other devices that were sent, zero for none; `nil` before the first row.
        var newest: TimeStamp?
    }

    private let table: FaceTable
    private let session: any FaceSession
    private let leastHead: TimeStamp
    private let state: Mutex<State>

    init(
        _ table: FaceTable, _ session: any FaceSession, above: TimeStamp, upTo head: TimeStamp,
        _ positions: TrackerPositions
    ) {
        self.table = table
        self.session = session
        leastHead = max(positions.head ?? .zero, positions.shown)
        state = Mutex(State(rest: .changes(above: above, upTo: head, table: table.index)))
    }

    /// The newest row of another device that was sent, zero for none; `nil` where no row was sent.
    var newest: TimeStamp? { state.withLock(\.newest) }

    /// The next piece of the array.
    func next() async throws -> FacePiece {
        while let rest = state.withLock(\.rest) {
            let found = try await session.rows(rest, limit: 1000, leastHead: leastHead)
            let piece: FacePiece? = state.withLock { state in
                state.rest = found.rest
                state.array.reserve(rows: found.rows.count)
                for row in found.rows where row.isNews {
                    state.array.add { $0.document(row, table.table) }
                    state.newest = row.writer == .device ? state.newest ?? .zero : row.timeStamp
                }
                return state.array.hasMore && state.rest != nil ? state.array.piece() : nil
            }
            if let piece { return piece }
        }
        return state.withLock { $0.array.end() }
    }
}
