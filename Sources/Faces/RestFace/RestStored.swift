import Gateway
import JSONText
import SyncModel
import Synchronization

/// The records that a request has stored, each with the columns that it did not name, of which one page is in memory at a time.
struct RestStored: Sendable {
    enum Record: Sendable {
        /// Stored with this `Ts`.
        case stored(RestRecord, TimeStamp)
        /// The row is there as sent, from an earlier request.
        case repeated(FaceRow)
    }

    /// A record of the answer.
    struct Shown: Sendable {
        fileprivate let record: Record
        /// What the columns that it lacks have.
        fileprivate let row: FaceRow?
        fileprivate let table: Table

        func write(to writer: inout JSONWriter) {
            switch record {
            case .stored(let record, let ts): record.write(of: table, ts: ts, over: row, to: &writer)
            case .repeated(let row): writer.record(row, table)
            }
        }
    }

    private let table: Table
    private let areNew: Bool
    private var records: ArraySlice<Record>
    private var rows: RestRows

    /// - Parameter areNew: columns that they lack have their defaults.
    init(
        _ records: [Record], areNew: Bool, of table: FaceTable, _ session: any FaceSession, leastHead: TimeStamp
    ) {
        self.table = table.table
        self.areNew = areNew
        self.records = records[...]
        let lacking = areNew ? [] : records.compactMap(Self.lacking)
        rows = RestRows(lacking, of: table, session, leastHead: leastHead)
    }

    /// The id of a record whose row has the columns that it lacks.
    private static func lacking(_ record: Record) -> RowID? {
        guard case .stored(let sent, _) = record, !sent.isWhole else { return nil }
        return sent.id
    }

    /// The next record; `nil` after the last one.
    mutating func next() async throws -> Shown? {
        guard let record = records.popFirst() else { return nil }
        guard !areNew, let id = Self.lacking(record) else { return Shown(record: record, row: nil, table: table) }
        return Shown(record: record, row: try await rows.row(id), table: table)
    }
}

/// The records as an array that is made in pieces, while their rows are read.
///
/// Used by one task at a time.
final class RestStoredPieces: Sendable {
    private struct State {
        var stored: RestStored?
        var array = FaceArray()
    }

    /// The size from which a piece is sent.
    private static let pieceBytes = 512 << 10

    private let state: Mutex<State>

    init(_ stored: RestStored) { state = Mutex(State(stored: stored)) }

    func next() async throws -> FacePiece {
        // Taken out, so that nothing else holds the rows that it has in memory.
        var work = state.withLock { state in
            defer { state = State() }
            return state
        }
        while let shown = try await work.stored?.next() {
            work.array.add(shown.write)
            guard work.array.byteCount >= Self.pieceBytes else { continue }
            let piece = work.array.piece()
            state.withLock { [work] in $0 = work }
            return piece
        }
        return work.array.end()
    }
}
