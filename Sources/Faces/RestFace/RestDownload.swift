import FanOutLink
import Gateway
import HTTP
import JSONText
import SyncModel
import Synchronization

/// `GET /rest/{table}?ts=&limit=`: the rows above `ts`, in the order of `Ts`, and those below it that the device may lack.
struct RestDownload: Sendable {
    private let table: FaceTable
    private let session: any FaceSession
    private let answers: RestAnswers

    init(_ table: FaceTable, _ session: any FaceSession, _ answers: RestAnswers) {
        self.table = table
        self.session = session
        self.answers = answers
    }

    /// Responds where the device has everything, and nothing was written since.
    func respondAtOnce(to request: FaceRequest) throws(Problem) -> HTTPResponse? {
        let (ts, _) = try Self.range(of: request)
        // Other gateways must know of the download.
        if session.sharesPositions { return nil }
        // A device that names less than its watermark needs a stream that is not behind.
        guard session.isDrained(at: ts), ts.rawValue == session.knownPosition(table.watermark(in: session.epoch))
        else { return nil }
        answers.answered(answers.begin(), of: session.device, table.index, upTo: ts)
        return .uncached(200, Array("[]".utf8))
    }

    private static func range(of request: FaceRequest) throws(Problem) -> (ts: TimeStamp, limit: Int) {
        let ts = TimeStamp(try request.number("ts", in: 0...TimeStamp.maximum.rawValue) ?? 0)
        return (ts, try request.number("limit", in: 1...Int64(Int32.max)).map(Int.init) ?? .max)
    }

    func respond(to request: FaceRequest) async throws -> HTTPResponse {
        let (ts, limit) = try Self.range(of: request)
        // Nothing is sent that a device could have.
        if request.http.method == .head { return HTTPResponse(status: 200, headers: RestFace.headers) }
        var download = answers.begin()
        let (from, kept) = try await RestWatermark(table, session, answers).start(ts, &download)
        let pages = RestPages(download, table, session, answers, above: from, ts: ts, kept: kept, limit: limit)
        return try await session.stream(RestFace.headers) { try await pages.next() }
    }
}

/// The rows of one download, read in pages.
///
/// Used by one task at a time.
private final class RestPages: Sendable {
    private struct State {
        var rest: StreamSelection?
        /// How many more rows above `ts` may be sent.
        var left: Int
        /// What the stream had in which rows were read last.
        var head: TimeStamp?
        var array = FaceArray()
        /// The device has everything up to here when it has the answer.
        var end = TimeStamp.zero
        var newest = RestAnswers.NewestRows()
    }

    private let download: RestAnswers.Download
    private let table: FaceTable
    private let session: any FaceSession
    private let answers: RestAnswers
    private let ts: TimeStamp
    private let leastHead: TimeStamp
    /// What the stream must have reached besides, if any has.
    private let kept: TimeStamp
    private let state: Mutex<State>

    init(
        _ download: RestAnswers.Download, _ table: FaceTable, _ session: any FaceSession, _ answers: RestAnswers,
        above from: TimeStamp, ts: TimeStamp, kept: TimeStamp, limit: Int
    ) {
        self.download = download
        self.table = table
        self.session = session
        self.answers = answers
        self.ts = ts
        self.kept = kept
        leastHead = max(from, ts)
        state = Mutex(State(rest: .changes(above: from, upTo: .maximum, table: table.index), left: limit))
    }

    /// The next piece of the array.
    func next() async throws -> FacePiece {
        while true {
            let (rest, left, head) = state.withLock { ($0.rest, $0.left, $0.head) }
            guard let rest else { return end() }
            let found = try await session.rows(
                rest, limit: count(rest, left), leastHead: leastHead, kept: kept, continuing: head)
            let piece: FacePiece? = state.withLock { state in
                // Rows that are written from now on are for the next download, so that this one ends.
                if case .changes(let above, let upTo, let table) = found.rest {
                    state.end = min(upTo, found.head)
                    state.rest = .changes(above: above, upTo: state.end, table: table)
                } else {
                    if state.end == .zero { state.end = found.head }
                    state.rest = nil
                }
                state.head = found.head
                append(found.rows, &state)
                return state.array.hasMore && state.rest != nil ? state.array.piece() : nil
            }
            if let piece { return piece }
        }
    }

    /// How many rows to read: those up to `ts` do not count for the limit, and most are left out.
    private func count(_ rest: StreamSelection, _ left: Int) -> Int {
        if case .changes(let above, _, _) = rest, above < ts { return StreamQuery.maximumRows }
        return min(left, StreamQuery.maximumRows)
    }

    private func end() -> FacePiece {
        let (end, newest, piece) = state.withLock { ($0.end, $0.newest, $0.array.end()) }
        answers.answered(download, of: session.device, table.index, upTo: end, newest: newest)
        return piece
    }

    private func append(_ rows: [FaceRow], _ state: inout State) {
        var last: TimeStamp?
        state.array.reserve(rows: rows.count)
        for row in rows where RestWatermark.isMissing(row, ts: ts) {
            if row.timeStamp > ts {
                guard state.left > 0 else { break }
                state.left -= 1
                last = row.timeStamp
            }
            state.array.add { $0.record(row, table.table) }
            state.newest.add(row)
        }
        if state.left == 0 {
            state.rest = nil
            if let last { state.end = last }
        }
    }
}
