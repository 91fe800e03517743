/// A record of `ordered`: what one message of `changes` came to, or a piece of it where all would be too large a record.
///
/// Rows and results are spread over the pieces in order; readers drop what is not above the last (changes offset, piece)
/// that they have (I2).
package struct OrderedPiece: Sendable, Hashable {
    /// What became of the part as a whole.
    package enum Verdict: Sendable, Hashable {
        /// Ordered now: rows, results and refusals follow, here and in the pieces after.
        case ordered
        /// A repeat: the first outcome of the batch counts.
        case repeated
        /// Nothing applied.
        case refused(BatchRefusal)
    }

    /// The history.
    package var epoch: String
    /// The offset in `changes` of the message.
    package var changesOffset: Int64
    /// The number of this piece of its result, from 0.
    package var piece: Int
    /// Whether it is the result's last.
    package var isLast: Bool
    /// The schema version that the rows' values are written in, by its hash: the newest that the partition had met.
    package var schema: String
    /// The record of `uploads` that the message came from.
    package var upload: UploadReference
    /// The part of that batch.
    package var uploadPart: Int
    /// Microseconds since 1970 that the log gave the `uploads` record.
    package var logTime: Int64
    /// The newest timeStamp of the partition after the message.
    package var timeStamp: TimeStamp
    /// Whose rows these are.
    package var owner: SyncID
    /// Who uploaded.
    package var device: Device
    /// The device's batch number.
    package var batch: Int64?
    /// What became of the part.
    package var verdict: Verdict
    /// SHA-256 of the batch's content.
    package var contentHash: [UInt8]
    /// Rows in their final state, in the order of their timeStamps.
    package var rows: [WrittenRow]
    /// What became of the admitted changes.
    package var results: [ChangeResult]
    /// Part 0 only: the batch's size and owners, in every piece, and the refusals, spread over the pieces.
    package var summary: BatchSummary?

    /// Makes a piece.
    package init(
        epoch: String, changesOffset: Int64, piece: Int = 0, isLast: Bool = true, schema: String,
        upload: UploadReference, uploadPart: Int, logTime: Int64, timeStamp: TimeStamp, owner: SyncID, device: Device,
        batch: Int64?, verdict: Verdict, contentHash: [UInt8] = [], rows: [WrittenRow] = [],
        results: [ChangeResult] = [], summary: BatchSummary? = nil
    ) {
        self.epoch = epoch
        self.changesOffset = changesOffset
        self.piece = piece
        self.isLast = isLast
        self.schema = schema
        self.upload = upload
        self.uploadPart = uploadPart
        self.logTime = logTime
        self.timeStamp = timeStamp
        self.owner = owner
        self.device = device
        self.batch = batch
        self.verdict = verdict
        self.contentHash = contentHash
        self.rows = rows
        self.results = results
        self.summary = summary
    }
}
