import RecordStore
import SyncModel

/// The position of a stream in `ordered`.
struct StreamPosition: Sendable, Hashable {
    /// The offset in `ordered` of the next record.
    var nextOffset: Int64 = 0
    /// The offset in `changes` of the last part of which a piece was applied; -1 before the first.
    var changesOffset: Int64 = -1
    /// The last applied piece of that part's result.
    var piece = 0
    /// Whether that piece was the last of the result.
    var isComplete = true
    var timeStamp = TimeStamp.zero
    /// For each partition of `uploads` the highest record and part whose result is complete.
    var uploads: [Int: UploadProgress] = [:]

    /// The position of an empty stream.
    init() {}

    /// The position of a stream built from tables.
    init(_ stored: StoredPosition) {
        nextOffset = stored.orderedOffset
        changesOffset = stored.state.nextOffset - 1
        timeStamp = stored.state.timeStamp
        uploads = stored.state.uploads
    }

    /// Whether a piece was applied before (I2).
    func hasApplied(_ offset: Int64, piece: Int) -> Bool {
        if offset != changesOffset { return offset < changesOffset }
        return isComplete || piece <= self.piece
    }

    /// Advances over the next piece.
    ///
    /// - Throws: when pieces before it are missing.
    mutating func advance(over piece: OrderedPiece) throws(LogFault) {
        let isNext =
            isComplete
            ? piece.changesOffset > changesOffset && piece.piece == 0
            : piece.changesOffset == changesOffset && piece.piece == self.piece + 1
        guard isNext else {
            throw .invalidRecord(
                "piece \(piece.piece) of changes offset \(piece.changesOffset) follows piece \(self.piece) of "
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
