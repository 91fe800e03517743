import RecordStore
import SyncModel

/// How far a stream has followed `ordered`.
struct StreamPosition: Sendable, Hashable {
    /// The offset in `ordered` of the next record.
    var nextOffset: Int64 = 0
    /// The offset in `changes` of the last message whose result, or a piece of it, was applied; -1 before the first.
    var changesOffset: Int64 = -1
    /// The number of the last piece of it.
    var piece = 0
    /// Whether that piece was the result's last.
    var isComplete = true
    /// The newest timeStamp of all rows.
    var timeStamp = TimeStamp.zero
    /// For each partition of `uploads` the highest record and part whose result is complete.
    var uploads: [Int: UploadProgress] = [:]

    /// Where a stream stands that holds nothing.
    init() {}

    /// Where a stream stands that holds what the tables did.
    init(_ stored: StoredPosition) {
        nextOffset = stored.orderedOffset
        changesOffset = stored.state.nextOffset - 1
        timeStamp = stored.state.timeStamp
        uploads = stored.state.uploads
    }

    /// Whether a piece of the result of a message was applied before (I2).
    func hasApplied(_ offset: Int64, piece: Int) -> Bool {
        if offset != changesOffset { return offset < changesOffset }
        return isComplete || piece <= self.piece
    }

    /// Takes in a piece that was not applied before.
    ///
    /// - Throws: when pieces are missing before it.
    mutating func advance(over piece: OrderedPiece) throws(LogFault) {
        let isNext =
            isComplete
            ? piece.changesOffset > changesOffset && piece.piece == 0
            : piece.changesOffset == changesOffset && piece.piece == self.piece + 1
        guard isNext else {
            throw .invalidRecord(
                "piece \(piece.piece) of message \(piece.changesOffset) follows piece \(self.piece) of message "
                    + "\(changesOffset), which is \(isComplete ? "" : "not ")its last")
        }
        changesOffset = piece.changesOffset
        self.piece = piece.piece
        isComplete = piece.isLast
        if piece.isLast {
            let progress = UploadProgress(offset: piece.upload.offset, part: piece.uploadPart)
            uploads[piece.upload.partition] = max(uploads[piece.upload.partition] ?? progress, progress)
        }
    }

    /// Whether the result of a part of an upload is complete.
    func covers(_ upload: UploadReference, part: Int) -> Bool {
        guard let seen = uploads[upload.partition] else { return false }
        return UploadProgress(offset: upload.offset, part: part) <= seen
    }
}
