import HTTP
import Synchronization

/// Cuts the chunks of a file into pieces that also a slow client has space for.
final class FileReader: Sendable {
    private struct State {
        /// Of the last chunk.
        var rest: ArraySlice<UInt8> = []
        /// What the chunk has in memory until its last piece is taken, as long as the client may take to read those before.
        var reservation: ResponseReservation?
        var position: Int
    }

    private static let pieceSize = 64 << 10
    private let state: Mutex<State>
    /// Of the first byte that is not sent.
    let end: Int

    /// - Parameter range: the bytes to send, at least one.
    init(_ range: Range<Int>) {
        state = Mutex(State(position: range.lowerBound))
        end = range.upperBound
    }

    /// Of the first byte behind the last chunk.
    var position: Int { state.withLock(\.position) }

    func add(_ chunk: ArraySlice<UInt8>, _ reservation: ResponseReservation) {
        state.withLock { state in
            (state.rest, state.reservation) = (chunk, reservation)
            state.position += chunk.count
        }
    }

    /// `nil` where a further chunk is needed.
    func piece() -> FacePiece? {
        state.withLock { state in
            if state.rest.isEmpty { return nil }
            let piece = Array(state.rest.prefix(Self.pieceSize))
            state.rest = state.rest.dropFirst(piece.count)
            if state.rest.isEmpty { (state.rest, state.reservation) = ([], nil) }
            return FacePiece(piece, isLast: state.rest.isEmpty && state.position >= end)
        }
    }
}
